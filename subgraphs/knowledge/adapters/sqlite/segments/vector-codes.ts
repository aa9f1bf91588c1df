import { type Best, OFFER_BYTES, offerValues } from './best-places.ts'
import { aligned, type Kernels } from './kernels.ts'

/**
 * Two bits for each component of a vector, after a rotation that gives all components the same weight (RaBitQ, Gao and
 * Long 2024). Let r be the rotated difference of a vector to its segment's centre. The first bit is the sign of r, as
 * s = ±1. The second, t = ±1, makes `2s + t` the nearest of -3, -1, 1 and 3 to r in half steps, which are of r's own
 * length. With the rotated query q', `centre·q' + scale·Σ s·q'` estimates the cosine without bias if `scale` is
 * `|r|² / Σ s·r`, and so does, more closely, `centre·q' + fineScale·Σ (2s + t)·q'`.
 */
export interface VectorCodes {
  /** About the mean of the rotated vectors. */
  readonly centre: Float32Array
  /** Of each vector. */
  readonly scales: Float32Array
  /**
   * The first bits, in blocks of 32 vectors. A block has 16 bytes for each group of four components, one for two
   * vectors: the lower half for one of the first 16, the upper half for one of the last 16.
   */
  readonly bits: Uint8Array
  readonly fineScales: Float32Array
  /** The second bits, vector after vector: two groups a byte, the first one in the lower half. */
  readonly fineBits: Uint8Array
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
/** In standard deviations of the components: with it, four steps are nearest to normal ones (Max 1960). */
const STEP = 0.9957
/** Blocks whose sums are made in one call: 384 KB of codes with 384 components, which the processor's cache holds. */
const BLOCKS_AT_ONCE = 256
const PASSAGES_AT_ONCE = BLOCKS_AT_ONCE * BLOCK

function groupsOf(dimensions: number): number {
  return Math.ceil(dimensions / GROUP)
}

/** Bytes of the second bits of one vector: a multiple of four, so that they are copied as whole numbers. */
function fineBytesOf(dimensions: number): number {
  return Math.ceil(groupsOf(dimensions) / 8) * 4
}

function codeBytes(count: number, dimensions: number): number {
  return Math.ceil(count / BLOCK) * groupsOf(dimensions) * LANES
}

/**
 * Rotates a vector: in each round every component gets a sign by chance, always the same, and then a Hadamard
 * transform mixes the first and the last components, as many as the largest power of two. Lengths and angles stay.
 */
function rotated(vector: Float32Array): Float32Array {
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
/** Up to so many vectors the centre is their exact mean. Whoever erases the code of one of them encodes the others anew. */
export const MAX_EXACT = 256
/**
 * The mean of more vectors is rounded to so many times what a component of the usual size adds to it. Otherwise, whoever
 * has all other vectors could subtract them, and get the one whose code was erased.
 */
const ROUNDED_SHARES = 128

/**
 * Codes of `count` vectors, which need not have length 1. `vectorAt` is called for each, and once more for some, so that
 * a million need not be in memory.
 */
export function encodeVectors(count: number, dimensions: number, vectorAt: (place: number) => Float32Array): VectorCodes {
  const sampledOneOf = Math.ceil(count / MAX_SAMPLE)
  const sum = new Float64Array(dimensions)
  let sampled = 0
  for (let place = 0; place < count; place += sampledOneOf, sampled++) {
    const vector = turned(vectorAt(place))
    for (let i = 0; i < dimensions; i++) sum[i]! += vector[i]!
  }
  const centre = centreOf(sum, sampled)
  const scales = new Float32Array(count)
  const bits = new Uint8Array(codeBytes(count, dimensions))
  const fineScales = new Float32Array(count)
  const fineBits = new Uint8Array(count * fineBytesOf(dimensions))
  for (let place = 0; place < count; place++) {
    const vector = turned(vectorAt(place))
    let squares = 0
    for (let i = 0; i < dimensions; i++) {
      vector[i]! -= centre[i]!
      squares += vector[i]! * vector[i]!
    }
    const step = STEP * Math.sqrt(squares / dimensions)
    const first = firstByte(dimensions, place)
    const shift = firstShift(place)
    const fine = place * fineBytesOf(dimensions)
    let sizes = 0
    let fineSizes = 0
    for (let i = 0; i < dimensions; i++) {
      const size = Math.abs(vector[i]!)
      const isAbove = vector[i]! > 0
      const isFar = size > step
      sizes += size
      fineSizes += size * (isFar ? 3 : 1)
      if (isAbove) bits[first + (i >> 2) * LANES]! |= 1 << (shift + (i & 3))
      if (isAbove === isFar) fineBits[fine + (i >> 3)]! |= 1 << (i & 7)
    }
    scales[place] = sizes === 0 ? 0 : squares / sizes
    fineScales[place] = sizes === 0 ? 0 : squares / fineSizes
  }
  return { centre, scales, bits, fineScales, fineBits }
}

function centreOf(sum: Float64Array, vectors: number): Float32Array {
  const step = ROUNDED_SHARES / (vectors * Math.sqrt(sum.length))
  return Float32Array.from(sum, (x) => (vectors <= MAX_EXACT ? x / vectors : Math.round(x / vectors / step) * step))
}

/** Where the first group of a vector is in the first bits, and by how many bits it is shifted there. */
function firstByte(dimensions: number, place: number): number {
  return Math.floor(place / BLOCK) * groupsOf(dimensions) * LANES + (place % LANES)
}

function firstShift(place: number): number {
  return place % BLOCK < LANES ? 0 : GROUP
}

/** Zeroes what there is of one vector. */
export function eraseCode({ scales, bits, fineScales, fineBits }: Omit<VectorCodes, 'centre'>, dimensions: number, place: number): void {
  const groups = groupsOf(dimensions)
  const first = firstByte(dimensions, place)
  const kept = firstShift(place) === 0 ? 0xf0 : 0x0f
  for (let group = 0; group < groups; group++) bits[first + group * LANES]! &= kept
  fineBits.fill(0, place * fineBytesOf(dimensions), (place + 1) * fineBytesOf(dimensions))
  scales[place] = 0
  fineScales[place] = 0
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
    // The second bits of a vector may have room for more groups, whose tables are zeros.
    this.#tables = new Uint8Array(2 * fineBytesOf(query.length) * ENTRIES)
    this.#tables.set(sums.map((sum, i) => Math.round((sum - leasts[Math.floor(i / ENTRIES)]!) / this.#unit)))
    this.#least = leasts.reduce((sum, x) => sum + x, 0)
  }

  /** Offers each vector of a segment with its cosine as the first bits give it. `idOf` is as in `offerValues`. */
  offerAll(kernels: Kernels, codes: VectorCodes, best: Best, idOf: (place: number) => number | null): void {
    const { scales, bits } = codes
    const groups = groupsOf(this.#rotated.length)
    const sumsAt = aligned(this.#tables.length)
    const cosinesAt = sumsAt + PASSAGES_AT_ONCE * 2
    const scalesAt = cosinesAt + PASSAGES_AT_ONCE * 4
    const placesAt = scalesAt + PASSAGES_AT_ONCE * 4
    const codesAt = placesAt + OFFER_BYTES
    const perCall = BLOCKS_AT_ONCE * groups * LANES
    const buffer = kernels.reserve(codesAt + perCall)
    const memory = new Uint8Array(buffer)
    memory.set(this.#tables)
    const centre = this.#atCentre(codes)
    for (let from = 0; from < bits.length; from += perCall) {
      const part = bits.subarray(from, from + perCall)
      const blocks = part.length / (groups * LANES)
      const first = (from / (groups * LANES)) * BLOCK
      const cosines = new Float32Array(buffer, cosinesAt, blocks * BLOCK)
      memory.set(part, codesAt)
      new Float32Array(buffer, scalesAt, cosines.length).fill(Number.NaN).set(scales.subarray(first, first + cosines.length))
      kernels.functions.sums(codesAt, 0, groups, blocks, sumsAt)
      kernels.functions.estimates(sumsAt, scalesAt, cosines.length, this.#unit, this.#least, centre, cosinesAt)
      offerValues(kernels, cosines, placesAt, Number.NEGATIVE_INFINITY, best, (place) => idOf(first + place))
    }
  }

  /** The cosines of some vectors of a segment as both bits give them, from what the first bits gave. */
  refine(kernels: Kernels, codes: VectorCodes, places: Uint32Array, cosines: Float64Array): Float64Array {
    const { scales, fineScales, fineBits } = codes
    const length = fineBytesOf(this.#rotated.length)
    const sumsAt = aligned(this.#tables.length)
    const codesAt = sumsAt + 4 * places.length
    const buffer = kernels.reserve(codesAt + places.length * length)
    new Uint8Array(buffer).set(this.#tables)
    const stored = new Uint32Array(fineBits.buffer)
    const codesOf = new Uint32Array(buffer, codesAt)
    const each = length / 4
    for (let i = 0; i < places.length; i++) {
      for (let at = 0; at < each; at++) codesOf[i * each + at] = stored[places[i]! * each + at]!
    }
    kernels.functions.codeSums(codesAt, places.length, length, 0, sumsAt)
    const sums = new Uint32Array(buffer, sumsAt, places.length)
    const centre = this.#atCentre(codes)
    return cosines.map((cosine, i) => {
      const place = places[i]!
      if (scales[place] === 0) return centre
      const first = (cosine - centre) / scales[place]!
      return centre + fineScales[place]! * (2 * first + sums[i]! * this.#unit + this.#least)
    })
  }

  #atCentre({ centre }: VectorCodes): number {
    return centre.reduce((sum, x, i) => sum + x * this.#rotated[i]!, 0)
  }
}
