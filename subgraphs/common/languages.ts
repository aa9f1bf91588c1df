/** The languages of the pages for people. */
export const LANGUAGES = ['en', 'ar'] as const
export type Language = (typeof LANGUAGES)[number]

/** The language that the reader asked for, or the first of the browser's languages that there are. */
export function chooseLanguage(requested: unknown, accepted: string | undefined): Language {
  const isOurs = (language: unknown): language is Language => LANGUAGES.includes(language as Language)
  if (isOurs(requested)) return requested
  const languages = (accepted ?? '').slice(0, 200).split(',')
  return languages.map((each) => each.trim().slice(0, 2).toLowerCase()).find(isOurs) ?? 'en'
}
