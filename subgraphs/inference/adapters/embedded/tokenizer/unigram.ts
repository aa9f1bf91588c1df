/**
 * A vocabulary of pieces with scores, which splits a word into the pieces with the highest sum of scores
 * (SentencePiece's unigram model). All of it lies in one buffer: strings and maps would take a hundred megabytes.
 */
export class Unigram {
  /** The start of each node's children, in the order of their code units; then the number of nodes. */
  readonly #children: Uint32Array
  /** The code unit that leads to each node. Node 0 is the root. */
  readonly #units: Uint16Array
  /** The piece that ends at each node. -1: none. */
  readonly #pieces: Int32Array
  readonly #scores: Float64Array
  /** Stands for characters that no piece contains. */
  readonly #unknown: number
  readonly #traits: Uint8Array
  /** By position in a word: the highest sum of the pieces before it, the start of the last of them, and its number. */
  #best = new Float64Array(0)
  #start = new Int32Array(0)
  #last = new Int32Array(0)

  /**
   * `packed` is a result of `packUnigram`.
   * @throws {Error} `packed` has another format
   */
  constructor(packed: Uint8Array<ArrayBuffer>) {
    const [mark, nodes, pieces, unknown] = new Uint32Array(packed.buffer, packed.byteOffset, HEADER) as unknown as Header
    const offsets = mark === MARK ? layout(nodes, pieces) : null
    if (packed.byteLength !== offsets?.bytes) throw new Error('the vocabulary is corrupted')
    const { buffer, byteOffset: start } = packed
    this.#scores = new Float64Array(buffer, start + offsets.scores, pieces)
    this.#children = new Uint32Array(buffer, start + offsets.children, nodes + 1)
    this.#pieces = new Int32Array(buffer, start + offsets.pieces, nodes)
    this.#units = new Uint16Array(buffer, start + offsets.units, nodes)
    this.#traits = new Uint8Array(buffer, start + offsets.traits, pieces)
    this.#unknown = unknown
  }

  /** The `TRAITS` of each piece. */
  get traits(): Uint8Array {
    return this.#traits
  }

  /** Splits a word into pieces. Several unknown characters in a row are one piece. */
  split(word: string): number[] {
    this.#search(word)
    const found: number[] = []
    for (let position = word.length; position > 0; position = this.#start[position]!) {
      const piece = this.#last[position]!
      if (piece !== this.#unknown || found.at(-1) !== this.#unknown) found.push(piece)
    }
    return found.reverse()
  }

  #search(word: string): void {
    this.#ensureCapacity(word.length)
    for (let from = 0; from < word.length; ) {
      const next = from + (word.codePointAt(from)! > 0xffff ? 2 : 1)
      let node = 0
      let isKnown = false
      for (let to = from; to < word.length && node >= 0; ) {
        node = this.#child(node, word.charCodeAt(to))
        to += 1
        const piece = node < 0 ? -1 : this.#pieces[node]!
        if (piece < 0) continue
        this.#offer(from, to, piece)
        isKnown ||= to === next
      }
      if (!isKnown) this.#offer(from, next, this.#unknown)
      from = next
    }
  }

  /** Of several splits with the same sum, the first stays. */
  #offer(from: number, to: number, piece: number): void {
    const sum = this.#best[from]! + this.#scores[piece]!
    if (sum <= this.#best[to]!) return
    this.#best[to] = sum
    this.#start[to] = from
    this.#last[to] = piece
  }

  /** The child for this code unit. -1: none. */
  #child(node: number, unit: number): number {
    let low = this.#children[node]!
    let high = this.#children[node + 1]!
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#units[middle]! < unit) low = middle + 1
      else high = middle
    }
    return low < this.#children[node + 1]! && this.#units[low] === unit ? low : -1
  }

  #ensureCapacity(length: number): void {
    if (this.#best.length <= length) {
      this.#best = new Float64Array(length + 1)
      this.#start = new Int32Array(length + 1)
      this.#last = new Int32Array(length + 1)
    }
    this.#best.fill(Number.NEGATIVE_INFINITY, 1, length + 1)
    this.#best[0] = 0
  }
}

