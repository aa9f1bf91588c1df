import { toInt } from '../../common/check.ts'
import { quoteReembedding } from '../use-cases/reembedding/quote-reembedding.ts'
import { cancelReembedding, costOf, findReembedding, startReembedding } from '../use-cases/reembedding/reembeddings.ts'
import type { MutationResolvers, QueryResolvers, ReembeddingQuoteResolvers, ReembeddingResolvers } from './generated.ts'

export const reembeddingQueries: QueryResolvers = {
  quoteReembedding: (_parent, { input }, { deps, ...context }) => quoteReembedding(deps, context, input),
  reembedding: (_parent, { id }, { deps, ...context }) => findReembedding(deps, context, id),
}

export const reembeddingMutations: MutationResolvers = {
  async startReembedding(_parent, { input }, { deps, ...context }) {
    return { reembedding: await startReembedding(deps, context, input) }
  },
  async cancelReembedding(_parent, { id }, { deps, ...context }) {
    return { reembedding: await cancelReembedding(deps, context, id) }
  },
}

export const ReembeddingFields: ReembeddingResolvers = {
  id: ({ _id }) => _id,
  formerModelId: ({ formerModel }) => formerModel,
  embeddingModelId: ({ embeddingModel }) => embeddingModel,
  progress: ({ done, total }) => ({ done: Math.min(done, total), total }),
  tokens: ({ tokens }) => toInt(tokens),
  cost: costOf,
  __resolveReference: ({ id }, { deps, ...context }) => findReembedding(deps, context, id),
}

export const ReembeddingQuoteFields: ReembeddingQuoteResolvers = {
  collectionId: ({ collection }) => collection._id,
  embeddingModel: ({ model }) => ({ id: model.id }),
  dimensions: ({ model }) => model.dimensions,
  tokens: ({ tokens }) => toInt(tokens),
}
