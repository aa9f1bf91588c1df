import { tokens } from '../text/text-analysis.ts'

/** A phrase in straight, curly, German or Arabic quotation marks. */
const QUOTED = /"([^"]+)"|[“”„]([^“”„]+)[“”]|«([^»]+)»/g
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
export function findQuotedPhrases(query: string): readonly string[] {
  const phrases = [...query.matchAll(QUOTED)].map((match) => spell(match.slice(1).find((part) => part !== undefined)!))
  return [...new Set(phrases)].filter((phrase) => phrase.trim() !== '').slice(0, MAX_PHRASES)
}
