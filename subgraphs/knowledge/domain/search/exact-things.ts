import type { Language } from '../text/language.ts'
import { normalise, stemOf, tokens } from '../text/text-analysis.ts'
import { spell } from './quoted-phrases.ts'

/**
 * Identifiers, numbers, dates and names, which a chunk either contains or not, in any language. The retrievers cannot
 * express this: cosines hardly reflect exact matches, and BM25 compares chunks of one language only.
 * The weights are cosines, tuned on the development halves of XQuAD and `test/eval`. There, the first ten chunks of a
 * query are 0.05 apart.
 */

/**
 * Weight of an identifier, a telephone number, a date or another number that rarely occurs twice. The weight exceeds
 * any difference between cosines.
 */
const IDENTIFIER_WEIGHT = 0.08
/** Weight of a number beside the same word as in the query: «مذكرة رقم 20». */
const NUMBERED_WEIGHT = 0.07
/** Weight of a short number or a year anywhere in the chunk. */
const NUMBER_WEIGHT = 0.03
/** Weight of a Latin word of an Arabic query. */
const LATIN_WEIGHT = 0.05
/**
 * Weight of a Latin word of an English query in an Arabic chunk. The word counts as a name only if no English chunk and
 * at most two other chunks have it.
 */
const NAME_WEIGHT = 0.02
const MAX_CHUNKS_OF_NAME = 2
/** Maximum per query. A query with more is pasted text, whose words the lexical retrievers count. */
const MAX_THINGS = 32
/** With fewer chunks, rarity cannot be judged. */
const MIN_CHUNKS = 50

/**
 * A run of digits and Latin letters with the characters that join them into one identifier, such as `PO-2024/0017` and
 * `a.b@c.org`.
 */
const RUN = /[\p{L}\p{N}]+(?:[-‐-―/.:@_+]+[\p{L}\p{N}]+)*/gu
const YEAR = /^(1[5-9]|20)\d\d$/
const MIN_DIGITS_OF_RARE = 4
const MIN_DIGITS_OF_TELEPHONE = 7
/** Words between a noun and its number: «رقم», "no.", "number". */
const NUMBER_WORDS: ReadonlySet<string> = new Set(['رقم', 'الرقم', 'no', 'nr', 'num', 'number', 'numero'])

interface ExactThing {
  readonly kind: 'identifier' | 'number' | 'latin' | 'name'
  /** The spelling that `spell` returns. */
  readonly spelled: string
  /** For numbers: the stem of the adjacent word, and whether the query calls it a number. */
  readonly beside: string | null
}

/** Returns the parts of a query that a chunk must contain literally. */
export function findExactThings(query: string, language: Language | null): readonly ExactThing[] {
  const found = new Map<string, ExactThing>()
  const runs = normalise(query).match(RUN) ?? []
  for (const [at, run] of runs.entries()) {
    const spelled = spell(run)
    const kind = toKind(run, language)
    if (kind === null || found.has(spelled)) continue
    found.set(spelled, { kind, spelled, beside: kind === 'number' ? findBeside(runs, at) : null })
  }
  return [...found.values()].slice(0, MAX_THINGS)
}

function toKind(run: string, language: Language | null): ExactThing['kind'] | null {
  const isLatin = /[a-z]/i.test(run)
  const digits = run.replace(/\D/g, '').length
  const isJoined = /[^\p{L}\p{N}]/u.test(run)
  if (digits > 0) {
    if (/^\d+$/.test(run) && (digits < MIN_DIGITS_OF_RARE || YEAR.test(run))) return 'number'
    return 'identifier'
  }
  if (!isLatin || tokens(run).every((token) => token.length < 2 || stemOf(token) === null)) return null
  if (language === 'ar') return 'latin'
  return isJoined || /\p{Ll}\p{Lu}/u.test(run) ? 'identifier' : 'name'
}

function findBeside(runs: readonly string[], at: number): string | null {
  const before = runs.slice(Math.max(0, at - 2), at).reverse()
  const word = before.find((run) => !NUMBER_WORDS.has(run.toLowerCase()))
  return toWord(word) ?? toWord(runs[at + 1])
}

function toWord(run: string | undefined): string | null {
  const [token, more] = run === undefined ? [] : tokens(run)
  return token === undefined || more !== undefined || /\d/.test(token) ? null : stemOf(token)
}

/** The text of a candidate chunk, which is compared with the query. */
export interface CandidateText {
  readonly chunkId: string
  readonly language: string | null
  /** Includes the headings. */
  readonly text: string
}

/**
 * Scores how many of the query's exact things each chunk contains. Rare things count more. Chunks with a score of 0 are
 * omitted.
 */
export function weighExactThings(
  things: readonly ExactThing[],
  chunks: readonly CandidateText[],
  language: Language | null,
): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  if (things.length === 0) return weights
  const read = chunks.map((chunk) => {
    const spelled = spell(chunk.text)
    return { ...chunk, spelled, digits: joinDigits(spelled) }
  })
  for (const thing of things) {
    const having = read.filter((chunk) => has(chunk, thing))
    const rarity = toRarity(having.length, chunks.length)
    if (thing.kind === 'name' && (having.length > MAX_CHUNKS_OF_NAME || having.some((chunk) => chunk.language === language))) continue
    for (const chunk of having) {
      weights.set(chunk.chunkId, (weights.get(chunk.chunkId) ?? 0) + rarity * toWeight(thing, chunk.spelled))
    }
  }
  return weights
}

function toWeight({ kind, spelled, beside }: ExactThing, text: string): number {
  if (kind === 'identifier') return IDENTIFIER_WEIGHT
  if (kind === 'latin') return LATIN_WEIGHT
  if (kind === 'name') return NAME_WEIGHT
  return beside !== null && isBeside(text, spelled, beside) ? NUMBERED_WEIGHT : NUMBER_WEIGHT
}

/** Returns 1 if one chunk has the thing and 0 if all have it. */
export function toRarity(having: number, chunks: number): number {
  const all = Math.max(chunks, MIN_CHUNKS) + 1
  return Math.max(0, Math.log(all / (having + 0.5)) / Math.log(all))
}

function has({ spelled, digits }: { readonly spelled: string; readonly digits: string }, thing: ExactThing): boolean {
  if (spelled.includes(thing.spelled)) return true
  const number = thing.spelled.replaceAll(' ', '')
  return /^\d+$/.test(number) && number.length >= MIN_DIGITS_OF_TELEPHONE && digits.includes(number)
}

/**
 * Removes separators, because telephone and account numbers are grouped in many ways: 202 493 2251 becomes 2024932251.
 */
function joinDigits(spelled: string): string {
  return spelled.replace(/(?<=\d) (?=\d)/g, '')
}

/** Whether the word is before or after the number, with or without «رقم» or "no." between them. */
function isBeside(text: string, spelled: string, beside: string): boolean {
  for (let at = text.indexOf(spelled); at >= 0; at = text.indexOf(spelled, at + 1)) {
    const before = text
      .slice(Math.max(0, at - 200), at)
      .split(' ')
      .slice(-2)
      .reverse()
    const word = before.find((token) => !NUMBER_WORDS.has(token))
    const [after] = text.slice(at + spelled.length, at + spelled.length + 100).split(' ')
    if ([word, after].some((token) => token !== undefined && token !== '' && stemOf(token) === beside)) return true
  }
  return false
}
