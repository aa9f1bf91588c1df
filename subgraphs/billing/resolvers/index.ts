import { entities } from './entities.ts'
import type { Resolvers } from './generated.ts'
import { Mutation } from './mutation.ts'
import { peopleMutations, peopleQueries, peopleTypes } from './people.ts'
import { Query } from './query.ts'
import { Subscription, WalletChanged } from './subscription.ts'
import { webhookMutations, webhookQueries, webhookTypes } from './webhooks.ts'

export const resolvers: Resolvers = {
  ...entities,
  ...webhookTypes,
  ...peopleTypes,
  Query: { ...Query, ...webhookQueries, ...peopleQueries },
  Mutation: { ...Mutation, ...webhookMutations, ...peopleMutations },
  Subscription,
  WalletChanged,
}
