import type { ChunkCandidate } from '../../ports/chunk-index.ts'
import type { Language } from '../text/language.ts'
import type { Aim } from './query-vectors.ts'
import { type ChunkFigures, judgeRelevance, type Relevance, toRelevance } from './relevance.ts'

/** The retrievers of a search: vectors and words, vectors only, or words and 3-grams only. */
export type SearchMode = 'hybrid' | 'vector' | 'lexical'

/** A candidate with its score and rank. */
export interface RankedChunk {
  readonly chunkId: string
  readonly documentId: string
  readonly generation: string
  /**
   * The estimated share of chunks with such figures that answer their query, 0 to 1, never higher than the previous
   * chunk's score. For a model without calibration, it is the cosine, except in lexical mode. After a reranker, it is
   * the reranker's score.
   */
  readonly score: number
  /** The score as a word. Null if the score is not such a share. */
  readonly relevance: Relevance | null
  /**
   * Rank among the candidates by words and 3-grams, from 1. Null if the chunk shares none with the query, or in vector
   * mode.
   */
  readonly lexicalRank: number | null
  /** Rank among the candidates by closeness, from 1. Null in lexical mode. */
  readonly vectorRank: number | null
  /** The figures behind the rank. */
  readonly explanation: Explanation
}

/** A chunk's figures. They are comparable only within one search. */
interface Explanation {
  /** The result of `Aim.closenessOf`. Null in lexical mode, or if the vector is unknown. */
  readonly closeness: number | null
  /** Null in vector mode. */
  readonly wordCoverage: number | null
  readonly gramCoverage: number | null
  readonly evidence: number
  readonly tokenCloseness: number
  /** Rank before a reranker ordered the chunks, from 1. Null without a reranker. */
  readonly rankBeforeRerank: number | null
}

interface FuseOptions {
  readonly mode: SearchMode
  readonly limit: number
  /** The aimed query vector. Null in lexical mode. */
  readonly aim: Aim | null
  /** The model's usual standard deviation of a query's cosines. Null: computed from the candidates. */
  readonly spread: number | null
  readonly language: Language | null
  /** Weight of lexical evidence relative to vectors. Default: 1. */
  readonly lexicalWeight?: number
  /** Added to the scores of some chunks, as a cosine: positive for exact things, negative for junk. */
  readonly evidence?: ReadonlyMap<string, number>
  /**
   * Added to the order of some chunks in another language than the query's, as a cosine: the result of comparing token
   * embeddings.
   */
  readonly tokenCloseness?: ReadonlyMap<string, number>
  /** The share of the query's word pairs that some chunks in its language contain, computed by `findWordPairs`. */
  readonly wordPairs?: ReadonlyMap<string, number>
}

/**
 * Weights of the two lexical retrievers beside `cosine / spread`, tuned on the development half of XQuAD, Arabic and
 * English.
 */
const LEXICAL_WEIGHT = 3
/** Weight of word pairs in the same sum. From 0.3 to 0.5, the measured quality is the same. */
const PAIR_WEIGHT = 0.4
/**
 * Lexical weight for a chunk in another language than the query's, which can share only names, numbers and quotations
 * with the query.
 */
const OTHER_LANGUAGE_LEXICAL_WEIGHT = 1.5
/** Converts evidence to lexical mode. Evidence is in cosines, which differ by 0.1 where coverages differ by 0.5. */
const EVIDENCE_IN_COVERAGE = 5
const NONE: ReadonlyMap<string, number> = new Map()

/**
 * Returns the best `limit` candidates, best first. In hybrid mode, the sum `cosine / spread + 3·words + 3·grams +
 * 0.4·pairs` reorders chunks only within a language: the k-th chunk of a language by the sum gets the k-th best
 * closeness of that language. Lexical evidence cannot compare languages, because a chunk in another language shares no
 * words with the query, however well it answers it. Then evidence from the texts is added, which compares all
 * languages. A chunk without a language counts as one in the query's language. Otherwise it would always be the best of
 * its group. Equal scores are ordered by chunk ID.
 */
export function fuse(candidates: readonly ChunkCandidate[], options: FuseOptions): readonly RankedChunk[] {
  const { mode, limit, aim, lexicalWeight = 1 } = options
  const lexicalScore = (c: ChunkCandidate) => lexicalWeight * lexicalCoverage(c)
  const byMeaning =
    aim === null || mode === 'lexical'
      ? []
      : ranked(
          candidates.filter((c) => c.cosine !== null),
          aim.closenessOf,
        )
  const byWords =
    mode === 'vector'
      ? []
      : ranked(
          candidates.filter((c) => lexicalScore(c) > 0),
          lexicalScore,
        )
  const scored =
    mode === 'lexical' || aim === null
      ? lexical(byWords, lexicalScore, options.evidence ?? NONE)
      : climbed(mode === 'vector' ? byMeaning : candidates, lexicalScore, { ...options, aim })
  const vectorRanks = toRanks(byMeaning)
  const lexicalRanks = toRanks(byWords)
  const scoreOf = toScores(candidates, options)
  return scored.slice(0, limit).map(({ candidate, score: orderingScore }) => ({
    chunkId: candidate.chunkId,
    documentId: candidate.documentId,
    generation: candidate.generation,
    ...scoreOf(candidate, orderingScore),
    lexicalRank: lexicalRanks.get(candidate.chunkId) ?? null,
    vectorRank: vectorRanks.get(candidate.chunkId) ?? null,
    explanation: explain(candidate, options),
  }))
}

