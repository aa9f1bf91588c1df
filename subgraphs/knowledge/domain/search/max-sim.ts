/** Numbers of one token state. */
const WIDTH = 128
/** Bytes of a passage's state: of each number, the sign is kept. */
const ROW = WIDTH / 8
/** The first byte of a passage's states. States that were written in another way are not compared. */
const BINARY_FORM = 1
/** The most that are kept of a passage: 512 states. */
export const MAX_TOKEN_EMBEDDINGS_BYTES = 1 + 512 * ROW
/** Sums of eight numbers with each combination of their signs. */
const SUMS = 2 ** 8
/** A query's numbers are 127 times those of a state of length 1, and a sign is √128 times as much. */
const UNIT = 127 * Math.sqrt(WIDTH)

/**
 * Gives a function that says how much of what the query's tokens mean is somewhere in a passage: for each state of the
 * query the nearest one of the passage, and the mean of these, from -1 to 1. The query's states are rows of whole numbers
 * from -127 to 127; of a passage's states only the signs are known. Null where either has none.
 */
export function toMaxSim(query: Int8Array): (chunk: Int8Array) => number | null {
  const tables = Array.from({ length: query.length / WIDTH }, (_, row) => toTable(query.subarray(row * WIDTH, (row + 1) * WIDTH)))
  return (chunk) => {
    if (tables.length === 0 || chunk.length <= ROW || chunk[0] !== BINARY_FORM || chunk.length % ROW !== 1) return null
    const bits = new Uint8Array(chunk.buffer, chunk.byteOffset + 1, chunk.length - 1)
    return tables.reduce((sum, table) => sum + findNearest(table, bits), 0) / tables.length / UNIT
  }
}

/** For each eight numbers of a state, their sum with the signs of each byte, so that a passage's bytes are looked up. */
function toTable(state: Int8Array): Int16Array {
  const table = new Int16Array(ROW * SUMS)
  for (let byte = 0; byte < ROW; byte++) {
    const numbers = state.subarray(byte * 8, byte * 8 + 8)
    table[byte * SUMS] = -numbers.reduce((sum, x) => sum + x, 0)
    // As without its highest bit, with the number of that bit added instead of taken away.
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
