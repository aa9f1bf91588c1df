import type { ReadBudget } from '../../common/documents/long-records.ts'
import type { ProtocolObject } from '../ports/engines.ts'
import { findThread, titleOf } from '../use-cases/agents/threads.ts'
import type { ThreadRecord } from '../use-cases/tables.ts'
import { findView } from './agents.ts'
import type { QueryResolvers, ThreadResolvers } from './generated.ts'

export const threadQueries: QueryResolvers = {
  thread: (_parent, { id }, { deps, ...requestContext }) => findThread(deps, requestContext, id),
}

export const ThreadFields: ThreadResolvers = {
  id: ({ _id }) => _id,
  agent: ({ agentId }, _args, { deps, ...requestContext }) => findView(deps, requestContext, agentId),
  title: (thread, _args, { budget }) => titleOf(parseMessages(thread, budget)),
  messageCount: (thread, _args, { budget }) => parseMessages(thread, budget).length,
  messages: (thread, _args, { budget }) => parseMessages(thread, budget),
  __resolveReference: ({ id }, { deps, ...requestContext }) => findThread(deps, requestContext, id),
}

function parseMessages({ messages }: ThreadRecord, budget: ReadBudget): readonly ProtocolObject[] {
  return JSON.parse(budget.charged(messages))
}
