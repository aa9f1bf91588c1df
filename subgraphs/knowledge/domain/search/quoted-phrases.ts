import { tokens } from '../text/text-analysis.ts'

/** Straight, curly, German and Arabic opening quotation marks, each with its closing marks. */
const QUOTATION_MARKS: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['“', '“”'],
  ['”', '“”'],
  ['„', '“”'],
  ['«', '»'],
])
/** Maximum per query. */
const MAX_PHRASES = 8

/**
 * Returns the words of a text in canonical spelling, with a space around each: a spelled chunk contains a spelled phrase
 * as a substring.
 */
export function spell(text: string): string {
  return ` ${tokens(text).join(' ')} `
}

/** A question quotes titles and names from memory, so its quotations are not required. */
const QUESTION = /[?؟]\s*$/

/**
 * Returns the phrases that a chunk must contain: those that the query quotes, or none if the query is a question. The
 * phrases have the form of `spell`.
 */
export function findRequiredPhrases(query: string): readonly string[] {
  return QUESTION.test(query) ? [] : findQuotedPhrases(query)
}

/** Returns the quoted phrases of a query, in the form of `spell`. */
function findQuotedPhrases(query: string): readonly string[] {
  const phrases = [...readQuoted(query)].map(spell)
  return [...new Set(phrases)].filter((phrase) => phrase.trim() !== '').slice(0, MAX_PHRASES)
}

function* readQuoted(query: string): Generator<string> {
  for (let at = 0; at < query.length; at++) {
    const ends = [...(QUOTATION_MARKS.get(query[at]!) ?? '')].map((mark) => query.indexOf(mark, at + 1)).filter((end) => end > 0)
    if (ends.length === 0) continue
    const end = Math.min(...ends)
    yield query.slice(at + 1, end)
    at = end
  }
}
