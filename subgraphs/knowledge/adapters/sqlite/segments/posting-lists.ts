/**
 * The passages of one segment that contain a term, by their places in it, and how often each does. Places ascend. A
 * long list is cut into ranges of 64 places, so that a search can read some of them only. A list that has many of the
 * segment's passages is dense: it has a count for each of them.
 */
export interface PostingList {
  /** Passages in the list. */
  readonly passages: number
  /** No passage has a higher share `count / (count + norm)`, with the segment's own average lengths. */
  readonly highest: number
  /** What `score` of the kernels reads. Of a dense list, the passages whose count takes more than four bits. */
  readonly postings: Uint8Array
  /** For a long list that is not dense, where each range begins in `postings`, and where the last one ends; else null. */
  readonly ranges: Uint32Array | null
  /** What `scoreDense` reads: 0 for a passage that is in `postings`, or not in the list. Null: the list is not dense. */
  readonly dense: Uint8Array | null
}

/** Places of a range, which `kernels.wat` knows, too. */
export const RANGE = 64
/** Passages from which on a list is long: below, all of it is read in ten microseconds. */
const LONG = 4_096
/**
 * A long list is dense from one in so many passages on: it takes at most 1.4 times the bytes of its postings, and
 * `scoreDense` takes less time for them all than `score`.
 */
const DENSE = 3
/** The highest count of a dense list, in four bits. */
const MAX_DENSE_COUNT = 15
const DENSE_RANGE_BYTES = RANGE / 2
/** Most of a list's bytes that a posting takes: two numbers of 32 bits. */
const MAX_POSTING_BYTES = 10
/** The count from which on a posting has a second number. */
const HIGH_COUNT = 4

export function isLong(passages: number): boolean {
  return passages >= LONG
}

/** Bytes of a dense list of a segment with so many passages. */
function denseBytes(passages: number): number {
  return Math.ceil(passages / RANGE) * DENSE_RANGE_BYTES
}

/** Where the count of a passage is in a dense list, and by how many bits it is shifted there. */
function denseByte(place: number): number {
  return Math.floor(place / RANGE) * DENSE_RANGE_BYTES + (place % DENSE_RANGE_BYTES)
}

function denseShift(place: number): number {
  return place % RANGE < DENSE_RANGE_BYTES ? 0 : 4
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
 * Encodes the first `passages` of these postings of a segment that has `all` passages. `shareOf` gives what `highest` is
 * about. The bytes are valid until the next call.
 */
export function encodeList(
  places: Uint32Array,
  counts: Uint32Array,
  passages: number,
  all: number,
  shareOf: (place: number, count: number) => number,
): Uint8Array {
  whole.length = 0
  whole.room(2 * MAX_POSTING_BYTES)
  whole.number(passages)
  if (!isLong(passages)) {
    encodePostings(places, counts, passages)
  } else {
    let highest = 0
    for (let i = 0; i < passages; i++) highest = Math.max(highest, shareOf(places[i]!, counts[i]!))
    whole.bytes(new Uint8Array(Float32Array.of(highest).buffer))
    if (passages * DENSE < all) encodeRanges(places, counts, passages)
    else encodeDense(places, counts, passages, all)
  }
  whole.bytes(body.written)
  return whole.written
}

/** Fills `body`. */
function encodePostings(places: Uint32Array, counts: Uint32Array, passages: number): void {
  let before = -1
  body.length = 0
  body.room(passages * MAX_POSTING_BYTES)
  for (let i = 0; i < passages; i++) {
    encodePosting(places[i]! - before, counts[i]!)
    before = places[i]!
  }
}

function encodePosting(distance: number, count: number): void {
  body.number((distance - 1) * HIGH_COUNT + Math.min(count, HIGH_COUNT) - 1)
  if (count >= HIGH_COUNT) body.number(count - HIGH_COUNT)
}

/** Each range begins anew, so it can be read alone. Their lengths come first. */
function encodeRanges(places: Uint32Array, counts: Uint32Array, passages: number): void {
  const lengths: number[] = []
  let before = -1
  let start = 0
  body.length = 0
  body.room(passages * MAX_POSTING_BYTES)
  for (let i = 0; i < passages; i++) {
    while (places[i]! >= (lengths.length + 1) * RANGE) {
      lengths.push(body.length - start)
      start = body.length
      before = lengths.length * RANGE - 1
    }
    encodePosting(places[i]! - before, counts[i]!)
    before = places[i]!
  }
  lengths.push(body.length - start)
  whole.room(2 * MAX_POSTING_BYTES)
  whole.number(lengths.length)
  whole.bytes(new Uint8Array(Uint16Array.from(lengths).buffer))
}

/** A dense list has no ranges to tell the lengths of: a 0 stands for their number, and says what it is. */
function encodeDense(places: Uint32Array, counts: Uint32Array, passages: number, all: number): void {
  const dense = new Uint8Array(denseBytes(all))
  const high: number[] = []
  for (let i = 0; i < passages; i++) {
    if (counts[i]! > MAX_DENSE_COUNT) high.push(i)
    else dense[denseByte(places[i]!)]! |= counts[i]! << denseShift(places[i]!)
  }
  encodePostings(
    Uint32Array.from(high, (i) => places[i]!),
    Uint32Array.from(high, (i) => counts[i]!),
    high.length,
  )
  whole.room(2 * MAX_POSTING_BYTES)
  whole.number(0)
  whole.number(dense.length)
  whole.bytes(dense)
}

export function openList(bytes: Uint8Array): PostingList {
  const at = { at: 0 }
  const passages = readNumber(bytes, at)
  if (!isLong(passages)) return { passages, highest: 1, postings: bytes.subarray(at.at), ranges: null, dense: null }
  const [highest = 1] = new Float32Array(bytes.slice(at.at, at.at + 4).buffer)
  at.at += 4
  const count = readNumber(bytes, at)
  if (count === 0) {
    const length = readNumber(bytes, at)
    const dense = bytes.subarray(at.at, at.at + length)
    return { passages, highest, postings: bytes.subarray(at.at + length), ranges: null, dense }
  }
  const lengths = new Uint16Array(bytes.slice(at.at, at.at + 2 * count).buffer)
  const ranges = new Uint32Array(count + 1)
  for (let i = 0; i < count; i++) ranges[i + 1] = ranges[i]! + lengths[i]!
  return { passages, highest, postings: bytes.subarray(at.at + 2 * count), ranges, dense: null }
}

type Take = (place: number, count: number) => void

/** Gives `take` each posting of a list, in ascending order of places. */
export function readList(list: PostingList, take: Take): void {
  if (list.dense) readDense(list.dense, list.postings, take)
  else readPostings(list, take)
}

function readPostings({ postings, ranges }: Pick<PostingList, 'postings' | 'ranges'>, take: Take): void {
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

function readDense(dense: Uint8Array, postings: Uint8Array, take: Take): void {
  const high = new Map<number, number>()
  readPostings({ postings, ranges: null }, (place, count) => high.set(place, count))
  for (let place = 0; place < 2 * dense.length; place++) {
    const count = (dense[denseByte(place)]! >> denseShift(place)) & MAX_DENSE_COUNT || (high.get(place) ?? 0)
    if (count > 0) take(place, count)
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
