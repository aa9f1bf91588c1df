import { toBase64 } from '../domain/embeddings/vectors.ts'
import { createEmbeddings, type Embeddings } from '../use-cases/embeddings/create-embeddings.ts'
import { closeEmbedding, embedChunks, openEmbedding } from '../use-cases/embeddings/embed-document.ts'
import { embedQuery } from '../use-cases/embeddings/embed-query.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import type { EmbeddingResolvers, EmbeddingsResolvers, EncodingFormat, MutationResolvers } from './generated.ts'

/** The vectors, with the encoding that the caller requested. */
export type Created = Embeddings & { readonly format: EncodingFormat }
export interface OneEmbedding {
  readonly index: number
  readonly vector: Float32Array
  readonly format: EncodingFormat
}

export const embeddingMutations: MutationResolvers = {
  async createEmbeddings(_parent, { input }, { deps, ...requestContext }) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'embedding', request, idempotencyKey } as const
    const embeddings = await onceForKey(deps, requestContext, call, (effectiveContext) => createEmbeddings(deps, effectiveContext, request))
    return { ...embeddings, format: input.encodingFormat ?? 'float' }
  },
  embedQuery: (_parent, { runHoldId, ...input }, { deps, ...requestContext }) =>
    embedQuery(deps, runHoldId ? { ...requestContext, runHoldId } : requestContext, input),
  async openEmbedding(_parent, input, { deps, ...requestContext }) {
    return { holdId: await openEmbedding(deps, requestContext, input) }
  },
  embedPassages: (_parent, { input }, { deps, ...requestContext }) => embedChunks(deps, requestContext, input),
  async closeEmbedding(_parent, input, { deps, ...requestContext }) {
    return { charged: await closeEmbedding(deps, requestContext, input) }
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
