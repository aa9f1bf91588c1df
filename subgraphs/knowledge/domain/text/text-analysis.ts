import { foldPresentationForms } from './normalise-text.ts'

/**
 * Increment it with every change that adds or alters terms of a text, because the index must then be rebuilt. A change
 * that only removes terms needs no rebuild, because no query uses the removed terms.
 */
export const TERMS_VERSION = 1

/**
 * Terms of a text for the lexical retrievers, the same for chunks and queries. Adapters of the chunk index index these
 * terms unchanged, so all adapters compute equal scores. Arabic stems are those of Lucene's `ArabicStemmer`, after a
 * wider normalization.
 */

/**
 * Maximum UTF-16 units that are analyzed. It is several times the longest chunk or query, and prevents a client's text
 * from blocking the process.
 */
const MAX_TEXT_LENGTH = 65_536
/**
 * Maximum letters of a word that are analyzed. No Arabic or English word is longer. A longer run is encoded data, which
 * still matches itself when truncated.
 */
const MAX_WORD_LENGTH = 64
/** Maximum distinct terms of a query, far above a long question. It limits the lookups of one search. */
const MAX_QUERY_WORDS = 512
const MAX_QUERY_GRAMS = 1_536

/** Harakat, Quranic marks, superscript alef, and tatweel. */
const MARKS = /[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640]/g
/** Joiners, direction marks and soft hyphens. They would split a word. */
const INVISIBLE = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g
/** Letters that Arabic writers interchange, and the Persian letters that keyboards produce for them. */
const FOLDED = /[أإآٱىةؤئیېےکۀہھە]/g
const FOLDS: Readonly<Record<string, string>> = {
  أ: 'ا',
  إ: 'ا',
  آ: 'ا',
  ٱ: 'ا',
  ى: 'ي',
  ة: 'ه',
  ؤ: 'و',
  ئ: 'ي',
  ی: 'ي',
  ې: 'ي',
  ے: 'ي',
  ک: 'ك',
  ۀ: 'ه',
  ہ: 'ه',
  ھ: 'ه',
  ە: 'ه',
}
/** Arabic-Indic digits, and their Persian forms. */
const DIGIT = /[\u0660-\u0669\u06f0-\u06f9]/g
/**
 * Thousands separators: only between complete groups of three digits, so that lists of small numbers are unaffected.
 */
const THOUSANDS = /(?<![\d.])\d{1,3}(?:[,\u066c]\d{3})+(?!\d)/g
/** A change between Arabic and other scripts separates words: وPython is `و` and `Python`. */
const WORD = /(?:(?!\p{Script=Arabic})[\p{L}\p{N}])+|(?:(?=\p{Script=Arabic})[\p{L}\p{N}])+/gu

const ENGLISH_STOP_WORDS =
  'the a an of in to and is was were are for on with by as at from that this it its be or which what who whom when where why how did does do ' +
  'had has have their his her he she they them than then into such many much most'
const ARABIC_STOP_WORDS =
  'في من على إلى عن ما ماذا متى أين كيف كم هل لماذا الذي التي هو هي كان كانت أن إن مع هذا هذه ذلك تلك و أو ثم قد لم لا بعد قبل بين'

/**
 * Pronouns (also joined to a particle), question words and particles. They are compared unstemmed, because other words
 * share their stems: «كل» is the stem of «كلية». Words that are also names or nouns, such as «عم» and «بل», are
 * omitted.
 */
const ARABIC_FUNCTION_WORDS =
  'أي أية أيا لمن مما ممن بماذا لما الذين اللذان اللذين اللتان اللتين اللاتي اللواتي هؤلاء أولئك نحن أنا أنت هم هن هما ' +
  'فيه فيها فيهم منه منها منهم عليه عليها عليهم له لها لهم به بها بهم عنه عنها عنهم إليه إليها إليهم أنه أنها أنهم ' +
  'كما لكن إذا إذ حيث حين عند لدى غير كل بعض لن ليس ليست كانوا يكون تكون تم يتم منذ حتى خلال أثناء لأن لكي أما إما إلا ' +
  'ألا لقد سوف ربما أيضا هناك'

/** At most one prefix is removed. At least two letters stay. */
const ARABIC_PREFIXES = ['وال', 'بال', 'كال', 'فال', 'لل', 'ال']
/** Every matching suffix is removed, in this order. At least two letters stay. */
const ARABIC_SUFFIXES = ['ها', 'ان', 'ات', 'ون', 'ين', 'يه', 'ه', 'ي']
/** The first matching suffix is replaced. At least three letters stay before it. */
const ENGLISH_SUFFIXES = [
  ['ies', 'y'],
  ['sses', 'ss'],
  ['ing', ''],
  ['ed', ''],
  ['es', ''],
  ['s', ''],
] as const

