import type { ChunkCandidate } from '../../ports/chunk-index.ts'
import type { Language } from '../text/language.ts'
import type { Aim } from './query-vectors.ts'
import { type ChunkFigures, judgeRelevance, type Relevance, toRelevance } from './relevance.ts'

export type SearchMode = 'hybrid' | 'vector' | 'lexical'

export interface RankedChunk {
  readonly chunkId: string
  readonly documentId: string
  readonly generation: string
  /**
   * The share of chunks with this score that answer their query, 0 to 1, never above that of a chunk before it. With a
   * model whose calibration is not known: the cosine, but in lexical mode. After a reranker: the reranker's.
   */
  readonly score: number
  /** What the score says in a word; null where it is no such share. */
  readonly relevance: Relevance | null
  /**
   * Place among the candidates by words and 3-grams, from 1; null when it shares neither with the query, or the mode is
   * vector.
   */
  readonly lexicalRank: number | null
  /** Place among the candidates by closeness, from 1; null when the mode is lexical. */
  readonly vectorRank: number | null
  /** The figures that gave it its place. */
  readonly explanation: Explanation
}

/** Figures of one chunk, of which those of one search can be compared. */
interface Explanation {
  /** As `Aim.closenessOf`; null when the mode is lexical, or its vector is not known. */
  readonly closeness: number | null
  /** Null when the mode is vector. */
  readonly wordCoverage: number | null
  readonly gramCoverage: number | null
  readonly evidence: number
  readonly tokenCloseness: number
  /** Its place before a reranker ordered the chunks, from 1; null: none did. */
  readonly rankBeforeRerank: number | null
}

interface FuseOptions {
  readonly mode: SearchMode
  readonly limit: number
  /** How the query's vector was aimed; null in lexical mode. */
  readonly aim: Aim | null
  /** The model's usual standard deviation of a query's cosines; null takes it from the candidates. */
  readonly spread: number | null
  /** The query's language. */
  readonly language: Language | null
  /** How much words count against meaning; absent: 1. */
  readonly lexicalWeight?: number
  /** What the texts of some chunks add to their scores, as a cosine: exact things, and less than 0 for junk. */
  readonly evidence?: ReadonlyMap<string, number>
  /** What comparing tokens adds to the order of some chunks in another language than the query's, as a cosine. */
  readonly tokenCloseness?: ReadonlyMap<string, number>
  /** The share of the query's neighbouring words that some chunks of its language have, as `findWordPairs` gives it. */
  readonly wordPairs?: ReadonlyMap<string, number>
}

/**
 * Weights of the two lexical legs beside `cosine / spread`, tuned on the development half of XQuAD, Arabic and English.
 */
const LEXICAL_WEIGHT = 3
/** Of neighbouring words, in the same sum. From .3 to .5 the figures are the same. */
const PAIR_WEIGHT = 0.4
/** For a chunk in another language than the query's: only names, numbers and quotations can be shared. */
const OTHER_LANGUAGE_LEXICAL_WEIGHT = 1.5
/** What evidence of 1 is in lexical mode: evidence is in cosines, which differ by .1 where coverages differ by .5. */
const EVIDENCE_IN_COVERAGE = 5
const NONE: ReadonlyMap<string, number> = new Map()

/**
 * Gives the best `limit` candidates, best first. In hybrid mode, the sum `cosine / spread + 3·words + 3·grams +
 * .4·pairs` reorders chunks within a language only: the k-th chunk of a language by the sum gets the k-th best closeness
 * of that language.
 * Lexical evidence cannot compare languages, because a passage in another language shares no words with the query,
 * however well it answers. Evidence from the texts is then added, and compares all. A chunk without a language joins
 * the query's: by itself it would always be the best of its kind. Equal scores are ordered by chunk id.
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

/** Returns a function that gives the scores of chunks from the best on. `place` is what they are ordered by. */
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

/** Each language is a ladder whose rungs are its chunks' closenesses, which the chunks climb by the sum. */
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
  // By place before id, so that equal scores do not undo a language's order by the sum.
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

/** Whether the words of the query can hardly be in the chunk. */
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

/** Standard deviation; 1 when there is none, so that with equal cosines the words decide. */
function deviation(values: readonly number[]): number {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length
  return Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length) || 1
}
