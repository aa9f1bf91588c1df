import type { DatabaseSync } from 'node:sqlite'
import type { CollectionRow, Tables } from '../chunk-index-schema.ts'
import { Best, OFFER_BYTES, offerValues } from './best-places.ts'
import { aligned, type Kernels } from './kernels.ts'
import type { FindList } from './list-cache.ts'
import { RANGE } from './posting-lists.ts'
import type { Segment } from './segment-cache.ts'
import { B, K1 } from './segment-tables.ts'

export type Leg = 'w' | 'g'

/**
 * Scores are summed with 24 bits here, and exactly for what is found. Rounding moves a sum of a thousand terms by less
 * than this share.
 */
const ROUNDING = 1e-4

/** The least normal float32: a passage without any of the terms has 0, and is not offered. */
const LEAST_SCORE = 2 ** -126

interface Term {
  readonly id: number
  readonly weight: number
  /** Chunks of the collection that contain it. */
  readonly chunks: number
}

/** One lexical leg of a query over one collection. */
interface LexicalLeg {
  /** Has at least the `count` chunks with the best coverage above 0 of those that `isEligible` accepts. */
  best(segments: readonly Segment[], findList: FindList, count: number, isEligible: (id: number) => boolean): readonly number[]
  /**
   * Share of the query that a chunk with these counts of the terms covers, 0 to 1: BM25 divided by the query's own
   * maximum.
   */
  coverage(counts: Uint32Array, length: number): number
  readonly termIds: readonly number[]
}

export function lexicalLeg(
  db: DatabaseSync,
  tables: Tables,
  kernels: Kernels,
  collection: CollectionRow,
  leg: Leg,
  query: readonly string[],
): LexicalLeg {
  const averageLength = (leg === 'w' ? collection.words : collection.grams) / collection.chunks || 1
  const find = db.prepare(`SELECT id, chunks FROM ${tables.terms} WHERE term = ?`)
  const terms: Term[] = []
  let ceiling = 0
  for (const text of new Set(query)) {
    const found = find.get(leg + text) as { id: number; chunks: number } | undefined
    const chunks = found?.chunks ?? 0
    const weight = Math.log(1 + (collection.chunks - chunks + 0.5) / (chunks + 0.5)) * (K1 + 1)
    ceiling += weight
    if (found) terms.push({ id: found.id, chunks, weight })
  }
  terms.sort((a, b) => a.chunks - b.chunks || a.id - b.id)

  return {
    termIds: terms.map(({ id }) => id),
    best(segments, findList, count, isEligible) {
      if (terms.length === 0) return []
      const best = new Best(count, ROUNDING)
      const soFar = new Best(count, ROUNDING)
      for (const segment of segments) scoreSegment(kernels, findList, { segment, leg, terms, averageLength }, { best, soFar }, isEligible)
      return [...best.ids]
    },
    coverage(counts, length) {
      const norm = K1 * (1 - B + (B * length) / averageLength)
      let sum = 0
      for (let i = 0; i < terms.length; i++) sum += (terms[i]!.weight * counts[i]!) / (counts[i]! + norm)
      return ceiling === 0 ? 0 : sum / ceiling
    },
  }
}

interface Scoring {
  readonly segment: Segment
  readonly leg: Leg
  /** Rarest first. */
  readonly terms: readonly Term[]
  readonly averageLength: number
}

interface Bests {
  readonly best: Best
  /** Keeps as many, of one segment in the middle of its sums. */
  readonly soFar: Best
}

/**
 * Offers the passages of one segment (MaxScore, Turtle and Flood 1995). Once the terms that are left give too little for
 * a passage that has none of those before, only ranges are read in which a passage can still become one of the best.
 */
function scoreSegment(
  kernels: Kernels,
  findList: FindList,
  { segment, leg, terms, averageLength }: Scoring,
  { best, soFar }: Bests,
  isEligible: (id: number) => boolean,
): void {
  const lengths = leg === 'w' ? segment.words : segment.grams
  const writtenAverage = leg === 'w' ? segment.wordsAverage : segment.gramsAverage
  // With a longer average a passage is shorter beside it, and its share higher, by no more than that.
  const drift = Math.max(1, averageLength / writtenAverage)
  const found = terms.flatMap(({ id, weight }) => {
    const list = findList(segment.segment, id)
    return list ? [{ list, weight, most: weight * Math.min(1, list.highest * drift) }] : []
  })
  if (found.length === 0) return
  const left = found.map(({ most }) => most)
  for (let i = left.length - 2; i >= 0; i--) left[i]! += left[i + 1]!
  if (left[0]! * (1 + ROUNDING) < best.least) return

  const bytes = lengths.byteLength
  const ranges = lengths.length / RANGE
  const [normsAt, singleAt, scoresAt, reachedAt] = [bytes, 2 * bytes, 3 * bytes, 4 * bytes]
  const startsAt = aligned(reachedAt + ranges)
  const placesAt = aligned(startsAt + 4 * (ranges + 1))
  const listAt = placesAt + OFFER_BYTES
  const longest = found.reduce((max, { list }) => Math.max(max, list.postings.length, list.dense?.length ?? 0), 0)
  const buffer = kernels.reserve(listAt + longest)
  const memory = new Uint8Array(buffer)
  const reached = memory.subarray(reachedAt, reachedAt + ranges)
  const starts = new Uint32Array(buffer, startsAt, ranges + 1)
  const scores = new Float32Array(buffer, scoresAt, lengths.length).fill(0)
  new Float32Array(buffer, 0, lengths.length).set(lengths)
  const { norms, score, scoreDense, scoreReached, reaching } = kernels.functions
  norms(0, lengths.length, K1 * (1 - B), (K1 * B) / averageLength, normsAt, singleAt)
  const { chunks } = segment
  const offerTo = (to: Best) =>
    offerValues(kernels, scores, placesAt, LEAST_SCORE, to, (place) => (isEligible(chunks[place]!) ? chunks[place]! : null))

  // The largest segment comes first, and shows what the others have to beat.
  let nextLook = best.least > 0 ? 0 : left[0]! / 2
  for (const [i, { list, weight }] of found.entries()) {
    const isShort = list.ranges === null && list.dense === null
    if (!isShort) {
      if (left[i]! < nextLook) {
        // What passages have so far they will have in the end, too.
        soFar.restart(best.least)
        offerTo(soFar)
        soFar.settle()
        best.raise(soFar.least)
        nextLook = left[i]! / 2
      }
      const least = best.least - left[i]! * (1 + ROUNDING)
      if (least > 0) reaching(scoresAt, ranges, least, reachedAt)
      else reached.fill(1)
    }
    if (list.dense) {
      memory.set(list.dense, listAt)
      scoreDense(listAt, reachedAt, ranges, weight, normsAt, scoresAt)
    }
    memory.set(list.postings, listAt)
    if (list.ranges) {
      starts.fill(list.postings.length)
      starts.set(list.ranges)
      scoreReached(listAt, startsAt, reachedAt, ranges, weight, normsAt, singleAt, scoresAt)
    } else {
      score(listAt, listAt + list.postings.length, -1, weight, normsAt, singleAt, scoresAt)
    }
  }
  offerTo(best)
  best.settle()
}
