import type { Condition } from './condition.ts'
import type { BranchTask, MapTask, NodeType, Task, WorkflowDefinition, WorkflowNode } from './definition.ts'
import { type Path, stepName } from './expression.ts'
import { findExpressions, Misplaced, type Placed } from './template.ts'

/** The outputs of a node, by its type. */
const OUTPUTS: Readonly<Record<NodeType, readonly string[]>> = {
  chat: ['text', 'output', 'model'],
  agent: ['text', 'output', 'citations'],
  search: ['results', 'text', 'count'],
  transcribe: ['text', 'seconds'],
  template: ['text', 'output'],
  branch: ['case'],
  map: ['items', 'count'],
}

/** A gate: a node that must be done. If the node is a branch, also the case that it must have chosen. */
interface Gate {
  readonly nodeId: string
  readonly chosen: string | null
}

/** Returns the gates in a node's `after`. */
export function readGates({ after = [] }: WorkflowNode): readonly Gate[] {
  return after.map((gate) => {
    const [nodeId = '', chosen = null] = gate.split('.')
    return { nodeId, chosen }
  })
}

function listCases({ cases, default: otherwise = 'default' }: BranchTask): readonly string[] {
  return [...cases.map(({ name }) => name), otherwise]
}

/** The ids of the nodes for which each node waits. */
export function listWaits({ nodes }: WorkflowDefinition): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(nodes.map((node, i) => [node.id, new Set(listEdges(node, `nodes[${i}]`).map(({ nodeId }) => nodeId))]))
}

/**
 * Checks that every reference resolves and that no nodes wait for each other.
 * @throws {Misplaced} a check fails; has the path in the definition
 */
export function checkGraph(definition: WorkflowDefinition): void {
  const { nodes } = definition
  const byId = new Map<string, WorkflowNode>()
  for (const [i, node] of nodes.entries()) {
    if (byId.has(node.id)) throw new Misplaced(`nodes[${i}].id`, `Another node has the id \`${node.id}\`.`)
    byId.set(node.id, node)
  }
  for (const [i, node] of nodes.entries()) checkNode(definition, byId, node, `nodes[${i}]`)
  for (const placed of findExpressions(definition.output, 'output')) checkPaths(definition, byId, placed, false)
  checkCircles(nodes)
}

function checkNode(definition: WorkflowDefinition, byId: ReadonlyMap<string, WorkflowNode>, node: WorkflowNode, path: string): void {
  for (const [i, { nodeId, chosen }] of readGates(node).entries()) {
    const at = `${path}.after[${i}]`
    const other = byId.get(nodeId)
    if (!other) throw new Misplaced(at, `There is no node \`${nodeId}\`.`)
    if (chosen === null) continue
    if (other.type !== 'branch') throw new Misplaced(at, `The node \`${nodeId}\` is not a branch, so it has no cases.`)
    if (!listCases(other).includes(chosen)) throw new Misplaced(at, `The branch \`${nodeId}\` has no case \`${chosen}\`.`)
  }
  for (const placed of findTemplates(node, path)) checkPaths(definition, byId, placed, false)
  if (node.type === 'map') for (const placed of findTemplates(node.node, `${path}.node`)) checkPaths(definition, byId, placed, true)
  if (node.type !== 'branch') return
  const names = node.cases.map(({ name }) => name)
  const repeated = names.findIndex((name, i) => names.indexOf(name) !== i)
  if (repeated >= 0) throw new Misplaced(`${path}.cases[${repeated}].name`, `Another case has the name \`${names[repeated]}\`.`)
}

function checkPaths(
  { inputs }: WorkflowDefinition,
  byId: ReadonlyMap<string, WorkflowNode>,
  { expression, path }: Placed,
  isOfItem: boolean,
): void {
  for (const { root, steps } of listPaths(expression)) {
    if ((root === 'item' || root === 'index') && !isOfItem) throw new Misplaced(path, `\`${root}\` is only known in the node of a map.`)
    if (root === 'inputs') checkInput(inputs, steps, path)
    if (root !== 'nodes') continue
    const node = byId.get(stepName(steps[0]))
    if (!node) throw new Misplaced(path, `There is no node \`${stepName(steps[0]) || steps[0] || ''}\`.`)
    if (steps[1] !== undefined && !OUTPUTS[node.type].includes(stepName(steps[1])))
      throw new Misplaced(
        path,
        `The node \`${node.id}\` returns ${OUTPUTS[node.type].join(', ')}; not \`${stepName(steps[1]) || steps[1]}\`.`,
      )
    const isWithoutOutput = (node.type === 'chat' || node.type === 'template') && !node.response_schema
    if (steps[1] === '.output' && isWithoutOutput)
      throw new Misplaced(path, `The node \`${node.id}\` has no \`response_schema\`, and so no \`output\`.`)
  }
}

