import { readRateLimits } from '../use-cases/calls/limited-call.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import { createRerank } from '../use-cases/rerank/create-rerank.ts'
import { type QuotedReranker, quoteRerank } from '../use-cases/rerank/quote-rerank.ts'
import { describeRerankModel, rerankPassages } from '../use-cases/rerank/rerank-passages.ts'
import type { MutationResolvers, QueryResolvers, QuotedRerankerResolvers, RerankingResolvers, RerankQuoteResolvers } from './generated.ts'

export type RerankQuote = readonly QuotedReranker[]

export const rerankQueries: QueryResolvers = {
  quoteRerank: (_parent, { input }, { deps, ...ask }) => quoteRerank(deps, ask, input),
  rerankModel: (_parent, { id }, { deps, ...ask }) => describeRerankModel(deps, ask, id),
}

export const rerankMutations: MutationResolvers = {
  async createRerank(_parent, { input }, { deps, ...ask }) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'rerank', request, idempotencyKey } as const
    return onceForKey(deps, ask, call, (asking) => createRerank(deps, asking, request))
  },
  async rerankPassages(_parent, { runHoldId, ...input }, { deps, ...ask }) {
    const { results, cost } = await rerankPassages(deps, runHoldId ? { ...ask, runHoldId } : ask, input)
    return { results, cost }
  },
}

export const RerankingFields: RerankingResolvers = {
  model: ({ modelId }, _args, { deps }) => deps.catalog.find(modelId) ?? null,
  replayed: isReplayed,
}

export const RerankQuoteFields: RerankQuoteResolvers = {
  tokens: ([asked]) => asked!.tokens,
  searchUnits: ([asked]) => asked!.searchUnits,
  amount: (models) => models.map(({ amount }) => amount).reduce((a, b) => (a > b ? a : b)),
  isCovered: ([asked]) => asked!.isCovered,
  models: (models) => models,
  rateLimits: (_models, _args, { deps, caller }) => readRateLimits(deps, { caller }),
}

export const QuotedRerankerFields: QuotedRerankerResolvers = {
  rateCardVersion: ({ model }) => model.rateCard.version,
}
