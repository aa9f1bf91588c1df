import { aligned, type Kernels } from './kernels.ts'

/**
 * One bit for each component of a vector: on which side of its segment's centre it lies, after a rotation that gives
 * all components the same weight (RaBitQ, Gao and Long 2024). With q' the rotated query and r the rotated difference
 * of a vector to the centre, `centre·q' + scale·Σ ±q'` estimates the cosine without bias if `scale` is `|r|² / Σ|r|`.
 */
export interface VectorCodes {
  /** The mean of the rotated vectors. */
  readonly centre: Float32Array
  /** Of each vector. */
  readonly scales: Float32Array
  /**
   * In blocks of 32 vectors. A block has 16 bytes for each group of four components, one for two vectors: the lower half
   * for one of the first 16, the upper half for one of the last 16.
   */
  readonly bits: Uint8Array
}

/** Vectors of a block, because a SIMD register has 16 bytes with two of them each. */
const BLOCK = 32
const LANES = BLOCK / 2
/** Components of a group: four bits choose one of the 16 entries of a table. */
const GROUP = 4
const ENTRIES = 2 ** GROUP
/** Two rounds leave hardly any structure of the input; a third costs little. */
const ROUNDS = 3
const MAX_BYTE = 255
const MAX_UINT16 = 65_535
/** Blocks whose sums are made in one call: 384 KB of codes with 384 components, which the processor's cache holds. */
const BLOCKS_AT_ONCE = 256

export function groupsOf(dimensions: number): number {
  return Math.ceil(dimensions / GROUP)
}

export function codeBytes(count: number, dimensions: number): number {
  return Math.ceil(count / BLOCK) * groupsOf(dimensions) * LANES
}

/**
 * Rotates a vector: in each round every component gets a sign by chance, always the same, and then a Hadamard
 * transform mixes the first and the last components, as many as the largest power of two. Lengths and angles stay.
 */
export function rotated(vector: Float32Array): Float32Array {
  const { length } = vector
  const result = Float32Array.from(vector)
  const mixed = 2 ** Math.floor(Math.log2(length))
  const signs = signsFor(length)
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < length; i++) result[i]! *= signs[round * length + i]!
    mix(result, 0, mixed)
    if (mixed < length) mix(result, length - mixed, mixed)
  }
  return result
}

function mix(values: Float32Array, start: number, count: number): void {
  for (let half = 1; half < count; half *= 2) {
    for (let from = start; from < start + count; from += 2 * half) {
      for (let i = from; i < from + half; i++) {
        const a = values[i]!
        const b = values[i + half]!
        values[i] = a + b
        values[i + half] = a - b
      }
    }
  }
  const norm = 1 / Math.sqrt(count)
  for (let i = start; i < start + count; i++) values[i]! *= norm
}

const SIGNS = new Map<number, Int8Array>()

/** The same in every process: codes on disk depend on them. */
function signsFor(length: number): Int8Array {
  const found = SIGNS.get(length)
  if (found) return found
  let state = length
  const signs = Int8Array.from({ length: ROUNDS * length }, () => {
    // xorshift32
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state & 1 ? 1 : -1
  })
  SIGNS.set(length, signs)
  return signs
}

/** Vectors whose mean is the centre: more change it hardly. */
const MAX_SAMPLE = 2_048

/**
 * Codes of `count` vectors, which need not have length 1. `vectorAt` is called for each, and once more for some, so that
 * a million need not be in memory.
 */
export function encodeVectors(count: number, dimensions: number, vectorAt: (place: number) => Float32Array): VectorCodes {
  const step = Math.ceil(count / MAX_SAMPLE)
  const sum = new Float64Array(dimensions)
  let sampled = 0
  for (let place = 0; place < count; place += step, sampled++) {
    const vector = turned(vectorAt(place))
    for (let i = 0; i < dimensions; i++) sum[i]! += vector[i]!
  }
  const centre = Float32Array.from(sum, (x) => x / sampled)
  const scales = new Float32Array(count)
  const bits = new Uint8Array(codeBytes(count, dimensions))
  const blockBytes = groupsOf(dimensions) * LANES
  for (let place = 0; place < count; place++) {
    const vector = turned(vectorAt(place))
    const first = Math.floor(place / BLOCK) * blockBytes + (place % LANES)
    const shift = place % BLOCK < LANES ? 0 : GROUP
    let squares = 0
    let sizes = 0
    for (let i = 0; i < dimensions; i++) {
      const difference = vector[i]! - centre[i]!
      squares += difference * difference
      sizes += Math.abs(difference)
      if (difference > 0) bits[first + (i >> 2) * LANES]! |= 1 << (shift + (i & 3))
    }
    scales[place] = sizes === 0 ? 0 : squares / sizes
  }
  return { centre, scales, bits }
}