/** A schema that lists its properties allows no others, unless the schema says so. */
function checkInput(inputs: WorkflowDefinition['inputs'], steps: Path['steps'], path: string): void {
  const { properties, additionalProperties, patternProperties } = inputs ?? {}
  if (typeof properties !== 'object' || properties === null || additionalProperties || patternProperties) return
  const name = stepName(steps[0])
  if (steps.length > 0 && !Object.hasOwn(properties, name)) throw new Misplaced(path, `The inputs have no \`${name || steps[0]}\`.`)
}

interface Edge {
  readonly nodeId: string
  readonly path: string
}

function listEdges(node: WorkflowNode, path: string): readonly Edge[] {
  const placed = [...findTemplates(node, path), ...(node.type === 'map' ? findTemplates(node.node, `${path}.node`) : [])]
  return [
    ...readGates(node).map(({ nodeId }, i) => ({ nodeId, path: `${path}.after[${i}]` })),
    ...placed.flatMap(({ expression, path: at }) =>
      listPaths(expression).flatMap(({ root, steps }) => (root === 'nodes' ? [{ nodeId: stepName(steps[0]), path: at }] : [])),
    ),
  ]
}

/** Searches depth first. With 50 nodes the stack is safe. */
function checkCircles(nodes: readonly WorkflowNode[]): void {
  const edges = new Map(nodes.map((node, i) => [node.id, listEdges(node, `nodes[${i}]`)]))
  const done = new Set<string>()
  const visit = (id: string, way: readonly string[]) => {
    if (done.has(id)) return
    for (const { nodeId, path } of edges.get(id)!) {
      const from = [...way, id].indexOf(nodeId)
      if (from >= 0)
        throw new Misplaced(path, `The nodes wait for each other: ${[...way, id].slice(from).join(' waits for ')} waits for ${nodeId}.`)
      visit(nodeId, [...way, id])
    }
    done.add(id)
  }
  for (const { id } of nodes) visit(id, [])
}

function listPaths({ operands }: Placed['expression']): readonly Path[] {
  return operands.flatMap((operand) => ('path' in operand ? [operand.path] : []))
}

/** The templates of a node, without those of the node inside a map. */
function findTemplates(task: Task | BranchTask | MapTask, path: string): readonly Placed[] {
  const at = (name: string, value: unknown) => (value === undefined ? [] : [...findExpressions(value, `${path}.${name}`)])
  switch (task.type) {
    case 'chat':
      return task.messages.flatMap(({ content }, i) => at(`messages[${i}].content`, content))
    case 'agent':
      return at('input', task.input)
    case 'search':
      return [...at('query', task.query), ...at('filter', task.filter)]
    case 'transcribe':
      return [...at('file_id', task.file_id), ...at('language', task.language), ...at('prompt', task.prompt)]
    case 'template':
      return at('template', task.template)
    case 'branch':
      return task.cases.flatMap(({ when }, i) => conditionTemplates(when, `${path}.cases[${i}].when`))
    case 'map':
      return at('over', task.over)
  }
}

/** Most nested conditions. */
const MAX_CONDITION_DEPTH = 8

function conditionTemplates(condition: Condition, path: string, depth = 1): readonly Placed[] {
  if (depth > MAX_CONDITION_DEPTH) throw new Misplaced(path, `Conditions are nested at most ${MAX_CONDITION_DEPTH} deep.`)
  const inner = (each: Condition, at: string) => conditionTemplates(each, `${path}.${at}`, depth + 1)
  if ('all' in condition) return condition.all.flatMap((each, i) => inner(each, `all[${i}]`))
  if ('any' in condition) return condition.any.flatMap((each, i) => inner(each, `any[${i}]`))
  if ('not' in condition) return inner(condition.not, 'not')
  return [...findExpressions(condition.left, `${path}.left`), ...findExpressions(condition.right, `${path}.right`)]
}
