/** Numbers of a token's embedding. */
export const WIDTH = 128
/** The most embeddings of a query. More tokens than that are put together with those that mean nearly the same. */
const MAX_STATES = 32
/** Tokens of `query: ` and of `passage: `, which are in every text. */
const PREFIX_TOKENS = { passage: 2, query: 3 }
/** What a query's embedding of length 1 is multiplied by to be rounded. */
const SCALE = 127
/** The first byte of a passage's embeddings: of their numbers, the signs follow. */
const SIGNS = 1

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
export function toTokenEmbeddings(states: Float32Array, purpose: Purpose, isWord: (place: number) => boolean): Int8Array {
  const prefix = PREFIX_TOKENS[purpose]
  const own = states.subarray(prefix * WIDTH)
  if (own.length === 0) return new Int8Array()
  if (purpose === 'passage') return toSigns(own)
  const kept = putTogether(withoutPunctuation(own, (row) => isWord(row + prefix)))
  return Int8Array.from(kept, (x) => Math.max(-SCALE, Math.min(SCALE, Math.round(x * SCALE))))
}

/** A question mark says nothing about what answers. All stay where there is nothing else. */
function withoutPunctuation(states: Float32Array, isWord: (row: number) => boolean): Float32Array {
  const rows = Array.from({ length: states.length / WIDTH }, (_, row) => row).filter(isWord)
  if (rows.length === 0) return states
  const kept = new Float32Array(rows.length * WIDTH)
  for (const [to, from] of rows.entries()) kept.set(states.subarray(from * WIDTH, (from + 1) * WIDTH), to * WIDTH)
  return kept
}

/** Bit `i` of the bytes after the first is set where number `i` is above 0. */
function toSigns(states: Float32Array): Int8Array {
  const signs = new Int8Array(1 + states.length / 8)
  signs[0] = SIGNS
  for (let i = 0; i < states.length; i++) if (states[i]! > 0) signs[1 + (i >> 3)]! |= 1 << (i & 7)
  return signs
}

/**
 * Means of at most `MAX_STATES` groups of states. Each is alone at first; then the two groups are put together whose
 * union adds least to the squared distances from the means (Ward), until few enough are left. So a rare token keeps a
 * group of its own, and the many that are alike share one.
 */
function putTogether(states: Float32Array): Float32Array {
  const count = states.length / WIDTH
  if (count <= MAX_STATES) return states
  const means = states.slice()
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
  const look = (a: number) => {
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
  for (let group = 0; group < count; group++) look(group)
  for (let left = count; left > MAX_STATES; left--) {
    const into = costs.reduce((least, cost, group) => (cost < costs[least]! ? group : least), 0)
    const from = partners[into]!
    const size = sizes[into]! + sizes[from]!
    for (const [i, x] of row(from).entries()) row(into)[i] = (row(into)[i]! * sizes[into]! + x * sizes[from]!) / size
    sizes[into] = size
    sizes[from] = 0
    costs[from] = Number.POSITIVE_INFINITY
    look(into)
    for (let group = 0; group < from; group++) {
      if (sizes[group] === 0 || group === into) continue
      if (partners[group] === into || partners[group] === from) look(group)
      else if (group < into) offer(group, into)
    }
  }
  const kept = new Float32Array(MAX_STATES * WIDTH)
  let place = 0
  for (let group = 0; group < count; group++) if (sizes[group]! > 0) kept.set(row(group), place++ * WIDTH)
  return kept
}