/** Zeroes the bits of one vector. */
export function eraseCode(bits: Uint8Array, dimensions: number, place: number): void {
  const groups = groupsOf(dimensions)
  const first = Math.floor(place / BLOCK) * groups * LANES + (place % LANES)
  const kept = place % BLOCK < LANES ? 0xf0 : 0x0f
  for (let group = 0; group < groups; group++) bits[first + group * LANES]! &= kept
}

function turned(vector: Float32Array): Float32Array {
  const result = rotated(vector)
  let squares = 0
  for (const x of result) squares += x * x
  const length = Math.sqrt(squares) || 1
  for (let i = 0; i < result.length; i++) result[i]! /= length
  return result
}

/** A query, ready to be compared with the codes of any segment. */
export class CodedQuery {
  readonly #rotated: Float32Array
  readonly #tables: Uint8Array
  /** What the sums of bytes are, as sums of ±q'. */
  readonly #unit: number
  readonly #least: number

  constructor(query: Float32Array) {
    this.#rotated = turned(query)
    const groups = groupsOf(query.length)
    const sums = new Float64Array(groups * ENTRIES)
    const leasts = new Float64Array(groups)
    let widest = 0
    for (let group = 0; group < groups; group++) {
      const part = this.#rotated.subarray(group * GROUP, (group + 1) * GROUP)
      const reach = part.reduce((sum, x) => sum + Math.abs(x), 0)
      leasts[group] = -reach
      widest = Math.max(widest, 2 * reach)
      for (let entry = 0; entry < ENTRIES; entry++) {
        sums[group * ENTRIES + entry] = part.reduce((sum, x, bit) => sum + (entry & (1 << bit) ? x : -x), 0)
      }
    }
    // The sums of one passage must stay inside 16 bits.
    this.#unit = widest / Math.min(MAX_BYTE, Math.floor(MAX_UINT16 / groups)) || 1
    this.#tables = Uint8Array.from(sums, (sum, i) => Math.round((sum - leasts[Math.floor(i / ENTRIES)]!) / this.#unit))
    this.#least = leasts.reduce((sum, x) => sum + x, 0)
  }

  /** Gives `offer` the estimated cosine of each vector of a segment, by its place. */
  estimate(kernels: Kernels, { centre, scales, bits }: VectorCodes, offer: (place: number, cosine: number) => void): void {
    const groups = this.#tables.length / ENTRIES
    const atCentre = centre.reduce((sum, x, i) => sum + x * this.#rotated[i]!, 0)
    const outAt = aligned(this.#tables.length)
    const codesAt = outAt + BLOCKS_AT_ONCE * BLOCK * 2
    const perCall = BLOCKS_AT_ONCE * groups * LANES
    const buffer = kernels.reserve(codesAt + perCall)
    const memory = new Uint8Array(buffer)
    memory.set(this.#tables)
    const sums = new Uint16Array(buffer, outAt, BLOCKS_AT_ONCE * BLOCK)
    for (let from = 0; from < bits.length; from += perCall) {
      const part = bits.subarray(from, from + perCall)
      memory.set(part, codesAt)
      kernels.functions.sums(codesAt, 0, groups, part.length / (groups * LANES), outAt)
      const first = (from / (groups * LANES)) * BLOCK
      const count = Math.min(scales.length - first, BLOCKS_AT_ONCE * BLOCK)
      for (let i = 0; i < count; i++) offer(first + i, atCentre + scales[first + i]! * (sums[i]! * this.#unit + this.#least))
    }
  }
}
