import type { SearchMode } from './fuse.ts'

/** What a score says in a word: `RELEVANCE_OF_SCORE` has the limits, and the guide on search the measured precision. */
export type Relevance = 'strong' | 'likely' | 'weak'

const RELEVANCE_OF_SCORE = { strong: 0.7, likely: 0.3 }

/** What a search knows of one chunk. */
export interface ChunkFigures {
  /** As `Aim.logOddsOf`; null: the chunk has no cosine, or the mode is lexical. */
  readonly logOdds: number | null
  /** The mean of its coverages by words and 3-grams. */
  readonly coverage: number
  /** False: its language is not the query's, so that the two share hardly any words. */
  readonly isOwnLanguage: boolean
  readonly evidence: number
  readonly tokenCloseness: number
}

interface Weights {
  readonly base: number
  readonly ownLanguage: number
  readonly closeness: number
  readonly coverage: number
  readonly evidence: number
  readonly tokenCloseness: number
}

/**
 * Logistic regressions on the ten best hits of queries whose answer is in the collection. They were fitted on one half of
 * the queries: 612 questions of XQuAD's development half over each language, over both, and over their article alone;
 * and half of the questions and exact phrases of the corpus, from its manifest and `test/eval/long-documents.json`.
 * `alone` reads a chunk's figures as they are. `beside` reads them as differences from those of the next best chunks: a
 * chunk that stands out is likely to be the answer. Junk is in neither set, so the modes without other evidence have the
 * weight of hybrid for it.
 */
const WEIGHTS: Readonly<Record<SearchMode, { readonly alone: Weights; readonly beside: Weights }>> = {
  hybrid: {
    alone: { base: -2.2, ownLanguage: -2.01, closeness: 0.525, coverage: 10.7, evidence: 22.6, tokenCloseness: 38.5 },
    beside: { base: -3.4, ownLanguage: -0.88, closeness: 1.33, coverage: 17.3, evidence: 18.6, tokenCloseness: 28.8 },
  },
  vector: {
    alone: { base: 0.7, ownLanguage: -0.83, closeness: 1.19, coverage: 0, evidence: 22.6, tokenCloseness: 0 },
    beside: { base: -2.78, ownLanguage: -0.83, closeness: 2.35, coverage: 0, evidence: 18.6, tokenCloseness: 0 },
  },
  lexical: {
    alone: { base: -5.52, ownLanguage: 0, closeness: 0, coverage: 12.9, evidence: 22.6, tokenCloseness: 0 },
    beside: { base: -3.51, ownLanguage: 0, closeness: 0, coverage: 21.3, evidence: 18.6, tokenCloseness: 0 },
  },
}
/** The next best: without the first two, because two chunks can answer, such as a document and its translation. */
const NEXT_BEST = [2, 6] as const
/** The means of the next best in those queries. They count as one chunk more, and alone where there are no others. */
const USUAL_NEXT_BEST = { logOdds: -2.73, coverage: 0.16 }
/** Beyond, a model's curve says no more. Also what a chunk without a cosine has. */
const MAX_LOG_ODDS = 12

/**
 * Returns a function that gives the share of chunks with such figures that answer their query, 0 to 1: the higher of its
 * two readings, so that the best of many good chunks does not look weak. `candidates` has the figures of all chunks that
 * were found for the query.
 */
export function judgeRelevance(mode: SearchMode, candidates: readonly ChunkFigures[]): (figures: ChunkFigures) => number {
  const { alone, beside } = WEIGHTS[mode]
  const closeness = candidates.flatMap(({ logOdds }) => (logOdds === null ? [] : [clamped(logOdds)]))
  const coverages = candidates.filter(({ isOwnLanguage }) => isOwnLanguage).map(({ coverage }) => coverage)
  const usual = {
    logOdds: meanOfNextBest(closeness, USUAL_NEXT_BEST.logOdds),
    coverage: meanOfNextBest(coverages, USUAL_NEXT_BEST.coverage),
  }
  return (figures) => {
    const logOdds = figures.logOdds === null ? -MAX_LOG_ODDS : clamped(figures.logOdds)
    const isShared = mode === 'lexical' || figures.isOwnLanguage
    const read = (weights: Weights, { logOdds: least, coverage: covered }: typeof usual) =>
      weights.base +
      (figures.isOwnLanguage ? weights.ownLanguage : 0) +
      weights.closeness * (logOdds - least) +
      (isShared ? weights.coverage * (figures.coverage - covered) : 0) +
      weights.evidence * figures.evidence +
      weights.tokenCloseness * figures.tokenCloseness
    return 1 / (1 + Math.exp(-Math.max(read(alone, { logOdds: 0, coverage: 0 }), read(beside, usual))))
  }
}

export function toRelevance(score: number): Relevance {
  return score >= RELEVANCE_OF_SCORE.strong ? 'strong' : score >= RELEVANCE_OF_SCORE.likely ? 'likely' : 'weak'
}

function meanOfNextBest(values: readonly number[], usual: number): number {
  const next = values.toSorted((a, b) => b - a).slice(...NEXT_BEST)
  return (next.reduce((sum, value) => sum + value, 0) + usual) / (next.length + 1)
}

function clamped(logOdds: number): number {
  return Math.min(MAX_LOG_ODDS, Math.max(-MAX_LOG_ODDS, logOdds))
}
