import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { deleted, ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const THREAD = 'id agentId title messageCount updatedAt expiresAt'

const LIST = gatewayOperation(`query Threads($id: ID!, $first: Int!, $after: String, $order: SortOrder) {
  agent(id: $id) { threads(first: $first, after: $after, order: $order) { edges { node { ${THREAD} } } ${PAGE_INFO} } } }`)
const GET = gatewayOperation(`query Thread($id: ID!) { thread(id: $id) { ${THREAD} messages } }`)
const DELETE = gatewayOperation('mutation DeleteThread($id: ID!) { deleteThread(id: $id) { id } }')

function toThread({ id, agentId, title, messageCount, updatedAt, expiresAt }: Selected<'Thread', typeof THREAD>) {
  return {
    id,
    object: 'thread',
    agent_id: agentId,
    title,
    message_count: messageCount,
    updated_at: unixSeconds(updatedAt),
    expires_at: unixSeconds(expiresAt),
  }
}

export const threadRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/agents/{id}/threads',
    async handle({ ask, params, query }) {
      const { agent } = await ask(LIST, { id: params.id, ...pageVariables(query) }, PAGE_NAMES)
      if (!agent) throw new NotFound('agent', params.id!)
      return ok(toList(agent.threads, toThread, readId))
    },
  },
  {
    method: 'GET',
    path: '/v1/threads/{id}',
    async handle({ ask, params }) {
      const { thread } = await ask(GET, { id: params.id })
      if (!thread) throw new NotFound('thread', params.id!)
      return ok({ ...toThread(thread), messages: thread.messages })
    },
  },
  {
    method: 'DELETE',
    path: '/v1/threads/{id}',
    async handle({ ask, params }) {
      const { deleteThread } = await ask(DELETE, { id: params.id })
      return deleted('thread', deleteThread.id)
    },
  },
]
