/** Dimensions of a token embedding. */
const WIDTH = 128
/** Bytes of a chunk's token embedding: one sign bit per dimension. */
const ROW = WIDTH / 8
/** The first byte of a chunk's token embeddings in this format. Other formats are not compared. */
const BINARY_FORM = 1
/** Maximum bytes stored per chunk: 512 token embeddings. */
export const MAX_TOKEN_EMBEDDINGS_BYTES = 1 + 512 * ROW
/** The number of sign combinations of eight numbers. */
const SUMS = 2 ** 8
/**
 * Scales the result to -1 to 1. The query's numbers are 127 times those of a vector of length 1, and a sign is √128
 * times as large.
 */
const UNIT = 127 * Math.sqrt(WIDTH)

/**
 * Returns a function that compares a query's token embeddings with a chunk's (MaxSim): the mean over the query's tokens
 * of the similarity to the nearest token of the chunk, from -1 to 1. The query's token embeddings are rows of integers
 * from -127 to 127. Of the chunk's, only the signs are known. The function returns null if either has none.
 */
export function toMaxSim(query: Int8Array): (chunk: Int8Array) => number | null {
  const tables = Array.from({ length: query.length / WIDTH }, (_, row) => toTable(query.subarray(row * WIDTH, (row + 1) * WIDTH)))
  return (chunk) => {
    if (tables.length === 0 || chunk.length <= ROW || chunk[0] !== BINARY_FORM || chunk.length % ROW !== 1) return null
    const bits = new Uint8Array(chunk.buffer, chunk.byteOffset + 1, chunk.length - 1)
    return tables.reduce((sum, table) => sum + findNearest(table, bits), 0) / tables.length / UNIT
  }
}

/**
 * For each group of eight numbers, precomputes the sums with all sign combinations, so that a chunk's bytes are table
 * indices.
 */
function toTable(state: Int8Array): Int16Array {
  const table = new Int16Array(ROW * SUMS)
  for (let byte = 0; byte < ROW; byte++) {
    const numbers = state.subarray(byte * 8, byte * 8 + 8)
    table[byte * SUMS] = -numbers.reduce((sum, x) => sum + x, 0)
    // Take the sum without the highest bit, and add that bit's number instead of subtracting it.
    for (let pattern = 1; pattern < SUMS; pattern++) {
      const highest = 31 - Math.clz32(pattern)
      table[byte * SUMS + pattern] = table[byte * SUMS + (pattern ^ (1 << highest))]! + 2 * numbers[highest]!
    }
  }
  return table
}

function findNearest(table: Int16Array, bits: Uint8Array): number {
  let nearest = Number.NEGATIVE_INFINITY
  for (let at = 0; at < bits.length; at += ROW) {
    let sum = 0
    for (let byte = 0; byte < ROW; byte++) sum += table[byte * SUMS + bits[at + byte]!]!
    if (sum > nearest) nearest = sum
  }
  return nearest
}
