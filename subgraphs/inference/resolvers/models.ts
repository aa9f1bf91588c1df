import { requirePrincipal, requireScope } from '../../common/identity/principal.ts'
import type { Model } from '../domain/catalog.ts'
import { isOffered, isOnAllowlist, permits, permittedResidencies } from '../domain/engines/residency.ts'
import { countTokens, describeEmbeddingModel } from '../use-cases/embeddings/describe-embedding-model.ts'
import { quoteEmbedding } from '../use-cases/embeddings/embed-document.ts'
import type { ModelResolvers, PriceResolvers, QueryResolvers } from './generated.ts'

export type UnitPrices = Model['price']

export const modelQueries: QueryResolvers = {
  models(_parent, { kind }, { deps, caller }) {
    const principal = requireScope(caller, 'inference')
    return deps.catalog.models.filter((model) => (!kind || model.kind === kind) && isOffered(model, principal))
  },
  model(_parent, { id }, { deps, caller }) {
    const principal = requireScope(caller, 'inference')
    const model = deps.catalog.find(id)
    return model && isOffered(model, principal) ? model : null
  },
  residencyEffects(_parent, { policy }, { deps, caller }) {
    const principal = requireScope(caller, 'admin')
    const known = deps.catalog.models.filter((model) => model.available && isOnAllowlist(model, principal))
    const [permittedModels, forbiddenModels] = [true, false].map((is) => known.filter(({ residency }) => permits(policy, residency) === is))
    return { policy, residencies: permittedResidencies(policy), permittedModels: permittedModels!, forbiddenModels: forbiddenModels! }
  },
  embeddingModel: (_parent, { id }, { deps, ...requestContext }) => describeEmbeddingModel(deps, requestContext, id),
  countTokens: (_parent, input, { deps, ...requestContext }) => countTokens(deps, requestContext, input),
  quoteEmbedding: (_parent, input, { deps, ...requestContext }) => quoteEmbedding(deps, requestContext, input),
}

export const ModelFields: ModelResolvers = {
  /**
   * Collections and usage records may name models that their reader may no longer call. Facts and prices of those are
   * not secret.
   */
  __resolveReference: ({ id }, { deps }) => deps.catalog.find(id) ?? null,
  vendor: ({ engine }) => engine,
  supportsVision: ({ supports }) => supports.has('vision'),
  supportsTools: ({ supports }) => supports.has('tools'),
  supportsResponseSchema: ({ supports }) => supports.has('response_schema'),
  supportsReasoning: ({ supports }) => supports.has('reasoning'),
  fallbacks({ fallbacks }, _args, { deps, caller }) {
    const principal = requirePrincipal(caller)
    return fallbacks.flatMap((id) => deps.catalog.find(id) ?? []).filter((model) => isOffered(model, principal))
  },
  dimensions: ({ kind, dimensions }) => (kind === 'embedding' ? dimensions : null),
}

export const PriceFields: PriceResolvers = {
  audioMinute: ({ audio }) => audio,
  searchThousand: ({ search }) => search,
}
