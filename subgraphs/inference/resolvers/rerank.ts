import { readRateLimits } from '../use-cases/calls/limited-call.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import { createRerank } from '../use-cases/rerank/create-rerank.ts'
import { type QuotedReranker, quoteRerank } from '../use-cases/rerank/quote-rerank.ts'
import { describeRerankModel, rerankChunks } from '../use-cases/rerank/rerank-chunks.ts'
import type { MutationResolvers, QueryResolvers, QuotedRerankerResolvers, RerankingResolvers, RerankQuoteResolvers } from './generated.ts'

export type RerankQuote = readonly QuotedReranker[]

export const rerankQueries: QueryResolvers = {
  quoteRerank: (_parent, { input }, { deps, ...requestContext }) => quoteRerank(deps, requestContext, input),
  rerankModel: (_parent, { id }, { deps, ...requestContext }) => describeRerankModel(deps, requestContext, id),
}

export const rerankMutations: MutationResolvers = {
  async createRerank(_parent, { input }, { deps, ...requestContext }) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'rerank', request, idempotencyKey } as const
    return onceForKey(deps, requestContext, call, (effectiveContext) => createRerank(deps, effectiveContext, request))
  },
  async rerankPassages(_parent, { runHoldId, ...input }, { deps, ...requestContext }) {
    const { results, cost } = await rerankChunks(deps, runHoldId ? { ...requestContext, runHoldId } : requestContext, input)
    return { results, cost }
  },
}

export const RerankingFields: RerankingResolvers = {
  model: ({ modelId }, _args, { deps }) => deps.catalog.find(modelId) ?? null,
  replayed: isReplayed,
}

export const RerankQuoteFields: RerankQuoteResolvers = {
  tokens: ([requested]) => requested!.tokens,
  searchUnits: ([requested]) => requested!.searchUnits,
  amount: (models) => models.map(({ amount }) => amount).reduce((a, b) => (a > b ? a : b)),
  isCovered: ([requested]) => requested!.isCovered,
  models: (models) => models,
  rateLimits: (_models, _args, { deps, caller }) => readRateLimits(deps, { caller }),
}

export const QuotedRerankerFields: QuotedRerankerResolvers = {
  rateCardVersion: ({ model }) => model.rateCard.version,
}
