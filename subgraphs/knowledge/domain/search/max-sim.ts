/** Numbers of one token state. */
const WIDTH = 128
/** The most states of a query or a passage: 4 KB. More than that is not compared. */
export const MAX_STATES_BYTES = 32 * WIDTH

/**
 * How much of what the query's tokens mean is somewhere in the passage: for each state of the query the nearest one of
 * the passage, and the mean of these. States are rows of whole numbers from -127 to 127, so the order of the sums does
 * not matter. In the squared unit of a state's numbers; 0 without states.
 */
export function maxSim(query: Int8Array, passage: Int8Array): number {
  let sum = 0
  for (let q = 0; q < query.length; q += WIDTH) {
    let nearest = Number.NEGATIVE_INFINITY
    for (let p = 0; p < passage.length; p += WIDTH) {
      let dot = 0
      for (let i = 0; i < WIDTH; i++) dot += query[q + i]! * passage[p + i]!
      if (dot > nearest) nearest = dot
    }
    sum += nearest
  }
  return query.length === 0 || passage.length === 0 ? 0 : (sum * WIDTH) / query.length
}
