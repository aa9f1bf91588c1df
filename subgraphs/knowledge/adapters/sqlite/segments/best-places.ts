import type { Kernels } from './kernels.ts'

/**
 * Keeps the ids with the highest scores of all offered ones: at least `count` of them, and with a `margin` also those
 * whose scores are so little below that rounding may have misplaced them. Among equals the lowest ids stay.
 */
export class Best {
  readonly #count: number
  readonly #margin: number
  readonly #ids: Uint32Array
  readonly #scores: Float64Array
  readonly #order: Float64Array
  #length = 0
  /** A score must be at least this to get in. */
  least = Number.NEGATIVE_INFINITY

  /** `margin`: a share of the score. */
  constructor(count: number, margin = 0) {
    this.#count = count
    this.#margin = margin
    // Room for as many as are dropped together, and for equals.
    this.#ids = new Uint32Array(4 * count + ROOM)
    this.#scores = new Float64Array(4 * count + ROOM)
    this.#order = new Float64Array(4 * count + ROOM)
  }

  /** NaN never gets in. */
  offer(id: number, score: number): void {
    if (!(score >= this.least)) return
    this.#ids[this.#length] = id
    this.#scores[this.#length++] = score
    if (this.#length === this.#ids.length) this.settle()
  }

  /** Raises `least` as far as what has been offered allows. */
  settle(): void {
    if (this.#length <= this.#count) return
    this.#order.set(this.#scores.subarray(0, this.#length))
    this.raise(highest(this.#order.subarray(0, this.#length), this.#count) * (1 - this.#margin))
    let kept = 0
    for (let i = 0; i < this.#length; i++) {
      if (this.#scores[i]! < this.least) continue
      this.#ids[kept] = this.#ids[i]!
      this.#scores[kept++] = this.#scores[i]!
    }
    this.#length = kept
    if (kept > this.#ids.length / 2) this.#dropEquals()
  }

  /** Forgets all, and refuses scores below `least` from the beginning. */
  restart(least: number): void {
    this.#length = 0
    this.least = least
  }

  /** There are `count` scores of at least this. */
  raise(least: number): void {
    if (least > this.least) this.least = least
  }

  /** In the order in which they were offered, as are the scores. Both are valid until the next offer. */
  get ids(): Uint32Array {
    this.settle()
    return this.#ids.subarray(0, this.#length)
  }

  get scores(): Float64Array {
    this.settle()
    return this.#scores.subarray(0, this.#length)
  }

  /** So many are about equal that room must be made. */
  #dropEquals(): void {
    const order = Array.from({ length: this.#length }, (_, i) => i)
      .sort((a, b) => this.#scores[b]! - this.#scores[a]! || this.#ids[a]! - this.#ids[b]!)
      .slice(0, Math.floor(this.#ids.length / 2))
      .sort((a, b) => a - b)
    const ids = order.map((i) => this.#ids[i]!)
    const scores = order.map((i) => this.#scores[i]!)
    this.#ids.set(ids)
    this.#scores.set(scores)
    this.#length = ids.length
  }
}

/** Values that are offered at once, before what they raise is taken into account. */
const OFFERED_AT_ONCE = 2_048
/** What `offerValues` needs of the memory. */
export const OFFER_BYTES = 4 * OFFERED_AT_ONCE

/**
 * Offers those of these values, which lie in the memory of the kernels, that are at least `floor` and may get in.
 * `idOf` gives the id of each by its place; null: it is not offered. The number of values is a multiple of 16.
 */
export function offerValues(
  kernels: Kernels,
  values: Float32Array,
  placesAt: number,
  floor: number,
  best: Best,
  idOf: (place: number) => number | null,
): void {
  const places = new Uint32Array(values.buffer, placesAt, OFFERED_AT_ONCE)
  for (let from = 0; from < values.length; from += OFFERED_AT_ONCE) {
    const count = Math.min(OFFERED_AT_ONCE, values.length - from)
    const found = kernels.functions.atLeast(values.byteOffset + 4 * from, count, Math.max(best.least, floor), placesAt)
    for (let i = 0; i < found; i++) {
      const place = from + places[i]!
      const id = idOf(place)
      if (id !== null) best.offer(id, values[place]!)
    }
  }
}

/** Places of `Best` beyond four for each that is kept, so that a short list is not settled all the time. */
const ROOM = 1_000

/** The `count`-th highest of these values, which it reorders (quickselect). */
function highest(values: Float64Array | Float32Array, count: number): number {
  const at = values.length - count
  let low = 0
  let high = values.length - 1
  while (low < high) {
    const pivot = values[(low + high) >> 1]!
    let i = low
    let j = high
    while (i <= j) {
      while (values[i]! < pivot) i++
      while (values[j]! > pivot) j--
      if (i > j) break
      const value = values[i]!
      values[i++] = values[j]!
      values[j--] = value
    }
    if (at <= j) high = j
    else if (at >= i) low = i
    else break
  }
  return values[at]!
}
