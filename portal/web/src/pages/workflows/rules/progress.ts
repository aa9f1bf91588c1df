import type { NodeRun, NodeState, Run, RunEvent } from '../runs.ts'

/** The progress of a run in its events so far. */
export interface Progress {
  readonly cursor: string | null
  readonly nodes: ReadonlyMap<string, NodeProgress>
  /** The end of the run, from its last event. */
  readonly end: Pick<Run, 'status' | 'cost' | 'endedAt'> | null
}

interface NodeProgress {
  readonly state: NodeState
  readonly startedAt: string | null
  readonly endedAt: string | null
  readonly cost: string | null
  /** Positions of the finished items of a map. An event may come twice. */
  readonly items: ReadonlySet<number>
}

export const NO_PROGRESS: Progress = { cursor: null, nodes: new Map(), end: null }

const WAITING: NodeProgress = { state: 'PENDING', startedAt: null, endedAt: null, cost: null, items: new Set() }
const ENDED: ReadonlySet<NodeState> = new Set(['DONE', 'FAILED', 'SKIPPED'])

/** Returns the progress of a run after one of its events. Events may come twice. */
export function advance(progress: Progress, { type, cursor, at, nodeId, index, state, cost, run }: RunEvent): Progress {
  const next = { ...progress, cursor }
  if (type === 'DONE' && run) return { ...next, end: run }
  if (nodeId === null) return next
  const node = progress.nodes.get(nodeId) ?? WAITING
  const change = (changed: Partial<NodeProgress>) => ({ ...next, nodes: new Map(progress.nodes).set(nodeId, { ...node, ...changed }) })
  // Events are repeated after a lost connection. An ended node does not start again.
  if (type === 'NODE_STARTED' && !ENDED.has(node.state)) return change({ state: 'RUNNING', startedAt: at })
  if (type === 'ITEM_DONE' && index !== null) return change({ items: new Set(node.items).add(index) })
  if (type === 'NODE_ENDED' && state) return change({ state, endedAt: at, cost })
  return next
}

export interface ShownNode extends NodeRun {
  readonly itemsDone: number
}

/** Returns a queried run with the changes of its later events. */
export function apply(run: Run, { nodes, end }: Progress): Omit<Run, 'nodes'> & { readonly nodes: readonly ShownNode[] } {
  const shown = run.nodes.map((node): ShownNode => {
    const { items, ...said } = nodes.get(node.nodeId) ?? WAITING
    const isNewer = said.state !== 'PENDING' && !ENDED.has(node.state)
    return {
      ...node,
      ...(isNewer && {
        state: said.state,
        startedAt: node.startedAt ?? said.startedAt,
        endedAt: said.endedAt,
        cost: said.cost ?? node.cost,
      }),
      itemsDone: items.size,
    }
  })
  return { ...run, ...(run.status === 'RUNNING' && end), nodes: shown }
}
