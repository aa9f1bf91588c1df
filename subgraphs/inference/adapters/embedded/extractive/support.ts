import { plainText } from '../../../domain/chat/question.ts'
import type { CosineCalibration } from '../../../ports/engines.ts'
import type { Candidate } from './candidates.ts'
import { detectLanguage, toTerms } from './language.ts'

/** Gives the vectors of texts, in order. The texts include e5's prefixes. */
type Embed = (texts: readonly string[]) => Promise<readonly Float32Array[]>

/** Candidates embedded for one answer, about 10 ms each: those of eight search results. */
const MAX_EMBEDDED = 64
/**
 * How much of a text's closeness to questions in general is taken away from the cosine. The same as in search.
 */
const SHARE = 0.5
/** Added to a candidate with all of the question's terms. Terms weigh more the rarer they are in the context. */
const LEXICAL_WEIGHT = 0.1
/** What a term of the earlier question weighs in a follow-up. */
const EARLIER_WEIGHT = 0.5
/**
 * Least score of an answer: so much, and `GROWTH` for each e-fold of candidates, because the best of many that are all
 * wrong has a higher score. Across languages words do not help. `test/retrieval/extractive.test.ts` measures what this
 * loses and admits.
 */
const LEAST_SCORE = { within: 0.065, across: 0.048 }
const GROWTH = 0.007
/** Further quotes are within this of the best. */
const QUOTE_MARGIN = 0.01
const MAX_QUOTES = 3

interface Asked {
  readonly question: string
  /** The question that a follow-up refers to; '' for one that can be understood alone. */
  readonly earlier: string
}

/** Gives at most three candidates that answer the question, best first; none when nothing supports an answer. */
export async function findSupport(
  { question, earlier }: Asked,
  candidates: readonly Candidate[],
  calibration: CosineCalibration,
  embed: Embed,
): Promise<readonly Candidate[]> {
  const lexical = lexicalScores(question, earlier, candidates)
  const chosen = choose(candidates, lexical)
  // A follow-up means something only with the earlier question, and is nearer to its own answer without it.
  const queries = [...(earlier === '' ? [] : [`${earlier} ${question}`]), question].map((text) => `query: ${plainText(text)}`)
  const embedded = await embed([...queries, ...chosen.map(({ text }) => `passage: ${plainText(text)}`)])
  const [whole, own] = [embedded[0]!, embedded[queries.length - 1]!]
  const language = detectLanguage(question)
  const anchors = { ar: calibration.arabicAnchor, en: calibration.englishAnchor }
  const scored = chosen.map((candidate, index) => {
    const vector = embedded[queries.length + index]!
    const closeness = (query: Float32Array) =>
      dot(query, vector) - SHARE * (dot(query, anchors[candidate.language]) + dot(anchors[language], vector))
    const words = LEXICAL_WEIGHT * lexical.get(candidate)!
    return { candidate, words, score: (closeness(whole) + closeness(own)) / 2 + words, support: closeness(whole) + words }
  })
  scored.sort((a, b) => b.score - a.score)
  const best = scored[0]!
  // The rows of a table are alike, and count as one.
  const growth = GROWTH * Math.log(1 + chosen.filter(({ row }) => !row).length)
  return scored
    .filter(({ candidate, score, support, words }) => {
      const isSupported = support >= growth + (candidate.language === language ? LEAST_SCORE.within : LEAST_SCORE.across)
      // Rows of a table are alike: only those that have as many of the question's words are answers as well.
      const isAsGood = candidate === best.candidate || !candidate.row || words >= best.words
      return isSupported && isAsGood && score >= best.score - QUOTE_MARGIN
    })
    .slice(0, MAX_QUOTES)
    .map(({ candidate }) => candidate)
}

/** Half by their words. The others in order, because the best search results come first: text in the other language. */
function choose(candidates: readonly Candidate[], lexical: ReadonlyMap<Candidate, number>): readonly Candidate[] {
  if (candidates.length <= MAX_EMBEDDED) return candidates
  const byWords = candidates.toSorted((a, b) => lexical.get(b)! - lexical.get(a)!)
  return [...new Set([...byWords.slice(0, MAX_EMBEDDED / 2), ...candidates])].slice(0, MAX_EMBEDDED)
}

/** The share of the question's terms in each candidate, 0 to 1. */
function lexicalScores(question: string, earlier: string, candidates: readonly Candidate[]): ReadonlyMap<Candidate, number> {
  const holding = new Map<string, number>()
  for (const { terms } of candidates) for (const term of terms) holding.set(term, (holding.get(term) ?? 0) + 1)
  const rarity = (term: string) => Math.log(1 + candidates.length / ((holding.get(term) ?? 0) + 0.5))
  const weights = new Map(toTerms(earlier).map((term) => [term, EARLIER_WEIGHT * rarity(term)]))
  for (const term of toTerms(question)) weights.set(term, rarity(term))
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0)
  return new Map(
    candidates.map((candidate) => {
      let held = 0
      for (const term of candidate.terms) held += weights.get(term) ?? 0
      return [candidate, total === 0 ? 0 : held / total]
    }),
  )
}

/** The cosine, because all vectors have length 1. */
function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index += 1) sum += a[index]! * b[index]!
  return sum
}
