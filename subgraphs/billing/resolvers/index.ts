import type { Resolvers } from '../../common/link/subgraph.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import { entities } from './entities.ts'
import { enums } from './enums.ts'
import { Mutation } from './mutation.ts'
import { Query } from './query.ts'
import { Subscription, WalletChanged } from './subscription.ts'
import { webhookMutations, webhookQueries, webhookTypes } from './webhooks.ts'

export const resolvers: Resolvers<BillingDeps> = {
  ...enums,
  ...entities,
  ...webhookTypes,
  Query: { ...Query, ...webhookQueries },
  Mutation: { ...Mutation, ...webhookMutations },
  Subscription,
  WalletChanged,
}
