import type { Kernels } from './segments/kernels.ts'

/**
 * How often each term is in a chunk, as bytes: for each term, in ascending order of ids, the difference to the id
 * before and the count, both as little-endian base 128. About two bytes for each term.
 */
export function encodeCounts(counts: ReadonlyMap<number, number>): Uint8Array {
  const bytes: number[] = []
  let before = 0
  for (const [id, count] of [...counts].sort(([a], [b]) => a - b)) {
    pushNumber(bytes, id - before)
    pushNumber(bytes, count)
    before = id
  }
  return Uint8Array.from(bytes)
}

/** Ids and counts in turn: id, count, id, count, in ascending order of ids. */
export function decodeCounts(bytes: Uint8Array): Uint32Array {
  const numbers = new Uint32Array(bytes.length)
  let length = 0
  let value = 0
  let shift = 0
  let before = 0
  for (const byte of bytes) {
    value |= (byte & 127) << shift
    shift += 7
    if (byte > 127) continue
    const isId = length % 2 === 0
    if (isId) before += value
    numbers[length++] = isId ? before : value
    value = 0
    shift = 0
  }
  return numbers.subarray(0, length)
}

/** Reads the counts of some terms out of those of chunks, which lie one after another in `encoded`. */
export class CountReader {
  /** Of each term, in the order in which they were given. `read` overwrites them. */
  readonly counts: Uint32Array
  readonly #kernels: Kernels
  readonly #places: readonly number[]
  readonly #found: Uint32Array
  readonly #termsAt: number
  #at: number

  /** Until all are read, nothing else may use the kernels. */
  constructor(kernels: Kernels, terms: readonly number[], encoded: Uint8Array) {
    this.counts = new Uint32Array(terms.length)
    this.#kernels = kernels
    this.#places = [...terms.keys()].sort((a, b) => terms[a]! - terms[b]!)
    this.#termsAt = 4 * terms.length
    this.#at = 2 * this.#termsAt
    const buffer = kernels.reserve(this.#at + encoded.length)
    this.#found = new Uint32Array(buffer, 0, terms.length)
    new Uint32Array(buffer, this.#termsAt).set(this.#places.map((place) => terms[place]!))
    new Uint8Array(buffer).set(encoded, this.#at)
  }

  /** Reads the next chunk, whose counts take so many bytes, into `counts`. */
  read(bytes: number): void {
    const from = this.#at
    this.#at += bytes
    this.#kernels.functions.counts(from, this.#at, this.#termsAt, 2 * this.#termsAt, 0)
    for (let i = 0; i < this.#found.length; i++) this.counts[this.#places[i]!] = this.#found[i]!
  }
}

/** Numbers stay below 2^31: ids of terms in one collection, and counts in one chunk. */
function pushNumber(bytes: number[], value: number): void {
  let rest = value
  while (rest > 127) {
    bytes.push((rest & 127) | 128)
    rest >>>= 7
  }
  bytes.push(rest)
}
