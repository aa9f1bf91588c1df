import type { ResolverContext } from '../../common/link/subgraph.ts'
import { base64Of } from '../domain/embeddings/vectors.ts'
import type { Deps } from '../use-cases/deps.ts'
import { createEmbeddings, type Embeddings } from '../use-cases/embeddings/create-embeddings.ts'
import { closeEmbedding, embedPassages, openEmbedding } from '../use-cases/embeddings/embed-document.ts'
import { embedQuery } from '../use-cases/embeddings/embed-query.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'

type Context = ResolverContext<Deps>
type EncodingFormat = 'float' | 'base64'
interface EmbeddingsInput {
  readonly model: string
  readonly input: unknown
  readonly encodingFormat?: EncodingFormat | null
  readonly dimensions?: number | null
  readonly idempotencyKey?: string | null
}

export const embeddingMutations = {
  async createEmbeddings(_parent: unknown, { input }: { input: EmbeddingsInput }, { deps, ...ask }: Context) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'embedding', request, idempotencyKey } as const
    const embeddings = await onceForKey(deps, ask, call, (asking) => createEmbeddings(deps, asking, request))
    return { ...embeddings, format: input.encodingFormat ?? 'float' }
  },
  async embedQuery(
    _parent: unknown,
    { runHoldId, ...input }: { modelId: string; text: string; runHoldId?: string | null; step?: string | null },
    { deps, ...ask }: Context,
  ) {
    const { vector, ...charged } = await embedQuery(deps, runHoldId ? { ...ask, runHoldId } : ask, input)
    return { vector: base64Of(vector), ...charged }
  },
  async openEmbedding(_parent: unknown, input: { modelId: string; tokens: number }, { deps, ...ask }: Context) {
    return { holdId: await openEmbedding(deps, ask, input) }
  },
  async embedPassages(_parent: unknown, { input }: { input: Parameters<typeof embedPassages>[2] }, { deps, ...ask }: Context) {
    const { vectors, tokens } = await embedPassages(deps, ask, input)
    return { vectors: vectors.map(base64Of), tokens }
  },
  async closeEmbedding(_parent: unknown, input: { holdId: string; tokens: number }, { deps, ...ask }: Context) {
    return { charged: await closeEmbedding(deps, ask, input) }
  },
}

export const EncodingFormatValues = { FLOAT: 'float', BASE64: 'base64' }

export const EmbeddingsFields = {
  data: ({ vectors, format }: Embeddings & { format: EncodingFormat }) => vectors.map((vector, index) => ({ index, vector, format })),
  model: ({ modelId }: Embeddings, _args: unknown, { deps }: Context) => deps.catalog.find(modelId) ?? null,
  replayed: isReplayed,
}

interface OneEmbedding {
  readonly vector: Float32Array
  readonly format: EncodingFormat
}

export const EmbeddingFields = {
  float: ({ vector, format }: OneEmbedding) => (format === 'float' ? Array.from(vector) : null),
  base64: ({ vector, format }: OneEmbedding) => (format === 'base64' ? base64Of(vector) : null),
}
