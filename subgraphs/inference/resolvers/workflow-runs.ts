import { isAbsent } from '../../common/check.ts'
import { requireScope } from '../../common/identity/principal.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import { RUN_STATUSES } from '../domain/agents/run.ts'
import { NODE_STATES, type NodeRun, type WorkflowError, type WorkflowEvent } from '../domain/workflows/run.ts'
import { followed } from '../use-cases/agents/followed.ts'
import type { FollowedEvent } from '../use-cases/agents/run-log.ts'
import type { AskContext, ServedDeps } from '../use-cases/deps.ts'
import type { WorkflowRunRecord } from '../use-cases/tables.ts'
import type { WorkflowRunInput } from '../use-cases/workflows/workflow-runs.ts'
import { enumOf } from './agent-runs.ts'
import { findWorkflow } from './workflows.ts'

type Context = ResolverContext<ServedDeps>
type Followed = FollowedEvent<WorkflowEvent>
interface Input {
  readonly input: WorkflowRunInput & { readonly wait?: boolean | null }
}

export const workflowRunQueries = {
  workflowRun: (_parent: unknown, { id }: { id: string }, context: Context) => findRun(context, id),
}

export const workflowRunMutations = {
  async runWorkflow(_parent: unknown, { input: { wait, ...input } }: Input, { deps, ...ask }: Context) {
    const run = await deps.workflowRuns.start(ask, input)
    return wait ? deps.workflowRuns.ended(ask, run) : run
  },
  cancelWorkflowRun: (_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) => deps.workflowRuns.cancel(ask, id),
  async deleteWorkflowRun(_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) {
    await deps.workflowRuns.delete(ask, id)
    return { id }
  },
}

export const workflowRunSubscriptions = {
  workflowRun: {
    subscribe: (_parent: unknown, { input }: Input, { deps, ...ask }: Context) => startAndFollow(deps, ask, input),
    resolve: (event: Followed) => event,
  },
  workflowRunEvents: {
    subscribe: (_parent: unknown, { runId, after }: { runId: string; after?: string | null }, { deps, caller }: Context) =>
      deps.workflowRuns.log.followFor(requireScope(caller, 'agents'), runId, after ?? null),
    resolve: (event: Followed) => event,
  },
}

const EVENT_TYPES = ['run_started', 'node_started', 'item_done', 'node_ended', 'done'] as const

export const WorkflowRunStatusValues = enumOf(RUN_STATUSES)
export const WorkflowNodeStateValues = enumOf(NODE_STATES)
export const WorkflowRunEventTypeValues = enumOf(EVENT_TYPES)

export const WorkflowRunFields = {
  id: ({ _id }: WorkflowRunRecord) => _id,
  workflow: ({ workflowId }: WorkflowRunRecord, _args: unknown, { deps, caller }: Context) =>
    findWorkflow(deps, requireScope(caller, 'agents'), workflowId),
  inputs: ({ inputs }: WorkflowRunRecord) => JSON.parse(inputs),
  output: ({ output }: WorkflowRunRecord) => parsed(output),
  nodes: ({ nodes }: WorkflowRunRecord) => Object.entries(nodes).map(([id, node]) => ({ id, ...node })),
  cost: ({ cost }: WorkflowRunRecord) => (cost === null ? null : BigInt(cost)),
}

export const WorkflowNodeRunFields = {
  output: ({ output }: NodeRun) => parsed(output),
  cost: ({ cost }: NodeRun) => BigInt(cost),
}

export const WorkflowRunErrorFields = {
  code: ({ code }: WorkflowError) => code.toUpperCase(),
}

export const WorkflowRunEventFields = {
  type: ({ event }: Followed) => event.type,
  cursor: ({ sequence }: Followed) => String(sequence),
  nodeId: ({ event }: Followed) => ('nodeId' in event ? event.nodeId : null),
  index: ({ event }: Followed) => (event.type === 'item_done' ? event.index : null),
  state: ({ event }: Followed) => (event.type === 'node_ended' ? event.state : null),
  cost: ({ event }: Followed) => (event.type === 'node_ended' ? event.cost : null),
  run: ({ event, runId }: Followed, _args: unknown, context: Context) =>
    event.type === 'run_started' || event.type === 'done' ? findRun(context, runId) : null,
}

function startAndFollow({ workflowRuns }: ServedDeps, ask: AskContext, { wait: _wait, ...input }: Input['input']) {
  return followed(workflowRuns, ask, async () => ({ ...(await workflowRuns.start(ask, input)), isFound: !isAbsent(input.idempotencyKey) }))
}

/** Null also for another organization's. */
function findRun({ deps, caller }: Context, id: string): Promise<WorkflowRunRecord | null> {
  const { organizationId } = requireScope(caller, 'agents')
  return deps.collections.workflowRuns.findOne({ _id: id, organizationId })
}

function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json)
}
