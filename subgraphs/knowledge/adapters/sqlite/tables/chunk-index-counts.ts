/**
 * Encodes how often each term occurs in a chunk: for each term, in ascending order of IDs, the difference from the
 * previous ID and the count, both as little-endian base 128. It takes about two bytes per term.
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

/** Calls `visit` for each term, in ascending order of IDs. */
export function readCounts(encoded: Uint8Array, visit: (id: number, count: number) => void): void {
  let id = 0
  let value = 0
  let shift = 0
  let isCount = false
  for (const byte of encoded) {
    value |= (byte & 127) << shift
    shift += 7
    if (byte > 127) continue
    if (isCount) visit(id, value)
    else id += value
    isCount = !isCount
    value = 0
    shift = 0
  }
}

/** Returns the text that FTS5 indexes for a chunk: the IDs of its words, each as often as the word occurs. */
export function postingsOf(encoded: Uint8Array, words: ReadonlySet<number>): string {
  const ids: number[] = []
  readCounts(encoded, (id, count) => {
    if (words.has(id)) for (let i = 0; i < count; i++) ids.push(id)
  })
  return ids.join(' ')
}

/** Numbers stay below 2^31: IDs of terms in one collection, and counts in one chunk. */
function pushNumber(bytes: number[], value: number): void {
  let rest = value
  while (rest > 127) {
    bytes.push((rest & 127) | 128)
    rest >>>= 7
  }
  bytes.push(rest)
}
