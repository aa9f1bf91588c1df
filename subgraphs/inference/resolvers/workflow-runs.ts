import { isAbsent } from '../../common/check.ts'
import { requireScope } from '../../common/identity/principal.ts'
import type { NodeRun, WorkflowEvent } from '../domain/workflows/run.ts'
import type { RequestContext, ServedDeps } from '../use-cases/deps.ts'
import { followed } from '../use-cases/runs/followed.ts'
import type { FollowedEvent } from '../use-cases/runs/run-log.ts'
import { findWorkflowRun, listAllWorkflowRuns } from '../use-cases/workflows/read-runs.ts'
import type {
  MutationResolvers,
  QueryResolvers,
  RunWorkflowInput,
  SubscriptionResolvers,
  WorkflowNodeRunResolvers,
  WorkflowRunErrorResolvers,
  WorkflowRunEventResolvers,
  WorkflowRunResolvers,
} from './generated.ts'

export type NodeOfRun = NodeRun & { readonly id: string; readonly nodeId: string }
/** An event of a run, with its cursor. */
export type Followed = FollowedEvent<WorkflowEvent>

export const workflowRunQueries: QueryResolvers = {
  workflowRun: (_parent, { id }, { deps, ...requestContext }) => findWorkflowRun(deps, requestContext, id),
  workflowRuns: (_parent, args, { deps, budget, ...requestContext }) => listAllWorkflowRuns(deps, requestContext, args, budget),
}

export const workflowRunMutations: MutationResolvers = {
  async runWorkflow(_parent, { input: { wait, ...input } }, { deps, ...requestContext }) {
    const run = await deps.workflowRuns.start(requestContext, input)
    return wait ? deps.workflowRuns.ended(requestContext, run) : run
  },
  cancelWorkflowRun: (_parent, { id }, { deps, ...requestContext }) => deps.workflowRuns.cancel(requestContext, id),
  async deleteWorkflowRun(_parent, { id }, { deps, ...requestContext }) {
    await deps.workflowRuns.delete(requestContext, id)
    return { id }
  },
}

export const workflowRunSubscriptions: SubscriptionResolvers = {
  workflowRun: {
    subscribe: (_parent, { input }, { deps, ...requestContext }) => startAndFollow(deps, requestContext, input),
    resolve: (event: Followed) => event,
  },
  workflowRunEvents: {
    subscribe: (_parent, { runId, after }, { deps, caller }) =>
      deps.workflowRuns.log.followFor(requireScope(caller, 'agents'), runId, after ?? null),
    resolve: (event: Followed) => event,
  },
}

export const WorkflowRunFields: WorkflowRunResolvers = {
  id: ({ _id }) => _id,
  workflow: ({ workflowId }, _args, { definitions, caller }) => definitions.findWorkflow({ caller }, workflowId),
  inputs: ({ inputs }, _args, { budget }) => JSON.parse(budget.charged(inputs)),
  output: ({ output }, _args, { budget }) => parsed(budget.charged(output)),
  nodes: ({ _id, nodes }) => Object.entries(nodes).map(([nodeId, node]) => ({ id: `${_id}/${nodeId}`, nodeId, ...node })),
  cost: ({ cost }) => (cost === null ? null : BigInt(cost)),
}

export const WorkflowNodeRunFields: WorkflowNodeRunResolvers = {
  output: ({ output }, _args, { budget }) => parsed(budget.charged(output)),
  cost: ({ cost }) => BigInt(cost),
}

export const WorkflowRunErrorFields: WorkflowRunErrorResolvers = {
  code: ({ code }) => code.toUpperCase(),
}

export const WorkflowRunEventFields: WorkflowRunEventResolvers = {
  type: ({ event }) => event.type,
  cursor: ({ sequence }) => String(sequence),
  nodeId: ({ event }) => ('nodeId' in event ? event.nodeId : null),
  index: ({ event }) => (event.type === 'item_done' ? event.index : null),
  state: ({ event }) => (event.type === 'node_ended' ? event.state : null),
  cost: ({ event }) => (event.type === 'node_ended' ? event.cost : null),
  run: ({ event, runId }, _args, { deps, ...requestContext }) =>
    event.type === 'run_started' || event.type === 'done' ? findWorkflowRun(deps, requestContext, runId) : null,
}

function startAndFollow({ workflowRuns }: ServedDeps, requestContext: RequestContext, { wait: _wait, ...input }: RunWorkflowInput) {
  return followed(workflowRuns, requestContext, async () => ({
    ...(await workflowRuns.start(requestContext, input)),
    isFound: !isAbsent(input.idempotencyKey),
  }))
}

function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json)
}
