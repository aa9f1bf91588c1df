/** The languages of the web pages. */
export const LANGUAGES = ['en', 'ar'] as const
export type Language = (typeof LANGUAGES)[number]

/** Returns the language that the reader requested, or the first supported language of the browser's list. */
export function chooseLanguage(requested: unknown, accepted: string | undefined): Language {
  const isOurs = (language: unknown): language is Language => LANGUAGES.includes(language as Language)
  if (isOurs(requested)) return requested
  const languages = (accepted ?? '').slice(0, 200).split(',')
  return languages.map((each) => each.trim().slice(0, 2).toLowerCase()).find(isOurs) ?? 'en'
}
