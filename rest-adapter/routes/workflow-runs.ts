import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/workflows.ts'
import { PAGE_INFO, RUN_PAGE_NAMES, runPageVariables } from '../http/lists.ts'
import { actionRoute, deleteRoute, listRoute, readRoute } from '../http/resource-routes.ts'
import { type Call, isStream, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds, unixSecondsOrNull } from '../http/values.ts'
import { streamEvents } from './run-events.ts'

/** The selected fields of a run. None leads to another subgraph, so the gateway forwards streams unchanged. */
const RUN = `id workflowId workflowVersion status inputs output nodes { id: nodeId state output cost error { code message } startedAt endedAt } cost
  error { code message nodeId } startedAt deadline endedAt`
const EVENT = `type runId cursor at nodeId index state cost run { ${RUN} }`

interface ErrorData {
  readonly code: string
  readonly message: string
  readonly nodeId?: string | null
}

type RunData = Selected<'WorkflowRun', typeof RUN>

type EventData = Selected<'WorkflowRunEvent', typeof EVENT>

const START = gatewayOperation(`mutation RunWorkflow($input: RunWorkflowInput!) { runWorkflow(input: $input) { ${RUN} } }`)
const STREAM = gatewayOperation(`subscription WorkflowRun($input: RunWorkflowInput!) { workflowRun(input: $input) { ${EVENT} } }`)
const FOLLOW = gatewayOperation(
  `subscription WorkflowRunEvents($runId: ID!, $after: Cursor) { workflowRunEvents(runId: $runId, after: $after) { ${EVENT} } }`,
)
const GET = gatewayOperation(`query WorkflowRunById($id: ID!) { workflowRun(id: $id) { ${RUN} } }`)
const LIST = gatewayOperation(`query WorkflowRuns($id: ID!, $first: Int!, $after: String, $order: SortOrder, $filter: WorkflowRunFilter) {
  workflow(id: $id) { runs(first: $first, after: $after, order: $order, filter: $filter) { edges { node { ${RUN} } } ${PAGE_INFO} } } }`)
const LIST_ALL = gatewayOperation(`query AllWorkflowRuns($first: Int!, $after: String, $order: SortOrder, $filter: WorkflowRunFilter) {
  workflowRuns(first: $first, after: $after, order: $order, filter: $filter) { edges { node { ${RUN} } } ${PAGE_INFO} } }`)
const CANCEL = gatewayOperation(`mutation CancelWorkflowRun($id: ID!) { cancelWorkflowRun(id: $id) { ${RUN} } }`)

const DELETE = gatewayOperation('mutation DeleteWorkflowRun($id: ID!) { deleteWorkflowRun(id: $id) { id } }')

/** The workflow and the run are in the path. */
const NAMES = { workflowId: 'id', runId: 'id', maxCost: 'max_cost_usd' }

function toInput({ params, body, idempotencyKey }: Call): JsonObject {
  const { inputs, wait, max_cost_usd: maxCost, max_seconds: maxSeconds } = body
  return { workflowId: params.id, inputs, wait, maxCost, maxSeconds, idempotencyKey }
}

function toError(error: ErrorData | null) {
  return error && { code: lowerCase(error.code), message: error.message, ...(error.nodeId !== undefined && { node_id: error.nodeId }) }
}

function toRun(run: RunData): operations.WorkflowRun {
  return {
    id: run.id,
    object: 'workflow.run',
    created_at: unixSeconds(run.startedAt),
    deadline: unixSeconds(run.deadline),
    ended_at: unixSecondsOrNull(run.endedAt),
    workflow_id: run.workflowId,
    workflow_version: run.workflowVersion,
    status: lowerCase(run.status),
    inputs: run.inputs as JsonObject,
    output: run.output,
    nodes: run.nodes.map(({ id, state, output, cost, error, startedAt, endedAt }) => ({
      id,
      state: lowerCase(state),
      output,
      cost_usd: cost,
      error: toError(error),
      started_at: unixSecondsOrNull(startedAt),
      ended_at: unixSecondsOrNull(endedAt),
    })),
    cost_usd: run.cost,
    error: toError(run.error),
  }
}

function toEvent({ type, runId, cursor, at, nodeId, index, state, cost, run }: EventData): operations.WorkflowRunEvent {
  return {
    type: lowerCase(type),
    run_id: runId,
    cursor,
    created_at: unixSeconds(at),
    ...(nodeId !== null && { node_id: nodeId }),
    ...(index !== null && { index }),
    ...(state !== null && { state: lowerCase(state) as NonNullable<operations.WorkflowRunEvent['state']> }),
    ...(cost !== null && { cost_usd: cost }),
    ...(run && { run: toRun(run) }),
  }
}

export const workflowRunRoutes: readonly Route[] = [
  route({
    operation: operations.runWorkflow,
    async handle(call) {
      const variables = { input: toInput(call) }
      if (isStream(call.body)) {
        await streamEvents(call, { query: STREAM, variables }, toEvent, NAMES)
        return undefined
      }
      const { runWorkflow } = await call.execute(START, variables, NAMES)
      return ok(toRun(runWorkflow))
    },
  }),
  listRoute(operations.listWorkflowRuns, LIST, ({ workflow }) => workflow?.runs, toRun, {
    owner: 'workflow',
    variables: runPageVariables,
    names: RUN_PAGE_NAMES,
  }),
  listRoute(operations.listAllWorkflowRuns, LIST_ALL, (data) => data.workflowRuns, toRun, {
    variables: runPageVariables,
    names: RUN_PAGE_NAMES,
  }),
  readRoute(operations.getWorkflowRun, GET, 'run', ({ workflowRun }) => workflowRun && toRun(workflowRun)),
  deleteRoute(operations.deleteWorkflowRun, DELETE, 'workflow.run', ({ deleteWorkflowRun }) => deleteWorkflowRun.id),
  route({
    operation: operations.followWorkflowRun,
    async handle(call) {
      const variables = { runId: call.params.id, after: call.query.after ?? call.lastEventId }
      await streamEvents(call, { query: FOLLOW, variables }, toEvent, NAMES)
      return undefined
    },
  }),
  actionRoute(operations.cancelWorkflowRun, CANCEL, ({ cancelWorkflowRun }) => toRun(cancelWorkflowRun)),
]
