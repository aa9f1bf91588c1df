import type { Language } from '../text/language.ts'
import { stemOf, tokens } from '../text/text-analysis.ts'
import { type CandidateText, toRarity } from './exact-things.ts'

/**
 * Names are written by their sound in the other script: «تشرشل» is Churchill. Two words are held for one name if their
 * skeletons are equal: the consonants that both scripts tell apart, and whether a vowel comes first. Of an English text
 * only capitalized words count, and rare skeletons count more, because two words may be alike by chance.
 */

/**
 * What a name found in the other script adds, as a cosine. On the development half of XQuAD the nDCG@10 of Arabic
 * questions over English passages rises from .854 to .876; figures are nearly the same from .015 to .03.
 */
const WEIGHT = 0.02
/** With fewer consonants, as many words are alike by chance as are names. */
const MIN_CONSONANTS = 3
/** Of a query. More are a pasted text. */
const MAX_NAMES = 32
/** Of a name: `ch` and `gh` may each sound in several ways. */
const MAX_SKELETONS = 9

const ARABIC_SOUNDS = toSounds({ B: 'بپ', T: 'تطث', G: 'جچغگ', K: 'خقك', D: 'دضذ', R: 'ر', S: 'زظسصش', F: 'فڤ', L: 'ل', M: 'م', N: 'ن' })
const LATIN_SOUNDS = toSounds({ B: 'bp', T: 't', G: 'gj', K: 'ckq', D: 'd', R: 'r', S: 'sz', F: 'fv', L: 'l', M: 'm', N: 'n' })
/** Several letters for one sound, the longest first. */
const LATIN_GROUPS = /sch|tch|sh|tz|ph|th|kh|dj|ch|gh|[a-z]/g
const SOUNDS_OF_GROUPS: ReadonlyMap<string, readonly string[]> = new Map([
  ['sch', ['S']],
  ['tch', ['TS']],
  ['sh', ['S']],
  ['tz', ['TS']],
  ['ph', ['F']],
  ['th', ['T']],
  ['kh', ['K']],
  ['dj', ['G']],
  ['ch', ['S', 'TS', 'K']],
  ['gh', ['G', '']],
  ['x', ['KS']],
])
/** "and the", "by the", "for the", "the": what Arabic joins to a name. */
const ARABIC_ARTICLES = ['وال', 'بال', 'لل', 'ال']
const MIN_LETTERS_AFTER_ARTICLE = 3
const ARABIC = /^\p{Script=Arabic}/u
const CAPITALIZED = /\p{Lu}\p{L}+/gu

/** How many of a query's names each passage in the other language has, rare ones counting more, as a cosine. */
export function weighNames(query: string, chunks: readonly CandidateText[], language: Language | null): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  if (language === null) return weights
  const names = readNames(query, language).slice(0, MAX_NAMES)
  if (names.length === 0) return weights
  const other = language === 'ar' ? 'en' : 'ar'
  const read = chunks
    .filter((chunk) => chunk.language === other)
    .map(({ chunkId, text }) => ({ chunkId, skeletons: new Set(readNames(text, other).flat()) }))
  for (const name of names) {
    const having = read.filter(({ skeletons }) => name.some((skeleton) => skeletons.has(skeleton)))
    const weight = WEIGHT * toRarity(having.length, read.length)
    for (const { chunkId } of having) weights.set(chunkId, (weights.get(chunkId) ?? 0) + weight)
  }
  return weights
}

/** The skeletons of each word of a text that may be a name. */
function readNames(text: string, language: Language): readonly (readonly string[])[] {
  const words = language === 'ar' ? tokens(text).filter((token) => ARABIC.test(token)) : (text.match(CAPITALIZED) ?? [])
  const nameWords = [...new Set(words)].filter((word) => stemOf(word.toLowerCase()) !== null)
  return nameWords.map(language === 'ar' ? arabicSkeletons : latinSkeletons).filter((skeletons) => skeletons.length > 0)
}

function arabicSkeletons(token: string): readonly string[] {
  const article = ARABIC_ARTICLES.find((each) => token.startsWith(each) && token.length - each.length >= MIN_LETTERS_AFTER_ARTICLE)
  const forms = article === undefined ? [token] : [token, token.slice(article.length)]
  return forms.flatMap((form) => {
    const sounds = Array.from(form, (letter) => ARABIC_SOUNDS.get(letter) ?? '').join('')
    return toSkeleton(/^[اع]/.test(form), sounds)
  })
}

function latinSkeletons(word: string): readonly string[] {
  const letters = word
    .toLowerCase()
    .normalize('NFD')
    .replace(/[^a-z]/g, '')
    .replace(/c(?=[eiy])/g, 's')
  let forms = ['']
  for (const group of letters.match(LATIN_GROUPS) ?? []) {
    const sounds = SOUNDS_OF_GROUPS.get(group) ?? [LATIN_SOUNDS.get(group) ?? '']
    forms = forms.flatMap((form) => sounds.map((sound) => form + sound)).slice(0, MAX_SKELETONS)
  }
  return forms.flatMap((form) => toSkeleton(/^[aeiou]/.test(letters), form))
}

/** Doubled consonants are one. Empty when too few are left to tell names apart. */
function toSkeleton(isVowelFirst: boolean, sounds: string): readonly string[] {
  const single = sounds.replace(/(.)\1+/g, '$1')
  return single.length < MIN_CONSONANTS ? [] : [isVowelFirst ? `a${single}` : single]
}

function toSounds(letters: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(letters).flatMap(([sound, of]) => Array.from(of, (letter) => [letter, sound] as const)))
}
