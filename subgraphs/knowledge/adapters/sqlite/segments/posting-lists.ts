/**
 * The passages of one segment that contain a term, by their places in it, and how often each does. Places ascend. A
 * long list is cut into ranges of 64 places, so that a search can read some of them only.
 */
export interface PostingList {
  /** Passages in the list. */
  readonly passages: number
  /** No passage has a higher share `count / (count + norm)`, with the segment's own average lengths. */
  readonly highest: number
  /** What `score` of the kernels reads. */
  readonly postings: Uint8Array
  /** For a long list, where each range begins in `postings`, and where the last one ends; else null. */
  readonly ranges: Uint32Array | null
}

/** Places of a range, which `kernels.wat` knows, too. */
export const RANGE = 64
/** Passages from which on a list is long: below, all of it is read in ten microseconds. */
const LONG = 4_096
/** Most of a list's bytes that a posting takes: two numbers of 32 bits. */
const MAX_POSTING_BYTES = 10
/** The count from which on a posting has a second number. */
const HIGH_COUNT = 4

export function isLong(passages: number): boolean {
  return passages >= LONG
}

class ByteWriter {
  #bytes = new Uint8Array(1_024)
  length = 0

  room(count: number): void {
    if (this.length + count <= this.#bytes.length) return
    const longer = new Uint8Array(Math.max(this.length + count, 2 * this.#bytes.length))
    longer.set(this.#bytes.subarray(0, this.length))
    this.#bytes = longer
  }

  /** The caller has made room. */
  number(value: number): void {
    let rest = value
    while (rest > 127) {
      this.#bytes[this.length++] = (rest & 127) | 128
      rest >>>= 7
    }
    this.#bytes[this.length++] = rest
  }

  bytes(bytes: Uint8Array): void {
    this.room(bytes.length)
    this.#bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  /** A view that the next use overwrites. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }
}

const body = new ByteWriter()
const whole = new ByteWriter()

/**
 * Encodes the first `passages` of these postings. `shareOf` gives what `highest` is about. The bytes are valid until the
 * next call.
 */
export function encodeList(
  places: Uint32Array,
  counts: Uint32Array,
  passages: number,
  shareOf: (place: number, count: number) => number,
): Uint8Array {
  const hasRanges = isLong(passages)
  const lengths: number[] = []
  let before = -1
  let start = 0
  let highest = 0
  body.length = 0
  body.room(passages * MAX_POSTING_BYTES)
  for (let i = 0; i < passages; i++) {
    const place = places[i]!
    const count = counts[i]!
    if (hasRanges) {
      while (place >= (lengths.length + 1) * RANGE) {
        lengths.push(body.length - start)
        start = body.length
        before = lengths.length * RANGE - 1
      }
      highest = Math.max(highest, shareOf(place, count))
    }
    body.number((place - before - 1) * HIGH_COUNT + Math.min(count, HIGH_COUNT) - 1)
    if (count >= HIGH_COUNT) body.number(count - HIGH_COUNT)
    before = place
  }
  whole.length = 0
  whole.room(2 * MAX_POSTING_BYTES)
  whole.number(passages)
  if (hasRanges) {
    lengths.push(body.length - start)
    whole.bytes(new Uint8Array(Float32Array.of(highest).buffer))
    whole.room(2 * MAX_POSTING_BYTES)
    whole.number(lengths.length)
    whole.bytes(new Uint8Array(Uint16Array.from(lengths).buffer))
  }
  whole.bytes(body.written)
  return whole.written
}

export function openList(bytes: Uint8Array): PostingList {
  const at = { at: 0 }
  const passages = readNumber(bytes, at)
  if (!isLong(passages)) return { passages, highest: 1, postings: bytes.subarray(at.at), ranges: null }
  const [highest] = new Float32Array(bytes.slice(at.at, at.at + 4).buffer)
  at.at += 4
  const count = readNumber(bytes, at)
  const lengths = new Uint16Array(bytes.slice(at.at, at.at + 2 * count).buffer)
  const ranges = new Uint32Array(count + 1)
  for (let i = 0; i < count; i++) ranges[i + 1] = ranges[i]! + lengths[i]!
  return { passages, highest: highest!, postings: bytes.subarray(at.at + 2 * count), ranges }
}

/** Gives `take` each posting of a list. */
export function readList({ postings, ranges }: PostingList, take: (place: number, count: number) => void): void {
  const at = { at: 0 }
  for (let range = 0; range < (ranges ? ranges.length - 1 : 1); range++) {
    const end = ranges ? ranges[range + 1]! : postings.length
    let place = range * RANGE - 1
    while (at.at < end) {
      const number = readNumber(postings, at)
      place += (number >>> 2) + 1
      const count = (number & 3) + 1
      take(place, count < HIGH_COUNT ? count : HIGH_COUNT + readNumber(postings, at))
    }
  }
}

function readNumber(bytes: Uint8Array, place: { at: number }): number {
  let value = 0
  let shift = 0
  for (;;) {
    const byte = bytes[place.at++]!
    value |= (byte & 127) << shift
    if (byte < 128) return value >>> 0
    shift += 7
  }
}

/** Bytes of lists that are stored together: they fit on a page of SQLite. */
const PACK_BYTES = 2_048

/**
 * Lists of consecutive terms, stored as one row: a row for each of the many short ones would take several times the
 * space. Each has its term's distance to the one before and its length, and then its bytes.
 */
export class ListPacker {
  readonly #write: (firstTerm: number, pack: Uint8Array) => void
  readonly #pack = new ByteWriter()
  #first = 0
  #before = 0

  constructor(write: (firstTerm: number, pack: Uint8Array) => void) {
    this.#write = write
  }

  /** Terms ascend. */
  add(term: number, list: Uint8Array): void {
    if (this.#pack.length > 0 && this.#pack.length + list.length > PACK_BYTES) this.flush()
    if (this.#pack.length === 0) {
      this.#first = term
      this.#before = term
    }
    this.#pack.room(2 * MAX_POSTING_BYTES)
    this.#pack.number(term - this.#before)
    this.#pack.number(list.length)
    this.#pack.bytes(list)
    this.#before = term
  }

  flush(): void {
    if (this.#pack.length > 0) this.#write(this.#first, this.#pack.written)
    this.#pack.length = 0
  }
}

/** The lists of a row, whose first term is `firstTerm`. */
export function* unpackLists(firstTerm: number, pack: Uint8Array): Generator<{ readonly term: number; readonly list: Uint8Array }> {
  const at = { at: 0 }
  let term = firstTerm
  while (at.at < pack.length) {
    term += readNumber(pack, at)
    const length = readNumber(pack, at)
    yield { term, list: pack.subarray(at.at, at.at + length) }
    at.at += length
  }
}

/** The list of one term in such a row; null: it has none. */
export function findInPack(firstTerm: number, pack: Uint8Array, term: number): Uint8Array | null {
  const at = { at: 0 }
  let current = firstTerm
  while (at.at < pack.length) {
    current += readNumber(pack, at)
    const length = readNumber(pack, at)
    if (current === term) return pack.subarray(at.at, at.at + length)
    if (current > term) return null
    at.at += length
  }
  return null
}
