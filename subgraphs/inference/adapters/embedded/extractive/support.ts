import { plainText } from '../../../domain/chat/question.ts'
import type { CosineCalibration } from '../../../ports/engines.ts'
import type { Candidate } from './candidates.ts'
import type { Conversation } from './conversation.ts'
import { detectLanguage, toTerms } from './language.ts'

/** Most candidates that are embedded for one reply, about 10 ms each: those of eight search results. */
const MAX_EMBEDDED = 64
/**
 * The share of a text's similarity to questions in general that is subtracted from the cosine. Search uses the same
 * share.
 */
const SHARE = 0.5
/** Added to a candidate with all of the question's terms. */
const LEXICAL_WEIGHT = 0.1
/** Weight of a term of the earlier question in a follow-up. */
const EARLIER_WEIGHT = 0.5
/**
 * Least score of an answer, plus `GROWTH` for each e-fold of sentences, because the best of many wrong sentences has a
 * higher score. Across languages words do not help. `test/retrieval/extractive.test.ts` measures what this loses and
 * admits.
 */
const LEAST_SCORE = { within: 0.072, across: 0.048 }
const GROWTH = 0.007
/** Further quotes score within this margin of the best. */
const QUOTE_MARGIN = 0.01
const MAX_QUOTES = 3

/**
 * Returns at most three candidates that answer the question, best first; none when nothing supports an answer. `embed`
 * returns the vectors of texts with e5's prefixes, in order.
 */
export async function findSupport(
  { question, earlier }: Pick<Conversation, 'question' | 'earlier'>,
  candidates: readonly Candidate[],
  { arabicAnchor: ar, englishAnchor: en }: CosineCalibration,
  embed: (texts: readonly string[]) => Promise<readonly Float32Array[]>,
): Promise<readonly Candidate[]> {
  const withWords = scoreWords(question, earlier, candidates)
  // Half of the candidates are chosen by their words. The others are chosen in order, because the best search results
  // come first: this includes text in the other language.
  const byWords = withWords.toSorted((a, b) => b.words - a.words)
  const chosen = [...new Set([...byWords.slice(0, MAX_EMBEDDED / 2), ...withWords])].slice(0, MAX_EMBEDDED)
  // A follow-up is only meaningful with the earlier question, but is closer to its answer without it.
  const queries = [...new Set([`${earlier} ${question}`.trim(), question])]
  const texts = [
    ...queries.map((query) => `query: ${plainText(query)}`),
    ...chosen.map(({ candidate: { text } }) => `passage: ${plainText(text)}`),
  ]
  const embedded = await embed(texts)
  const [whole, own, vectors] = [embedded[0]!, embedded[queries.length - 1]!, embedded.slice(queries.length)]
  const language = detectLanguage(question)
  const anchors = { ar, en }
  // The rows of a table are similar, and count as one.
  const growth = GROWTH * Math.log(1 + chosen.filter(({ candidate }) => !candidate.row).length)
  const scored = chosen.map(({ candidate, words }, i) => {
    const closeness = (query: Float32Array) =>
      dot(query, vectors[i]!) - SHARE * (dot(query, anchors[candidate.language]) + dot(anchors[language], vectors[i]!))
    const least = growth + LEAST_SCORE[candidate.language === language ? 'within' : 'across']
    const isSupported = closeness(whole) + words >= least
    return { candidate, words, isSupported, score: (closeness(whole) + closeness(own)) / 2 + words }
  })
  scored.sort((a, b) => b.score - a.score)
  const best = scored[0]!
  const support = scored.filter(({ candidate, words, score, isSupported }) => {
    // A row is an answer as well only if it has as many of the question's words.
    const isAsGood = candidate === best.candidate || !candidate.row || words >= best.words
    return isSupported && isAsGood && score >= best.score - QUOTE_MARGIN
  })
  return support.slice(0, MAX_QUOTES).map(({ candidate }) => candidate)
}

/** Adds the weighted share of the question's terms that each candidate has. */
function scoreWords(question: string, earlier: string, candidates: readonly Candidate[]) {
  const weights = new Map(toTerms(earlier).map((term) => [term, EARLIER_WEIGHT]))
  for (const term of toTerms(question)) weights.set(term, 1)
  const sum = (terms: Iterable<string>) => Iterator.from(terms).reduce((total, term) => total + (weights.get(term) ?? 0), 0)
  const total = sum(weights.keys()) || 1
  return candidates.map((candidate) => ({ candidate, words: (LEXICAL_WEIGHT * sum(candidate.terms)) / total }))
}

/** Returns the cosine, because all vectors have norm 1. */
function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0)
}
