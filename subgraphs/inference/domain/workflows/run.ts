import type { ErrorCode } from '../../../../schema/errors.ts'
import type { RunError, RunStatus } from '../agents/run.ts'

type NodeState = 'pending' | 'running' | 'done' | 'failed' | 'skipped'

/** The state of a run's node. */
export type NodeRun = {
  readonly state: NodeState
  /** JSON. Null: the node is not done. */
  readonly output: string | null
  /** The charge of the node's calls, in nano-USD, as a decimal. */
  readonly cost: string
  readonly error: RunError | null
  readonly startedAt: Date | null
  readonly endedAt: Date | null
}

/** The events of a workflow's run, in order. */
export type WorkflowEvent =
  | { readonly type: 'run_started'; readonly workflowVersion: number }
  | { readonly type: 'node_started'; readonly nodeId: string }
  /** An item of a map is done. */
  | { readonly type: 'item_done'; readonly nodeId: string; readonly index: number }
  | {
      readonly type: 'node_ended'
      readonly nodeId: string
      readonly state: Extract<NodeState, 'done' | 'failed' | 'skipped'>
      readonly cost: bigint
    }
  /** The last event. */
  | { readonly type: 'done'; readonly status: Exclude<RunStatus, 'running'> }

/** Why a run failed, and the node that failed. */
export type WorkflowError = { readonly code: ErrorCode; readonly message: string; readonly nodeId: string | null }
