import { gatewayOperation } from '../../schema/operations.ts'
import { factHeaders } from '../chat/chat-operations.ts'
import * as operations from '../contract/agents.ts'
import { PAGE_INFO, RUN_PAGE_NAMES, runPageVariables } from '../http/lists.ts'
import { actionRoute, deleteRoute, listRoute, readRoute } from '../http/resource-routes.ts'
import { type Call, isStream, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { EVENT, RUN, toEvent, toRun } from './agent-run-objects.ts'
import { streamEvents } from './run-events.ts'

const START = gatewayOperation(`mutation RunAgent($input: RunAgentInput!) { runAgent(input: $input) { ${RUN} replayed } }`)
const STREAM = gatewayOperation(`subscription AgentRun($input: RunAgentInput!) { agentRun(input: $input) { ${EVENT} } }`)
const FOLLOW = gatewayOperation(
  `subscription AgentRunEvents($runId: ID!, $after: Cursor) { agentRunEvents(runId: $runId, after: $after) { ${EVENT} } }`,
)
const GET = gatewayOperation(`query AgentRunById($id: ID!) { agentRun(id: $id) { ${RUN} } }`)
const LIST = gatewayOperation(`query AgentRuns($id: ID!, $first: Int!, $after: String, $order: SortOrder, $filter: AgentRunFilter) {
  agent(id: $id) { runs(first: $first, after: $after, order: $order, filter: $filter) { edges { node { ${RUN} } } ${PAGE_INFO} } } }`)
const LIST_ALL = gatewayOperation(`query AllAgentRuns($first: Int!, $after: String, $order: SortOrder, $filter: AgentRunFilter) {
  agentRuns(first: $first, after: $after, order: $order, filter: $filter) { edges { node { ${RUN} } } ${PAGE_INFO} } }`)
const CANCEL = gatewayOperation(`mutation CancelAgentRun($id: ID!) { cancelAgentRun(id: $id) { ${RUN} } }`)

const DELETE = gatewayOperation('mutation DeleteAgentRun($id: ID!) { deleteAgentRun(id: $id) { id } }')

/** The agent and the run are in the path. */
const NAMES = { agentId: 'id', runId: 'id', input: 'input', maxCost: 'max_cost_usd' }

function toInput({ params, body, idempotencyKey }: Call): JsonObject {
  const { input, messages, thread_id: threadId, keep_thread: keepThread, max_cost_usd: maxCost } = body
  return { agentId: params.id, input, messages, threadId, keepThread, maxCost, idempotencyKey }
}

export const agentRunRoutes: readonly Route[] = [
  route({
    operation: operations.runAgent,
    body: 'chat',
    async handle(call) {
      const variables = { input: toInput(call) }
      if (isStream(call.body)) {
        await streamEvents(call, { query: STREAM, variables }, toEvent, NAMES)
        return undefined
      }
      const { runAgent } = await call.execute(START, variables, NAMES)
      return { ...ok(toRun(runAgent)), headers: factHeaders(runAgent) }
    },
  }),
  listRoute(operations.listAgentRuns, LIST, ({ agent }) => agent?.runs, toRun, {
    owner: 'agent',
    variables: runPageVariables,
    names: RUN_PAGE_NAMES,
  }),
  listRoute(operations.listAllAgentRuns, LIST_ALL, (data) => data.agentRuns, toRun, { variables: runPageVariables, names: RUN_PAGE_NAMES }),
  readRoute(operations.getAgentRun, GET, 'run', ({ agentRun }) => agentRun && toRun(agentRun)),
  deleteRoute(operations.deleteAgentRun, DELETE, 'agent.run', ({ deleteAgentRun }) => deleteAgentRun.id),
  route({
    operation: operations.followAgentRun,
    async handle(call) {
      const variables = { runId: call.params.id, after: call.query.after ?? call.lastEventId }
      await streamEvents(call, { query: FOLLOW, variables }, toEvent, NAMES)
      return undefined
    },
  }),
  actionRoute(operations.cancelAgentRun, CANCEL, ({ cancelAgentRun }) => toRun(cancelAgentRun)),
]