const STOP_STEMS: ReadonlySet<string> = new Set([...ENGLISH_STOP_WORDS.split(' '), ...tokens(ARABIC_STOP_WORDS).map(stem)])
const FUNCTION_WORDS: ReadonlySet<string> = new Set(tokens(ARABIC_FUNCTION_WORDS))

/**
 * Unifies variant spellings of Arabic: NFKC (so no presentation forms), no marks; alef, yeh, teh marbuta, hamza and the
 * Persian letters folded; digits 0 to 9, without thousands separators.
 */
export function normalise(text: string): string {
  return foldDigits(text.normalize('NFKC'))
    .replace(MARKS, '')
    .replace(INVISIBLE, '')
    .replace(FOLDED, (letter) => FOLDS[letter]!)
    .replace(THOUSANDS, (number) => number.replace(/\D/g, ''))
}

function foldDigits(text: string): string {
  return text.replace(DIGIT, (digit) => String(digit.charCodeAt(0) & 0xf))
}

/** The Persian letters that Arabic keyboards and fonts produce for yeh and kaf. */
const PERSIAN = /[یک]/g

/**
 * Returns the text in the form in which chunks and queries are embedded: presentation forms and Persian yeh and kaf
 * become plain letters, digits become 0 to 9, tatweel and harakat are removed, and nothing else changes. Folding
 * letters like `normalise` would deviate from the spelling on which the model was trained. On the development half of
 * XQuAD, nDCG@10 of Arabic questions over English chunks falls from 0.836 to 0.783 with it, while this form retains
 * every figure of the raw text.
 */
export function normaliseForEmbedding(text: string): string {
  return foldDigits(foldPresentationForms(text))
    .replace(MARKS, '')
    .replace(PERSIAN, (letter) => FOLDS[letter]!)
}

/** Returns light stems in the order of the text, duplicates included, without stop words. */
export function words(text: string): string[] {
  return toStems(tokens(text))
}

/**
 * Returns 3-grams inside each word, in the order of the text, duplicates included. `^` and `$` mark the word's edges.
 */
export function grams(text: string): string[] {
  return toGrams(tokens(text))
}

/** Returns the distinct terms of a query. A query beyond the limits is searched by its first terms. */
export function queryTerms(text: string): { readonly words: readonly string[]; readonly grams: readonly string[] } {
  const all = tokens(text)
  return {
    words: [...new Set(toStems(all))].slice(0, MAX_QUERY_WORDS),
    grams: [...new Set(toGrams(all))].slice(0, MAX_QUERY_GRAMS),
  }
}

/** Whether the text has a letter or digit. Tatweel and marks are neither. */
export function hasWords(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text.replace(MARKS, ''))
}

/** Returns unstemmed words in normalized spelling, for exact matches. */
export function tokens(text: string): string[] {
  const found = normalise(text.slice(0, MAX_TEXT_LENGTH)).match(WORD) ?? []
  return found.map((word) => (word.length > MAX_WORD_LENGTH ? Array.from(word).slice(0, MAX_WORD_LENGTH).join('') : word).toLowerCase())
}

function toStems(all: readonly string[]): string[] {
  return all.flatMap((token) => stemOf(token) ?? [])
}

/** Returns the stem of a token, or null for a stop word. */
export function stemOf(token: string): string | null {
  if (FUNCTION_WORDS.has(withoutAnd(token))) return null
  const found = stem(token)
  return STOP_STEMS.has(found) ? null : found
}

function toGrams(all: readonly string[]): string[] {
  return all.flatMap((word) => {
    // Iterate over code points: half a surrogate pair is not text.
    const letters = Array.from(`^${word}$`)
    return letters.slice(2).map((last, i) => `${letters[i]}${letters[i + 1]}${last}`)
  })
}

function stem(word: string): string {
  return word[0]! >= 'ء' && word[0]! <= 'ي' ? arabicStem(word) : englishStem(word)
}

function arabicStem(word: string): string {
  let rest = withoutAnd(word)
  const prefix = ARABIC_PREFIXES.find((p) => rest.startsWith(p) && rest.length - p.length >= 2)
  if (prefix) rest = rest.slice(prefix.length)
  for (const suffix of ARABIC_SUFFIXES) {
    if (rest.endsWith(suffix) && rest.length - suffix.length >= 2) rest = rest.slice(0, -suffix.length)
  }
  return rest
}

/** Removes the prefix «و» ("and") from a word. */
function withoutAnd(word: string): string {
  return word.startsWith('و') && word.length >= 4 ? word.slice(1) : word
}

function englishStem(word: string): string {
  for (const [suffix, replacement] of ENGLISH_SUFFIXES) {
    if (!word.endsWith(suffix) || word.length - suffix.length < 3) continue
    if (suffix === 's' && word.endsWith('ss')) continue
    return word.slice(0, -suffix.length) + replacement
  }
  return word
}
