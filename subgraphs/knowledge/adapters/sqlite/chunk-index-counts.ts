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

/** Reads the counts of some terms out of a chunk's many. */
export class CountReader {
  /** Of each term, in the order in which they were given. `read` overwrites them. */
  readonly counts: Uint32Array
  /** Ascending. */
  readonly #terms: Uint32Array
  readonly #places: readonly number[]

  constructor(terms: readonly number[]) {
    this.counts = new Uint32Array(terms.length)
    this.#places = [...terms.keys()].sort((a, b) => terms[a]! - terms[b]!)
    this.#terms = Uint32Array.from(this.#places, (place) => terms[place]!)
  }

  read(encoded: Uint8Array): void {
    const terms = this.#terms
    this.counts.fill(0)
    let next = 0
    let id = 0
    for (let at = 0; at < encoded.length && next < terms.length; ) {
      let byte = encoded[at++]!
      let difference = byte & 127
      for (let shift = 7; byte > 127; shift += 7) {
        byte = encoded[at++]!
        difference |= (byte & 127) << shift
      }
      id += difference
      byte = encoded[at++]!
      let count = byte & 127
      for (let shift = 7; byte > 127; shift += 7) {
        byte = encoded[at++]!
        count |= (byte & 127) << shift
      }
      while (terms[next]! < id) next++
      if (terms[next] === id) this.counts[this.#places[next]!] = count
    }
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
