import { KisError } from '../../../common/errors.ts'
import type { CosineCalibration, EmbeddingEngine } from '../../ports/engines.ts'
import type { ModelThread } from './model-thread.ts'

/**
 * As many as the protocol allows. The thread works on one batch at a time, so more would only enlarge the reply (2,048
 * vectors are 3 MB).
 */
const MAX_BATCH = 2_048

/** e5-small-ar-en. The caller adds `query: ` and `passage: `. Texts over 512 tokens are cut. */
export function embeddingEngine(thread: ModelThread, calibration: CosineCalibration | null): EmbeddingEngine {
  return {
    calibration,
    maxBatch: MAX_BATCH,

    countTokens: (texts, signal, organizationId) => thread.countTokens(texts, signal, organizationId),
    tokenize: (texts, signal, organizationId) => thread.tokenize(texts, signal, organizationId),

    async embed({ dimensions, organizationId, purpose, withTokenStates = false }, input, signal) {
      if (input.length > MAX_BATCH)
        throw new KisError('array_above_max_length', `At most ${MAX_BATCH} texts can be embedded at once.`, { param: 'input' })
      const { numbers, tokenStates, tokens } = await thread.embed(input, signal, organizationId, withTokenStates ? purpose : null)
      const width = numbers.length / Math.max(input.length, 1)
      if (dimensions !== null && dimensions > width)
        throw new KisError('integer_above_max_value', `This model's vectors have ${width} dimensions.`, { param: 'dimensions' })
      const vectors = input.map((_, index) => normalised(numbers.slice(index * width, index * width + (dimensions ?? width))))
      return { vectors, tokenStates, tokens, source: 'counted' }
    },
  }
}

function normalised(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector)
  if (!Number.isFinite(length) || length === 0) throw new KisError('engine_error', 'The embedded model gave a vector without a direction.')
  return vector.map((value) => value / length)
}
