import { tokens } from '../text/text-analysis.ts'

/** Straight, curly, German and Arabic quotation marks, each with what may end its phrase. */
const QUOTATION_MARKS: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['“', '“”'],
  ['”', '“”'],
  ['„', '“”'],
  ['«', '»'],
])
/** Of a query. More are not what a person types. */
const MAX_PHRASES = 8

/** The words of a text in one spelling, so that what follows in it can be looked for as it is written. */
export function spell(text: string): string {
  return ` ${tokens(text).join(' ')} `
}

/** A question quotes titles and names as it remembers them, so nothing that it quotes is required. */
const QUESTION = /[?؟]\s*$/

/** The phrases that a passage must have, as `spell` gives them: those that are quoted in a query that is no question. */
export function findRequiredPhrases(query: string): readonly string[] {
  return QUESTION.test(query) ? [] : findQuotedPhrases(query)
}

/** The quoted phrases of a query, as `spell` gives them. */
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
