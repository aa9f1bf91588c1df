import type { Language } from '../text/language.ts'
import { normalise, stemOf, tokens } from '../text/text-analysis.ts'
import { spell } from './quoted-phrases.ts'

/**
 * Identifiers, numbers, dates and names: what a passage either has or has not, in whichever language it is written. The
 * legs of search cannot say so. Cosines hardly see them, and BM25 compares passages of one language only.
 *
 * The weights are cosines, tuned on the development halves of XQuAD and `test/eval`: passages of a query's first ten are
 * .05 apart.
 */

/** An identifier, a telephone number, a date or a number that hardly occurs twice: more than any cosine takes back. */
const IDENTIFIER_WEIGHT = 0.08
/** A number beside the word that the query has beside it: «مذكرة رقم 20». */
const NUMBERED_WEIGHT = 0.07
/** A short number or a year somewhere in the passage. */
const NUMBER_WEIGHT = 0.03
/** A Latin word of an Arabic query. */
const LATIN_WEIGHT = 0.05
/**
 * A Latin word of an English query, in an Arabic passage. It counts when no English passage has it, and at most two
 * others have: it is a name then.
 */
const NAME_WEIGHT = 0.02
const MAX_CHUNKS_OF_NAME = 2
/** Of a query. More are a pasted text, whose words the lexical legs count. */
const MAX_THINGS = 32
/** Fewer passages than this make nothing rare. */
const MIN_CHUNKS = 50

/** Digits, Latin letters, and what joins them into one identifier, such as `PO-2024/0017` and `a.b@c.org`. */
const RUN = /[\p{L}\p{N}]+(?:[-‐-―/.:@_+]+[\p{L}\p{N}]+)*/gu
const YEAR = /^(1[5-9]|20)\d\d$/
const MIN_DIGITS_OF_RARE = 4
const MIN_DIGITS_OF_TELEPHONE = 7
/** Between a word and its number: «رقم», "no.", "number". */
const NUMBER_WORDS: ReadonlySet<string> = new Set(['رقم', 'الرقم', 'no', 'nr', 'num', 'number', 'numero'])

interface ExactThing {
  readonly kind: 'identifier' | 'number' | 'latin' | 'name'
  /** As `spell` gives it. */
  readonly spelled: string
  /** Of numbers: the stem of the word before or after it, and whether it is called a number. */
  readonly beside: string | null
}

/** What of a query a passage must have as it is written. */
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

export interface CandidateText {
  readonly chunkId: string
  readonly language: string | null
  /** With its headings. */
  readonly text: string
}

/** How much of a query's exact things each passage has, rare ones counting more. Passages with nothing are left out. */
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

/** 1 for what one passage has, 0 for what all have. */
export function toRarity(having: number, chunks: number): number {
  const all = Math.max(chunks, MIN_CHUNKS) + 1
  return Math.max(0, Math.log(all / (having + 0.5)) / Math.log(all))
}

function has({ spelled, digits }: { readonly spelled: string; readonly digits: string }, thing: ExactThing): boolean {
  if (spelled.includes(thing.spelled)) return true
  const number = thing.spelled.replaceAll(' ', '')
  return /^\d+$/.test(number) && number.length >= MIN_DIGITS_OF_TELEPHONE && digits.includes(number)
}

/** Telephone and account numbers are grouped in many ways: 202 493 2251 is 2024932251. */
function joinDigits(spelled: string): string {
  return spelled.replace(/(?<=\d) (?=\d)/g, '')
}

/** Whether the number has the word before or after it, with «رقم» or "no." between them or not. */
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
