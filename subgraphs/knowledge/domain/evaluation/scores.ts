import type { Language } from '../text/language.ts'
import { RANKINGS, type Ranking, type Ranks } from './ranks.ts'

/** The number of top hits that nDCG and MRR consider. */
const DEPTH = 10

/**
 * Quality of the search results for questions of one language in one ranking. Each figure is a mean over the questions,
 * 0 to 1.
 */
export interface Scores {
  readonly ranking: Ranking
  /** Null: the questions of all languages. */
  readonly language: Language | null
  readonly questionCount: number
  /** The share of the expected chunks among the first hit, the first 3 and the first 10. */
  readonly recallAt1: number
  readonly recallAt3: number
  readonly recallAt10: number
  /** Normalized discounted cumulative gain of the first 10 hits, with binary relevance. */
  readonly ndcgAt10: number
  /** The mean of 1 / rank of the first expected chunk among the first 10 hits. */
  readonly mrrAt10: number
}

/** A question with the ranks of its expected chunks. */
export interface JudgedQuestion {
  readonly language: Language | null
  readonly ranks: Ranks
}

/** Scores every ranking over all questions, then over the questions of each language that occurs. */
export function scoreQuestions(questions: readonly JudgedQuestion[]): readonly Scores[] {
  const languages = (['ar', 'en'] as const).filter((language) => questions.some((question) => question.language === language))
  return RANKINGS.flatMap((ranking) =>
    [null, ...languages].map((language) => {
      const judged = questions.filter((question) => language === null || question.language === language)
      const ranks = judged.map((question) => question.ranks[ranking])
      return {
        ranking,
        language,
        questionCount: judged.length,
        recallAt1: mean(ranks.map((each) => recall(each, 1))),
        recallAt3: mean(ranks.map((each) => recall(each, 3))),
        recallAt10: mean(ranks.map((each) => recall(each, DEPTH))),
        ndcgAt10: mean(ranks.map(ndcg)),
        mrrAt10: mean(ranks.map(reciprocalRank)),
      }
    }),
  )
}

type ExpectedRanks = readonly (number | null)[]

function recall(ranks: ExpectedRanks, depth: number): number {
  return ranks.filter((rank) => rank !== null && rank <= depth).length / ranks.length
}

function ndcg(ranks: ExpectedRanks): number {
  // One hit may match several expected chunks and then counts once.
  const found = new Set(ranks.filter((rank) => rank !== null && rank <= DEPTH))
  const ideal = ranks.reduce<number>((sum, _rank, i) => sum + gain(i + 1), 0)
  return Math.min(1, [...found].reduce<number>((sum, rank) => sum + gain(rank!), 0) / ideal)
}

function gain(rank: number): number {
  return 1 / Math.log2(rank + 1)
}

function reciprocalRank(ranks: ExpectedRanks): number {
  const found = ranks.filter((rank) => rank !== null && rank <= DEPTH) as readonly number[]
  return found.length === 0 ? 0 : 1 / Math.min(...found)
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}
