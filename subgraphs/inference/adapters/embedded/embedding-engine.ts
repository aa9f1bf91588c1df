import { KisError } from '../../../common/errors.ts'
import type { CosineCalibration, EmbeddingEngine } from '../../ports/engines.ts'
import type { ModelThread } from './model-thread.ts'

/** The protocol's limit. More would only enlarge the result (2,048 vectors are 3 MB). */
const MAX_BATCH = 2_048

/** The engine of `e5-small-ar-en`. The caller adds `query: ` and `passage: `. Texts over 512 tokens are truncated. */
export function embeddingEngine(thread: ModelThread, calibration: CosineCalibration | null): EmbeddingEngine {
  return {
    calibration,
    maxBatch: MAX_BATCH,

    tokenize: (texts, signal, organizationId) => thread.tokenize(texts, signal, organizationId),
    async countTokens(texts, signal, organizationId) {
      return (await thread.tokenize(texts, signal, organizationId)).map(({ length }) => length)
    },

    async embed({ dimensions, organizationId, purpose, withTokenEmbeddings = false }, input, signal) {
      if (input.length > MAX_BATCH)
        throw new KisError('array_above_max_length', `At most ${MAX_BATCH} texts can be embedded at once.`, { param: 'input' })
      const embedded = await thread.embed(input, signal, organizationId, { purpose, withTokenEmbeddings })
      const { tokenEmbeddings, tokens } = embedded
      const vectors = embedded.vectors.map((vector) => {
        if (dimensions !== null && dimensions > vector.length)
          throw new KisError('integer_above_max_value', `This model's vectors have ${vector.length} dimensions.`, { param: 'dimensions' })
        return normalised(vector.slice(0, dimensions ?? vector.length))
      })
      return { vectors, tokenEmbeddings, tokens, source: 'counted' }
    },
  }
}

function normalised(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector)
  if (!Number.isFinite(length) || length === 0)
    throw new KisError('engine_error', 'The embedded model returned a vector without a direction.')
  return vector.map((value) => value / length)
}
