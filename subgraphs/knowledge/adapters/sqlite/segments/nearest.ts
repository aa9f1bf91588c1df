import type { DatabaseSync } from 'node:sqlite'
import type { Tables } from '../chunk-index-schema.ts'
import { Best } from './best-places.ts'
import type { Kernels } from './kernels.ts'
import type { Segment } from './segment-cache.ts'
import { CodedQuery } from './vector-codes.ts'
import { cosinesOf } from './vectors.ts'

/**
 * What the first bits of the codes find is compared by both bits: so many for each chunk that is asked for, at least so
 * many, and one in so many of all. With one in 64 of 200,000 the recall of the ten nearest is .997, with one in 40 it is
 * 1.
 */
const REFINED_PER_CANDIDATE = 12
const MIN_REFINED = 1_000
const ONE_REFINED_OF = 64
/**
 * What both bits find is compared by the vectors: so many for each chunk that is asked for, and one in so many of all
 * besides; at least so many. With 300 of 200,000 the recall of the ten nearest is the same as with all.
 */
const COMPARED_PER_CANDIDATE = 3
const ONE_COMPARED_OF = 1_000
const MIN_COMPARED = 300

/**
 * The `count` chunks that are nearest to a query, among those that `isEligible` accepts: the best by their codes are
 * compared by their vectors. `eligible` has all of them if they are few enough to be compared at once.
 */
export function nearestTo(
  db: DatabaseSync,
  tables: Tables,
  kernels: Kernels,
  segments: readonly Segment[],
  query: Float32Array,
  count: number,
  eligible: Eligible,
): ReadonlyMap<number, number> {
  const all = eligible.ids?.size ?? segments.reduce((sum, { passages, buried }) => sum + passages - buried, 0)
  const refined = Math.max(MIN_REFINED, count * REFINED_PER_CANDIDATE, Math.ceil(all / ONE_REFINED_OF))
  const compared = Math.max(MIN_COMPARED, count * COMPARED_PER_CANDIDATE + Math.ceil(all / ONE_COMPARED_OF))
  const ids =
    eligible.ids && eligible.ids.size <= refined
      ? [...eligible.ids]
      : shortlist(kernels, segments, query, { refined, compared, isEligible: eligible.ids && eligible.has })
  const cosines = cosinesOf(db, tables, kernels, query, ids)
  return new Map([...cosines].sort(([a, x], [b, y]) => y - x || a - b).slice(0, count))
}

interface Eligible {
  /** Null: all are. */
  readonly ids: ReadonlySet<number> | null
  readonly has: (id: number) => boolean
}

interface Shortlist {
  readonly refined: number
  readonly compared: number
  /** Null: all are. */
  readonly isEligible: ((id: number) => boolean) | null
}

function shortlist(
  kernels: Kernels,
  segments: readonly Segment[],
  query: Float32Array,
  { refined, compared, isEligible }: Shortlist,
): readonly number[] {
  const coded = new CodedQuery(query)
  // Passages are counted through all segments, so that each is found again in its own.
  const first = new Best(refined)
  let before = 0
  for (const { chunks, codes } of segments) {
    const offset = before
    coded.offerAll(kernels, codes, first, (place) => (isEligible && !isEligible(chunks[place]!) ? null : offset + place))
    before += chunks.length
  }
  const { ids, scores } = first
  const best = new Best(compared)
  let from = 0
  before = 0
  for (const { chunks, codes } of segments) {
    const offset = before
    before += chunks.length
    let to = from
    while (to < ids.length && ids[to]! < before) to++
    const places = ids.subarray(from, to).map((id) => id - offset)
    const cosines = coded.refine(kernels, codes, places, scores.subarray(from, to))
    for (let i = 0; i < places.length; i++) best.offer(chunks[places[i]!]!, cosines[i]!)
    from = to
  }
  return [...best.ids]
}
