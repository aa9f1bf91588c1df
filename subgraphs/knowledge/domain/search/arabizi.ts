import { stemOf } from '../text/text-analysis.ts'
import { findRequiredPhrases } from './quoted-phrases.ts'

/**
 * Arabizi is Arabic in Latin letters, with digits for sounds that Latin has no letter for: «ta2meen si77i» is «تأمين
 * صحي». Each letter group becomes its most likely Arabic letter. The result may be misspelled, because vectors, stems
 * and n-grams find similar words.
 */

/** Longest groups first. `a` and `e` are mostly short vowels, which Arabic does not write. */
const GROUP = /[3679]'|sh|ch|kh|gh|th|dh|aa|ee|ii|oo|uu|ou|ei|ai|ay|aw|au|ow|[a-z2356789]/g
const LETTERS: Readonly<Record<string, string>> = {
  "3'": 'غ',
  "7'": 'خ',
  "9'": 'ض',
  "6'": 'ظ',
  sh: 'ش',
  ch: 'ش',
  kh: 'خ',
  gh: 'غ',
  th: 'ث',
  dh: 'ذ',
  aa: 'ا',
  ee: 'ي',
  ii: 'ي',
  oo: 'و',
  uu: 'و',
  ou: 'و',
  ei: 'ي',
  ai: 'ي',
  ay: 'ي',
  aw: 'و',
  au: 'و',
  ow: 'و',
  2: 'ا',
  3: 'ع',
  5: 'خ',
  6: 'ط',
  7: 'ح',
  8: 'غ',
  9: 'ق',
  a: '',
  b: 'ب',
  c: 'ك',
  d: 'د',
  e: '',
  f: 'ف',
  g: 'ج',
  h: 'ه',
  i: '',
  j: 'ج',
  k: 'ك',
  l: 'ل',
  m: 'م',
  n: 'ن',
  o: 'و',
  p: 'ب',
  q: 'ق',
  r: 'ر',
  s: 'س',
  t: 'ت',
  u: '',
  v: 'ف',
  w: 'و',
  x: 'كس',
  y: 'ي',
  z: 'ز',
}
/** A word that starts with a vowel starts with alef in Arabic. */
const FIRST: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['a', 'e', 'i', 'o', 'u', 'aa'].map((vowel) => [vowel, 'ا'])),
  ...Object.fromEntries(['ee', 'ii', 'ei', 'ai', 'ay'].map((vowel) => [vowel, 'اي'])),
  ...Object.fromEntries(['oo', 'uu', 'ou', 'aw', 'au'].map((vowel) => [vowel, 'او'])),
}
const LAST: Readonly<Record<string, string>> = { 2: 'ق', a: 'ة', e: 'ة', i: 'ي', u: 'و' }
/** Endings, replaced only after at least two letters. */
const ENDINGS: readonly (readonly [ending: RegExp, letters: string])[] = [
  [/(?<=..)[ie]yy?[ae]$/, 'ية'],
  [/(?<=..)[ei]t$/, 'ة'],
  [/(?<=..)at$/, 'ات'],
]
const DOUBLED = /([b-df-hj-np-tv-z2-9])\1/g

/** Articles, which Arabic joins to the next word. */
const ARTICLES = toWords({ ال: 'al el il', 'في ال': 'fel fil', بال: 'bel bil', لل: 'lel lil', وال: 'wel wil', 'على ال': '3al' })
/** Function words. Dialect words map to their counterparts in written Arabic. */
const SMALL_WORDS = toWords({
  كيف: 'keef kif kef ezay ezzay izzay shlon shloon',
  أين: 'wein wain wen feen fein',
  متى: 'emta imta mata',
  لماذا: 'leh leih leesh lesh',
  ما: 'shu shou eh eih esh shno ma',
  أريد: '3ayez 3awez baddi bidi biddi abi abgha',
  كم: 'kam',
  بكم: 'bkam',
  لا: 'mish mesh',
  لازم: 'lazem',
  من: 'men min',
  في: 'fi fe',
  على: '3ala 3la',
  لو: 'law',
  و: 'w',
  يوم: 'youm yom',
  قبل: '2abl',
  بعد: 'ba3d',
  ثاني: 'tani',
})
/** Function words that are also English or Spanish words and therefore do not prove Arabizi. */
const AMBIGUOUS: ReadonlySet<string> = new Set('law men min ma w fe abi eh wen mesh tani'.split(' '))
/** Words of other languages that also use `el` and `al`. */
const OTHER_LANGUAGES: ReadonlySet<string> = new Set('de del las los que por para con una les des du est en y'.split(' '))

/** Evidence that a query needs: one strong sign, or two signs that also occur in English by chance. */
const MIN_SIGNS = 2
/** A word with a digit and fewer letters is a product name or a measure: B2B, 5km. */
const MIN_LETTERS = 3
const WORD = /[A-Za-z0-9']+/g
const ARTICLE_APART = /(?<!\p{L})(ال|بال|لل|وال)[\s-]+(?=\p{Script=Arabic})/gu
/** Acronyms such as PDF and VPN stay unchanged. */
const ACRONYM = /^[A-Z]{2,5}$/

/**
 * Converts an Arabizi query to Arabic letters. Returns null if the query is not Arabizi: it has a non-ASCII letter, a
 * function word of English or Spanish, or a quoted phrase, which must match literally.
 */
export function readArabizi(query: string): string | null {
  const words = query.match(WORD)
  if (!words || /[^\P{L}A-Za-z]/u.test(query) || findRequiredPhrases(query).length > 0) return null
  const lower = words.map((word) => word.toLowerCase())
  if (lower.some((word) => stemOf(word) === null || OTHER_LANGUAGES.has(word))) return null
  // El Al is a name, so an article counts once, however it is spelled.
  const distinct = new Map(lower.map((word) => [ARTICLES.get(word) ?? word, word]))
  if ([...distinct.values()].reduce((sum, word) => sum + countSigns(word), 0) < MIN_SIGNS) return null
  return query.replace(WORD, (word) => (ACRONYM.test(word) ? word : toArabic(word.toLowerCase()))).replace(ARTICLE_APART, '$1')
}

function countSigns(word: string): number {
  if (AMBIGUOUS.has(word)) return 0
  if (ARTICLES.has(word) || SMALL_WORDS.has(word)) return 1
  if (/\d\d|[014]/.test(word) || !/[aeiou]/.test(word) || word.replace(/[^a-z]/g, '').length < MIN_LETTERS) return 0
  // A digit inside the word beside a vowel. In "word2vec", it is between consonants.
  if (/[a-z][235679]'?[aeiou]|[aeiou][235679]'?[a-z]/.test(word)) return MIN_SIGNS
  return /^[2356789]'?[a-z]|[a-z][2357]$/.test(word) ? 1 : 0
}

function toArabic(word: string): string {
  const known = ARTICLES.get(word) ?? SMALL_WORDS.get(word)
  if (known !== undefined) return known
  if (/^[\d']+$/.test(word)) return word
  const ending = ENDINGS.find(([pattern]) => pattern.test(word))
  const body = (ending ? word.replace(ending[0], '') : word).replace(DOUBLED, '$1')
  const groups = body.match(GROUP) ?? []
  const letters = groups.map((group, at) => {
    if (at === 0) return FIRST[group] ?? LETTERS[group]
    return (at === groups.length - 1 && !ending ? LAST[group] : undefined) ?? LETTERS[group]
  })
  return letters.join('') + (ending?.[1] ?? '')
}

function toWords(spellings: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(spellings).flatMap(([arabic, latin]) => latin.split(' ').map((word) => [word, arabic] as const)))
}