/** Traits of a piece: letters of a script, or any letter or digit. */
export const TRAITS = { arabic: 1, latin: 2, word: 4 } as const

/** "uni1" in bytes. */
const MARK = 0x31696e75
type Header = [mark: number, nodes: number, pieces: number, unknown: number]
const HEADER = 4
/** How far an unknown character's score is below that of the worst piece. */
const UNKNOWN_BELOW = 10

/**
 * Packs a vocabulary into the format of `Unigram`.
 * @throws {Error} a piece occurs twice, or is empty
 */
export function packUnigram(vocabulary: readonly (readonly [piece: string, score: number])[], unknown: number): Uint8Array<ArrayBuffer> {
  const sorted = vocabulary.map(([piece], index) => ({ piece, index })).sort((a, b) => (a.piece < b.piece ? -1 : 1))
  const nodes: { unit: number; piece: number; firstChild: number }[] = [{ unit: 0, piece: -1, firstChild: 1 }]
  /** The nodes whose children are not written yet: the pieces below each, and the length of their common prefix. */
  const open = [{ low: 0, high: sorted.length, depth: 0 }]
  for (let node = 0; node < open.length; node++) {
    const { low, high, depth } = open[node]!
    nodes[node]!.firstChild = nodes.length
    for (let from = low; from < high; ) {
      const { piece, index } = sorted[from]!
      if (piece.length === depth) {
        if (depth === 0 || nodes[node]!.piece >= 0) throw new Error(`the piece ${JSON.stringify(piece)} occurs twice, or is empty`)
        nodes[node]!.piece = index
        from += 1
        continue
      }
      const unit = piece.charCodeAt(depth)
      let to = from + 1
      while (to < high && sorted[to]!.piece.charCodeAt(depth) === unit) to += 1
      nodes.push({ unit, piece: -1, firstChild: 0 })
      open.push({ low: from, high: to, depth: depth + 1 })
      from = to
    }
  }
  const offsets = layout(nodes.length, vocabulary.length)
  const buffer = new ArrayBuffer(offsets.bytes)
  new Uint32Array(buffer, 0, HEADER).set([MARK, nodes.length, vocabulary.length, unknown] satisfies Header)
  const worst = vocabulary.reduce((least, [, score]) => Math.min(least, score), Number.POSITIVE_INFINITY)
  const scores = vocabulary.map(([, score], index) => (index === unknown ? worst - UNKNOWN_BELOW : score))
  new Float64Array(buffer, offsets.scores, vocabulary.length).set(scores)
  new Uint32Array(buffer, offsets.children, nodes.length + 1).set([...nodes.map(({ firstChild }) => firstChild), nodes.length])
  new Int32Array(buffer, offsets.pieces, nodes.length).set(nodes.map(({ piece }) => piece))
  new Uint16Array(buffer, offsets.units, nodes.length).set(nodes.map(({ unit }) => unit))
  new Uint8Array(buffer, offsets.traits, vocabulary.length).set(vocabulary.map(([piece]) => traitsOf(piece)))
  return new Uint8Array(buffer)
}

function traitsOf(piece: string): number {
  const script = /\p{Script=Arabic}/u.test(piece) ? TRAITS.arabic : /\p{Script=Latin}/u.test(piece) ? TRAITS.latin : 0
  return script | (/[\p{L}\p{N}]/u.test(piece) ? TRAITS.word : 0)
}

/** The start of each part, in bytes, and its number of items. */
function layout(nodes: number, pieces: number) {
  const scores = HEADER * Uint32Array.BYTES_PER_ELEMENT
  const children = scores + pieces * Float64Array.BYTES_PER_ELEMENT
  const ends = children + (nodes + 1) * Uint32Array.BYTES_PER_ELEMENT
  const units = ends + nodes * Int32Array.BYTES_PER_ELEMENT
  const traits = units + nodes * Uint16Array.BYTES_PER_ELEMENT
  return { scores, children, pieces: ends, units, traits, bytes: traits + pieces }
}
