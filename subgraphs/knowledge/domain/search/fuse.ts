import type { ChunkCandidate } from '../../ports/chunk-index.ts'

export type SearchMode = 'hybrid' | 'vector' | 'lexical'

export interface RankedChunk {
  readonly chunkId: string
  readonly documentId: string
  readonly generation: string
  /** Higher is better. Comparable within one answer and one mode. */
  readonly score: number
  /**
   * Place among the candidates by words and 3-grams, from 1; null when it shares neither with the query, or the mode is
   * vector.
   */
  readonly lexicalRank: number | null
  /** Place among the candidates by cosine, from 1; null when the mode is lexical. */
  readonly vectorRank: number | null
}

/**
 * Weights of the two lexical legs beside `cosine / spread`, tuned on the development half of XQuAD, Arabic and English.
 */
const WORD_WEIGHT = 3
const GRAM_WEIGHT = 3

/**
 * Gives the best `limit` candidates, best first. In hybrid mode, the sum `cosine / spread + 3·words + 3·grams` reorders
 * chunks within a language only: the k-th chunk of a language by the sum gets the k-th best cosine of that language.
 * Lexical evidence cannot compare languages, because a passage in another language shares no words with the query,
 * however well it answers. `spread` is the model's usual standard deviation of a query's cosines; null takes it from
 * the candidates. Equal scores are ordered by chunk id.
 */
export function fuse(
  candidates: readonly ChunkCandidate[],
  options: { readonly spread: number | null; readonly mode: SearchMode; readonly limit: number },
): readonly RankedChunk[] {
  const { mode, limit } = options
  const byMeaning =
    mode === 'lexical'
      ? []
      : ranked(
          candidates.filter((c) => c.cosine !== null),
          cosineScore,
        )
  const byWords =
    mode === 'vector'
      ? []
      : ranked(
          candidates.filter((c) => lexicalScore(c) > 0),
          lexicalScore,
        )
  const scored =
    mode === 'lexical'
      ? scoredBy(byWords, lexicalScore)
      : mode === 'vector'
        ? scoredBy(byMeaning, cosineScore)
        : hybrid(candidates, options.spread)

  const vectorRanks = toRanks(byMeaning)
  const lexicalRanks = toRanks(byWords)
  return scored.slice(0, limit).map(({ candidate: { chunkId, documentId, generation }, score }) => ({
    chunkId,
    documentId,
    generation,
    score,
    lexicalRank: lexicalRanks.get(chunkId) ?? null,
    vectorRank: vectorRanks.get(chunkId) ?? null,
  }))
}

interface Scored {
  readonly candidate: ChunkCandidate
  readonly score: number
}

function hybrid(candidates: readonly ChunkCandidate[], spread: number | null): Scored[] {
  const unit = spread ?? deviation(candidates.map(cosineScore))
  const weightedScore = (c: ChunkCandidate) => cosineScore(c) / unit + WORD_WEIGHT * c.wordCoverage + GRAM_WEIGHT * c.gramCoverage
  const scored = [...Map.groupBy(candidates, (c) => c.language).values()].flatMap((ofLanguage) => {
    const cosines = ofLanguage.map(cosineScore).sort((a, b) => b - a)
    return ranked(ofLanguage, weightedScore).map((candidate, place) => ({ candidate, score: cosines[place]!, place }))
  })
  // By place before id, so that equal cosines do not undo a language's order by the sum.
  return scored.sort((a, b) => b.score - a.score || a.place - b.place || byId(a.candidate, b.candidate))
}

function scoredBy(candidates: readonly ChunkCandidate[], toScore: (c: ChunkCandidate) => number): Scored[] {
  return candidates.map((candidate) => ({ candidate, score: toScore(candidate) }))
}

function ranked(candidates: readonly ChunkCandidate[], toScore: (c: ChunkCandidate) => number): ChunkCandidate[] {
  return candidates.toSorted((a, b) => toScore(b) - toScore(a) || byId(a, b))
}

function toRanks(best: readonly ChunkCandidate[]): ReadonlyMap<string, number> {
  return new Map(best.map((c, i) => [c.chunkId, i + 1]))
}

function byId(a: ChunkCandidate, b: ChunkCandidate): number {
  return a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0
}

/** A candidate without a cosine comes after all that have one. */
function cosineScore(c: ChunkCandidate): number {
  return c.cosine ?? -1
}

function lexicalScore(c: ChunkCandidate): number {
  return c.wordCoverage + c.gramCoverage
}

/** Standard deviation; 1 when there is none, so that with equal cosines the words decide. */
function deviation(values: readonly number[]): number {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length
  return Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length) || 1
}
