import type { DatabaseSync } from 'node:sqlite'
import type { Tables } from '../chunk-index-schema.ts'
import { Best } from './best-places.ts'
import type { Kernels } from './kernels.ts'
import type { Segment } from './segment-cache.ts'
import { CodedQuery } from './vector-codes.ts'
import { cosinesOf } from './vectors.ts'

/**
 * Chunks that are compared exactly: so many for each that is asked for, at least so many, and one in so many of all.
 * With one in 100 of 200,000 the recall of the ten nearest is .992, with one in 50 it is 1.
 */
const COMPARED_PER_CANDIDATE = 10
const MIN_COMPARED = 1_000
const ONE_COMPARED_OF = 80

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
  const compared = Math.max(MIN_COMPARED, count * COMPARED_PER_CANDIDATE, Math.ceil(all / ONE_COMPARED_OF))
  const ids = eligible.ids && eligible.ids.size <= compared ? [...eligible.ids] : shortlist(kernels, segments, query, compared, eligible)
  const cosines = cosinesOf(db, tables, kernels, query, ids)
  return new Map([...cosines].sort(([a, x], [b, y]) => y - x || a - b).slice(0, count))
}

export interface Eligible {
  /** Null: all are. */
  readonly ids: ReadonlySet<number> | null
  readonly has: (id: number) => boolean
}

function shortlist(
  kernels: Kernels,
  segments: readonly Segment[],
  query: Float32Array,
  count: number,
  { ids, has }: Eligible,
): readonly number[] {
  const best = new Best(count)
  const coded = new CodedQuery(query)
  for (const { chunks, codes } of segments) {
    coded.estimate(kernels, codes, (place, cosine) => {
      if (cosine >= best.least && (ids === null || has(chunks[place]!))) best.offer(chunks[place]!, cosine)
    })
  }
  return best.ids
}
