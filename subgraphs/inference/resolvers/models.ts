import { requireScope } from '../../common/identity/principal.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { Model, ModelKind } from '../domain/catalog.ts'
import { isOffered } from '../domain/engines/residency.ts'
import type { Deps } from '../use-cases/deps.ts'
import { countTokens, describeEmbeddingModel } from '../use-cases/embeddings/describe-embedding-model.ts'

type Context = ResolverContext<Deps>

export const modelQueries = {
  models(_parent: unknown, { kind }: { kind?: ModelKind | null }, { deps, caller }: Context) {
    const principal = requireScope(caller, 'inference')
    return deps.catalog.models.filter((model) => (!kind || model.kind === kind) && isOffered(model, principal))
  },
  model(_parent: unknown, { id }: { id: string }, { deps, caller }: Context) {
    const principal = requireScope(caller, 'inference')
    const model = deps.catalog.find(id)
    return model && isOffered(model, principal) ? model : null
  },
  embeddingModel: (_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) => describeEmbeddingModel(deps, ask, id),
  countTokens: (_parent: unknown, input: { modelId: string; texts: string[] }, { deps, ...ask }: Context) => countTokens(deps, ask, input),
}

export const ModelKindValues = { CHAT: 'chat', EMBEDDING: 'embedding', TRANSCRIPTION: 'transcription' }
export const ResidencyValues = { LOCAL: 'local', REGIONAL: 'regional', CLOUD: 'cloud' }

export const ModelFields = {
  /** Collections and usage records name models that their reader may no longer call: facts and price of those are not secret. */
  __resolveReference: ({ id }: { id: string }, { deps }: Context) => deps.catalog.find(id) ?? null,
  vendor: ({ engine }: Model) => engine,
  supportsVision: ({ supports }: Model) => supports.has('vision'),
  supportsTools: ({ supports }: Model) => supports.has('tools'),
  supportsResponseSchema: ({ supports }: Model) => supports.has('response_schema'),
  supportsReasoning: ({ supports }: Model) => supports.has('reasoning'),
  dimensions: ({ kind, dimensions }: Model) => (kind === 'embedding' ? dimensions : null),
}

export const PriceFields = {
  audioMinute: ({ audio }: Model['price']) => audio,
}
