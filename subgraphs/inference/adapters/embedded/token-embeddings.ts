/** Numbers of a token's embedding. */
export const WIDTH = 128
/** The most embeddings of a query. More tokens than that are put together with those that mean nearly the same. */
const MAX_EMBEDDINGS = 32
/** Tokens of `query: ` and of `passage: `, which are in every text. */
const PREFIX_TOKENS = { passage: 2, query: 3 }
/** What a query's embedding of length 1 is multiplied by to be rounded. */
const SCALE = 127
/** The first byte of a passage's embeddings: of their numbers, the signs follow. */
const BINARY_CODE = 1

export type Purpose = 'query' | 'passage'
export type Language = 'ar' | 'en'

/** The network's input `token_mean`: what tokens of this purpose and language have in common is taken away from them. */
export const MEAN_OF: Readonly<Record<Purpose, Readonly<Record<Language, bigint>>>> = {
  passage: { ar: 0n, en: 1n },
  query: { ar: 2n, en: 3n },
}

/**
 * Makes the token embeddings of a text small. `states`: of the tokens of a text with its prefix, one after the other,
 * without the marks at its ends. Of a query, which is short and embedded anew for each search, whole numbers are given
 * for each of its words; of a passage, which is stored, one bit for each number. `isWord`: the token at this place has a
 * letter or a digit.
 */
export function toTokenEmbeddings(embeddings: Float32Array, purpose: Purpose, isWord: (position: number) => boolean): Int8Array {
  const prefix = PREFIX_TOKENS[purpose]
  const own = embeddings.subarray(prefix * WIDTH)
  if (own.length === 0) return new Int8Array()
  if (purpose === 'passage') return toBinaryCode(own)
  const reduced = putTogether(withoutPunctuation(own, (row) => isWord(row + prefix)))
  return Int8Array.from(reduced, (x) => Math.max(-SCALE, Math.min(SCALE, Math.round(x * SCALE))))
}

/** A question mark says nothing about what answers. All stay where there is nothing else. */
function withoutPunctuation(embeddings: Float32Array, isWord: (row: number) => boolean): Float32Array {
  const rows = Array.from({ length: embeddings.length / WIDTH }, (_, row) => row).filter(isWord)
  if (rows.length === 0) return embeddings
  const words = new Float32Array(rows.length * WIDTH)
  for (const [to, from] of rows.entries()) words.set(embeddings.subarray(from * WIDTH, (from + 1) * WIDTH), to * WIDTH)
  return words
}

/** Bit `i` of the bytes after the first is set where number `i` is above 0. */
function toBinaryCode(embeddings: Float32Array): Int8Array {
  const code = new Int8Array(1 + embeddings.length / 8)
  code[0] = BINARY_CODE
  for (let i = 0; i < embeddings.length; i++) if (embeddings[i]! > 0) code[1 + (i >> 3)]! |= 1 << (i & 7)
  return code
}

/**
 * Means of at most `MAX_STATES` groups of states. Each is alone at first; then the two groups are put together whose
 * union adds least to the squared distances from the means (Ward), until few enough are left. So a rare token keeps a
 * group of its own, and the many that are alike share one.
 */
function putTogether(embeddings: Float32Array): Float32Array {
  const count = embeddings.length / WIDTH
  if (count <= MAX_EMBEDDINGS) return embeddings
  const means = embeddings.slice()
  const sizes = new Uint16Array(count).fill(1)
  const row = (group: number) => means.subarray(group * WIDTH, (group + 1) * WIDTH)
  const costOf = (a: number, b: number) => {
    let squares = 0
    for (let i = a * WIDTH, j = b * WIDTH, end = i + WIDTH; i < end; i++, j++) squares += (means[i]! - means[j]!) ** 2
    return (squares * sizes[a]! * sizes[b]!) / (sizes[a]! + sizes[b]!)
  }
  // Of each group the cheapest partner after it.
  const partners = new Uint16Array(count)
  const costs = new Float32Array(count)
  const findPartner = (a: number) => {
    costs[a] = Number.POSITIVE_INFINITY
    for (let b = a + 1; b < count; b++) if (sizes[b]! > 0) offer(a, b)
  }
  const offer = (a: number, b: number) => {
    const cost = costOf(a, b)
    if (cost < costs[a]!) {
      costs[a] = cost
      partners[a] = b
    }
  }
  for (let group = 0; group < count; group++) findPartner(group)
  for (let left = count; left > MAX_EMBEDDINGS; left--) {
    const into = costs.reduce((least, cost, group) => (cost < costs[least]! ? group : least), 0)
    const from = partners[into]!
    const size = sizes[into]! + sizes[from]!
    for (const [i, x] of row(from).entries()) row(into)[i] = (row(into)[i]! * sizes[into]! + x * sizes[from]!) / size
    sizes[into] = size
    sizes[from] = 0
    costs[from] = Number.POSITIVE_INFINITY
    findPartner(into)
    for (let group = 0; group < from; group++) {
      if (sizes[group] === 0 || group === into) continue
      if (partners[group] === into || partners[group] === from) findPartner(group)
      else if (group < into) offer(group, into)
    }
  }
  const reduced = new Float32Array(MAX_EMBEDDINGS * WIDTH)
  let index = 0
  for (let group = 0; group < count; group++) if (sizes[group]! > 0) reduced.set(row(group), index++ * WIDTH)
  return reduced
}
