import { entities } from './entities.ts'
import type { Resolvers } from './generated.ts'
import { memberMutations, memberQueries, memberTypes } from './members.ts'
import { Mutation } from './mutation.ts'
import { Query } from './query.ts'
import { Subscription, WalletChanged } from './subscription.ts'
import { webhookMutations, webhookQueries, webhookTypes } from './webhooks.ts'

export const resolvers: Resolvers = {
  ...entities,
  ...webhookTypes,
  ...memberTypes,
  Query: { ...Query, ...webhookQueries, ...memberQueries },
  Mutation: { ...Mutation, ...webhookMutations, ...memberMutations },
  Subscription,
  WalletChanged,
}
