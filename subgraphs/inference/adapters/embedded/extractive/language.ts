import { foldWords } from '../../../domain/chat/question.ts'

/** The two languages that the embedding model knows. */
export type Language = 'ar' | 'en'

/** Returns the language of most letters. Texts without letters count as English. */
export function detectLanguage(text: string): Language {
  const arabic = text.match(/\p{Script=Arabic}/gu)?.length ?? 0
  const other = text.match(/\p{Script=Latin}/gu)?.length ?? 0
  return arabic > other ? 'ar' : 'en'
}

const STOP_WORDS = new Set(
  (
    'a an the of in on at to for from by with and or is are was were be been do does did has have had can could will would should may might must ' +
    'i you he she it we they my your his her its our their me us them this that these those there what which who whom whose when where why how many much ' +
    'if as not no yes about into than then so please tell give find explain ' +
    'من في علي الي عن مع هل ما ماذا متي اين كيف كم لماذا اي التي الذي الذين هذا هذه ذلك تلك هو هي هم انا نحن انت كان كانت يكون تكون قد لقد ان او ثم لا لم لن كل ' +
    'بعد قبل عند يمكن يمكنني يجب هناك وماذا وكم ومتي واين وكيف وهل وما ومن وفي شو ايش وش ليش وين طيب'
  ).split(' '),
)

/**
 * Returns the stems of the meaningful words, for counting common words: interchangeable Arabic letters become one
 * letter; the article and common endings are removed.
 */
export function toTerms(text: string): readonly string[] {
  const words = foldWords(text).match(/[\p{L}\p{N}]+/gu)
  return (words ?? []).filter((word) => !STOP_WORDS.has(word)).map(stem)
}

function stem(word: string): string {
  if (!/^\p{Script=Arabic}/u.test(word)) return word.length > 3 ? word.replace(/(?:ies|ied)$/, 'y').replace(/(?:ing|ed|es|s)$/, '') : word
  const bare = word.replace(/^(?:[وفبك]?ال|لل)(?=.{3})/, '')
  return bare.replace(/(?<=.{3})(?:ات|ون|ين|ان|ها|هم|يه|ه|ي)$/, '')
}
