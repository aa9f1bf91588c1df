import type { ChunkCandidate } from '../../ports/chunk-index.ts'
import type { CosineCalibration } from '../../ports/inference.ts'
import type { Language } from '../text/language.ts'

/**
 * How much of a query's or a passage's closeness to questions in general is taken away from their cosine. Passages that
 * lie close to every question answer none in particular, and they are the ones that hide an answer in the other
 * language. On the development half of XQuAD the nDCG@10 of both languages together rises from .859 to .893 (Arabic
 * questions) and from .913 to .929 (English); figures are nearly the same from .3 to .7.
 */
const SHARE = 0.5

/** A query on its way to the index: what to search by, and how to read what comes back. */
export interface Aim {
  /** Length 1. */
  readonly vector: Float32Array
  /** What the index compares each candidate with besides, length 1; null: nothing. */
  readonly anchor: Float32Array | null
  /** The cosine of query and passage; -1 for a candidate without one, which comes after all others. */
  cosineOf(candidate: ChunkCandidate): number
  /** The cosine beyond what questions in general have with the passage, and the query with its language. */
  closenessOf(candidate: ChunkCandidate): number
  /** The logarithm of the odds that a chunk so close answers its query; null: the model's calibration is not known. */
  readonly logOddsOf: ((closeness: number) => number) | null
}

/** For a model whose calibration is not known, cosines are used as they are. */
export function createAim(query: Float32Array, language: Language | null, calibration: CosineCalibration | null): Aim {
  if (!calibration) {
    const cosineOf = (candidate: ChunkCandidate) => candidate.cosine ?? -1
    return { vector: query, anchor: null, cosineOf, closenessOf: cosineOf, logOddsOf: null }
  }
  const { arabicAnchor, englishAnchor, midpoint, slope } = calibration
  const both = arabicAnchor.map((x, i) => (x + englishAnchor[i]!) / 2)
  const anchorOf = (of: string | null) => (of === 'ar' ? arabicAnchor : of === 'en' ? englishAnchor : both)
  const own = anchorOf(language)
  const rest = query.map((x, i) => x - SHARE * own[i]!)
  const [restLength, ownLength] = [lengthOf(rest), lengthOf(own)]
  const general = { ar: dot(query, arabicAnchor), en: dot(query, englishAnchor), other: dot(query, both) }
  const beyondOwn = ({ cosine }: ChunkCandidate) => restLength * (cosine ?? -1)
  return {
    vector: rest.map((x) => x / restLength),
    anchor: own.map((x) => x / ownLength),
    cosineOf: (candidate) => beyondOwn(candidate) + SHARE * ownLength * (candidate.anchorCosine ?? 0),
    closenessOf: (candidate) =>
      beyondOwn(candidate) - SHARE * (candidate.language === 'ar' ? general.ar : candidate.language === 'en' ? general.en : general.other),
    logOddsOf: (closeness) => slope * (closeness - midpoint),
  }
}

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, x, i) => sum + x * b[i]!, 0)
}

function lengthOf(vector: Float32Array): number {
  return Math.sqrt(dot(vector, vector))
}
