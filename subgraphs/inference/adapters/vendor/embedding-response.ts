import { isCount } from '../../domain/tokens/usage.ts'
import type { EngineErrors } from './engine-errors.ts'

interface EmbeddingResponse {
  /** In the order of the input, each of norm 1. */
  readonly vectors: readonly Float32Array[]
  /** The vendor's report. Null: the vendor reported none. */
  readonly promptTokens: number | null
}

/**
 * Reads the protocol's embeddings object. Vendors may send numbers although base64 was requested.
 * @throws {KisError} `engine_error`: the response does not have exactly `count` valid vectors
 */
export function readEmbeddings(response: unknown, count: number, dimensions: number | null, errors: EngineErrors): EmbeddingResponse {
  const { data, usage } = (response ?? {}) as { data?: unknown; usage?: { prompt_tokens?: unknown } }
  if (!Array.isArray(data) || data.length !== count)
    throw errors.invalidResponse(`returned ${Array.isArray(data) ? data.length : 'no'} vectors for ${count} texts`)
  const vectors = new Array<Float32Array | undefined>(count)
  for (const item of data) {
    const { index, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown }
    if (!Number.isInteger(index) || !((index as number) >= 0 && (index as number) < count) || vectors[index as number])
      throw errors.invalidResponse('returned vectors with wrong indices')
    const vector = decode(embedding)
    if (!vector) throw errors.invalidResponse('returned a vector that is neither numbers nor base64')
    const width = dimensions ?? vectors.find((other) => other !== undefined)?.length ?? vector.length
    if (vector.length !== width) throw errors.invalidResponse(`returned a vector of ${vector.length} dimensions instead of ${width}`)
    if (!normalise(vector)) throw errors.invalidResponse('returned a vector without a direction')
    vectors[index as number] = vector
  }
  const tokens = usage?.prompt_tokens
  return {
    vectors: vectors as Float32Array[],
    promptTokens: isCount(tokens) ? tokens : null,
  }
}

/** Decodes base64 of little-endian float32, or a list of numbers. Undefined: another format. */
function decode(embedding: unknown): Float32Array | undefined {
  if (typeof embedding === 'string') {
    const bytes = Buffer.from(embedding, 'base64')
    // Node skips characters that are not base64, so the result is shorter than the length promises.
    const isWhole = bytes.length === Buffer.byteLength(embedding, 'base64') && bytes.length % 4 === 0 && bytes.length > 0
    if (!isWhole) return undefined
    const vector = new Float32Array(bytes.length / 4)
    for (let index = 0; index < vector.length; index += 1) vector[index] = bytes.readFloatLE(index * 4)
    return vector
  }
  if (!Array.isArray(embedding) || embedding.length === 0 || !embedding.every((value) => typeof value === 'number')) return undefined
  return Float32Array.from(embedding as number[])
}

/** Scales the vector to norm 1. Returns false when a component is not finite, or the norm is zero. */
function normalise(vector: Float32Array): boolean {
  let sum = 0
  for (const value of vector) sum += value * value
  const length = Math.sqrt(sum)
  if (!Number.isFinite(length) || length === 0) return false
  for (let index = 0; index < vector.length; index += 1) vector[index] = vector[index]! / length
  return true
}
