import { isObject } from '../../../data/is-object.ts'
import type { Definition, DefinitionNode } from './definition.ts'

/** A node waits for another; if that is a branch, for one of its cases. */
interface Edge {
  readonly from: string
  readonly to: string
  readonly chosen: string | null
}

interface NodePosition {
  readonly id: string
  /** From 0: how many nodes are done before it. */
  readonly column: number
  /** From the middle of the drawing, in rows. */
  readonly row: number
}

/** The end of a run. Ids of nodes have no space. */
export const OUTPUT = 'run output'

const EXPRESSION = /\{\{([\s\S]*?)\}\}/g
/** Texts inside an expression, such as of `join("…")`. A name in brackets is a path. */
const TEXTS = /(?<!\[\s*)"(?:[^"\\]|\\.)*"/g
const NODE = /(?<![\w.\]])nodes\s*(?:\.\s*(\w+)|\[\s*"(\w+)"\s*\])/g

/** The ids of the nodes that the templates of a value name. */
export function namesIn(value: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const read = (expression: string) => {
    for (const [, dotted, quoted] of expression.replace(TEXTS, '').matchAll(NODE)) found.add((dotted ?? quoted)!)
  }
  const visit = (each: unknown): void => {
    if (typeof each === 'string') for (const [, expression] of each.matchAll(EXPRESSION)) read(expression!)
    else if (Array.isArray(each)) each.forEach(visit)
    else if (isObject(each)) {
      if (typeof each.$ref === 'string' && Object.keys(each).length === 1) read(each.$ref)
      else Object.values(each).forEach(visit)
    }
  }
  visit(value)
  return found
}

/** What a node says in templates; its schema is none. */
function templatesOf({ id: _id, type: _type, after: _after, response_schema: _schema, ...rest }: DefinitionNode): unknown {
  return rest
}

/** What waits for what. What a node names twice is one edge; a case says more than a name. */
export function listEdges({ nodes, output }: Definition): readonly Edge[] {
  const ids = new Set(nodes.map(({ id }) => id))
  const known = (id: string) => ids.has(id)
  const edges = nodes.flatMap((node) => {
    const gates = (node.after ?? []).map((gate) => {
      const [from = '', chosen = null] = gate.split('.')
      return { from, to: node.id, chosen }
    })
    const named = [...namesIn(templatesOf(node))]
      .filter((from) => !gates.some((gate) => gate.from === from))
      .map((from) => ({ from, to: node.id, chosen: null }))
    return [...gates, ...named].filter(({ from }) => known(from) && from !== node.id)
  })
  const outputs = [...namesIn(output)].filter(known).map((from) => ({ from, to: OUTPUT, chosen: null }))
  return [...edges, ...outputs]
}

/** Each node stands one column after the last that it waits for, and in its column near those. */
export function layOut({ nodes }: Definition, edges: readonly Edge[]): readonly NodePosition[] {
  const before = Map.groupBy(edges, ({ to }) => to)
  const columns = new Map<string, number>()
  const columnOf = (id: string, way: ReadonlySet<string> = new Set()): number => {
    const known = columns.get(id)
    if (known !== undefined) return known
    // Saved definitions have no circles.
    if (way.has(id)) return 0
    const next = new Set(way).add(id)
    const column = Math.max(-1, ...(before.get(id) ?? []).map(({ from }) => columnOf(from, next))) + 1
    columns.set(id, column)
    return column
  }
  for (const { id } of nodes) columnOf(id)
  columns.set(OUTPUT, Math.max(-1, ...columns.values()) + 1)

  const rows = new Map<string, number>()
  const inColumns = Map.groupBy([...nodes.map(({ id }) => id), OUTPUT], (id) => columns.get(id)!)
  return [...inColumns.entries()]
    .sort(([a], [b]) => a - b)
    .flatMap(([column, ids]) => {
      const middle = (id: string) => {
        const found = (before.get(id) ?? []).flatMap(({ from }) => rows.get(from) ?? [])
        return found.length === 0 ? 0 : found.reduce((sum, row) => sum + row, 0) / found.length
      }
      const ordered = ids.map((id) => ({ id, middle: middle(id) })).sort((a, b) => a.middle - b.middle)
      return ordered.map(({ id }, index) => {
        const row = index - (ordered.length - 1) / 2
        rows.set(id, row)
        return { id, column, row }
      })
    })
}
