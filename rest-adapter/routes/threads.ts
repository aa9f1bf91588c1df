import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/agents.ts'
import { PAGE_INFO } from '../http/lists.ts'
import { deleteRoute, listRoute, readRoute } from '../http/resource-routes.ts'
import type { Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const THREAD = 'id agentId title messageCount updatedAt expiresAt'

const LIST = gatewayOperation(`query Threads($id: ID!, $first: Int!, $after: String, $order: SortOrder) {
  agent(id: $id) { threads(first: $first, after: $after, order: $order) { edges { node { ${THREAD} } } ${PAGE_INFO} } } }`)
const GET = gatewayOperation(`query Thread($id: ID!) { thread(id: $id) { ${THREAD} messages } }`)
const DELETE = gatewayOperation('mutation DeleteThread($id: ID!) { deleteThread(id: $id) { id } }')

function toThread({ id, agentId, title, messageCount, updatedAt, expiresAt }: Selected<'Thread', typeof THREAD>): operations.Thread {
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
  listRoute(operations.listThreads, LIST, ({ agent }) => agent?.threads, toThread, { owner: 'agent' }),
  readRoute(operations.getThread, GET, 'thread', ({ thread }) => thread && { ...toThread(thread), messages: thread.messages }),
  deleteRoute(operations.deleteThread, DELETE, 'thread', ({ deleteThread }) => deleteThread.id),
]