/**
 * Returns a function that scores chunks. Call it from the best chunk on. `orderingScore` is the value by which the
 * chunks are ordered.
 */
function toScores(candidates: readonly ChunkCandidate[], options: FuseOptions) {
  const { mode, aim, language, evidence = NONE, tokenCloseness = NONE } = options
  if (mode !== 'lexical' && aim?.logOddsOf === null) {
    return (_: ChunkCandidate, orderingScore: number) => ({ score: Math.min(1, Math.max(0, orderingScore)), relevance: null })
  }
  const toFigures = (c: ChunkCandidate): ChunkFigures => ({
    logOdds: c.cosine === null || !aim?.logOddsOf ? null : aim.logOddsOf(aim.closenessOf(c)),
    coverage: lexicalCoverage(c) / 2,
    isOwnLanguage: !isOtherLanguage(c, language),
    evidence: evidence.get(c.chunkId) ?? 0,
    tokenCloseness: tokenCloseness.get(c.chunkId) ?? 0,
  })
  const relevanceOf = judgeRelevance(mode, candidates.map(toFigures))
  let score = 1
  return (candidate: ChunkCandidate) => {
    score = Math.min(score, relevanceOf(toFigures(candidate)))
    return { score, relevance: toRelevance(score) }
  }
}

function explain(candidate: ChunkCandidate, options: FuseOptions): Explanation {
  const { mode, aim, lexicalWeight = 1, evidence = NONE, tokenCloseness = NONE } = options
  return {
    closeness: mode === 'lexical' || aim === null || candidate.cosine === null ? null : aim.closenessOf(candidate),
    wordCoverage: mode === 'vector' ? null : lexicalWeight * candidate.wordCoverage,
    gramCoverage: mode === 'vector' ? null : lexicalWeight * candidate.gramCoverage,
    evidence: evidence.get(candidate.chunkId) ?? 0,
    tokenCloseness: tokenCloseness.get(candidate.chunkId) ?? 0,
    rankBeforeRerank: null,
  }
}

interface Scored {
  readonly candidate: ChunkCandidate
  readonly score: number
  readonly position: number
}

/**
 * Reorders the chunks of each language by the sum: the k-th chunk by the sum gets the k-th best closeness of its
 * language.
 */
function climbed(
  candidates: readonly ChunkCandidate[],
  lexicalScore: (c: ChunkCandidate) => number,
  options: FuseOptions & { readonly aim: Aim },
): Scored[] {
  const { mode, aim, language, evidence = NONE, tokenCloseness = NONE, wordPairs = NONE } = options
  const unit = options.spread ?? deviation(candidates.map(aim.cosineOf))
  const ownWeight = mode === 'vector' ? 0 : LEXICAL_WEIGHT
  const otherLanguageWeight = mode === 'vector' ? 0 : OTHER_LANGUAGE_LEXICAL_WEIGHT
  const weightedScore = (c: ChunkCandidate) =>
    isOtherLanguage(c, language)
      ? (aim.closenessOf(c) + (tokenCloseness.get(c.chunkId) ?? 0)) / unit + otherLanguageWeight * lexicalScore(c)
      : aim.cosineOf(c) / unit + ownWeight * lexicalScore(c) + PAIR_WEIGHT * (wordPairs.get(c.chunkId) ?? 0)
  const scored = [...Map.groupBy(candidates, (c) => c.language ?? language).values()].flatMap((ladder) => {
    const rungs = ladder.map(aim.closenessOf).sort((a, b) => b - a)
    return ranked(ladder, weightedScore).map(
      (candidate, position): Scored => ({ candidate, score: rungs[position]! + (evidence.get(candidate.chunkId) ?? 0), position }),
    )
  })
  // Position precedes ID, so that equal scores do not undo a language's order by the sum.
  return scored.sort((a, b) => b.score - a.score || a.position - b.position || byId(a.candidate, b.candidate))
}

function lexical(
  byWords: readonly ChunkCandidate[],
  lexicalScore: (c: ChunkCandidate) => number,
  evidence: ReadonlyMap<string, number>,
): Scored[] {
  return byWords
    .map((candidate, position): Scored => {
      const share = lexicalScore(candidate) / 2 + EVIDENCE_IN_COVERAGE * Math.min(0, evidence.get(candidate.chunkId) ?? 0)
      return { candidate, score: Math.min(1, Math.max(0, share)), position }
    })
    .sort((a, b) => b.score - a.score || a.position - b.position)
}

/** Whether the chunk is in a language that shares hardly any words with the query's. */
export function isOtherLanguage({ language }: Pick<ChunkCandidate, 'language'>, ofQuery: Language | null): boolean {
  return language !== null && ofQuery !== null && language !== ofQuery
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

function lexicalCoverage(c: ChunkCandidate): number {
  return c.wordCoverage + c.gramCoverage
}

/** Returns the standard deviation. Returns 1 instead of 0, so that lexical evidence decides between equal cosines. */
function deviation(values: readonly number[]): number {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length
  return Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length) || 1
}
