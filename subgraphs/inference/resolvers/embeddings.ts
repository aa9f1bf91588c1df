import { toBase64 } from '../domain/embeddings/vectors.ts'
import { createEmbeddings, type Embeddings } from '../use-cases/embeddings/create-embeddings.ts'
import { closeEmbedding, embedPassages, openEmbedding } from '../use-cases/embeddings/embed-document.ts'
import { embedQuery } from '../use-cases/embeddings/embed-query.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import type { EmbeddingResolvers, EmbeddingsResolvers, EncodingFormat, MutationResolvers } from './generated.ts'

export type Created = Embeddings & { readonly format: EncodingFormat }
export interface OneEmbedding {
  readonly index: number
  readonly vector: Float32Array
  readonly format: EncodingFormat
}

export const embeddingMutations: MutationResolvers = {
  async createEmbeddings(_parent, { input }, { deps, ...ask }) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'embedding', request, idempotencyKey } as const
    const embeddings = await onceForKey(deps, ask, call, (asking) => createEmbeddings(deps, asking, request))
    return { ...embeddings, format: input.encodingFormat ?? 'float' }
  },
  embedQuery: (_parent, { runHoldId, ...input }, { deps, ...ask }) => embedQuery(deps, runHoldId ? { ...ask, runHoldId } : ask, input),
  async openEmbedding(_parent, input, { deps, ...ask }) {
    return { holdId: await openEmbedding(deps, ask, input) }
  },
  embedPassages: (_parent, { input }, { deps, ...ask }) => embedPassages(deps, ask, input),
  async closeEmbedding(_parent, input, { deps, ...ask }) {
    return { charged: await closeEmbedding(deps, ask, input) }
  },
}

export const EmbeddingsFields: EmbeddingsResolvers = {
  data: ({ vectors, format }) => vectors.map((vector, index) => ({ index, vector, format })),
  model: ({ modelId }, _args, { deps }) => deps.catalog.find(modelId) ?? null,
  replayed: isReplayed,
}

export const EmbeddingFields: EmbeddingResolvers = {
  float: ({ vector, format }) => (format === 'float' ? Array.from(vector) : null),
  base64: ({ vector, format }) => (format === 'base64' ? toBase64(vector) : null),
}
