export const LANGUAGES = ['en', 'ar'] as const
export const THEMES = ['system', 'light', 'dark'] as const
export const DIGITS = ['latn', 'arab'] as const
export const CALENDARS = ['gregory', 'islamic-umalqura'] as const

export interface Preferences {
  readonly language: (typeof LANGUAGES)[number]
  readonly theme: (typeof THEMES)[number]
  readonly digits: (typeof DIGITS)[number]
  readonly calendar: (typeof CALENDARS)[number]
}

const STORE = 'kis_preferences'
/** The server writes `<html lang dir>` from this cookie. */
const LANGUAGE_COOKIE = 'kis_language'
const COOKIE_AGE_S = 365 * 24 * 3600

/** The preferences that the reader chose. The others follow the browser and the language. */
let chosen: Partial<Preferences> = read()
let current = resolve()
const watchers = new Set<() => void>()

function pick<Value extends string>(values: readonly Value[], value: unknown): Value | undefined {
  return values.find((each) => each === value)
}

function read(): Partial<Preferences> {
  try {
    const stored = JSON.parse(localStorage.getItem(STORE) ?? '{}') as Record<string, unknown>
    const found = {
      language: pick(LANGUAGES, stored.language),
      theme: pick(THEMES, stored.theme),
      digits: pick(DIGITS, stored.digits),
      calendar: pick(CALENDARS, stored.calendar),
    }
    return Object.fromEntries(Object.entries(found).filter(([, value]) => value))
  } catch {
    // Storage may be disabled, or contain a value of another version.
    return {}
  }
}

function resolve(): Preferences {
  const language = chosen.language ?? (navigator.languages.find((each) => /^(?:ar|en)\b/.test(each))?.startsWith('ar') ? 'ar' : 'en')
  return { theme: 'system', digits: language === 'ar' ? 'arab' : 'latn', calendar: 'gregory', ...chosen, language }
}

/** Returns the locale for `Intl`, with the digits and the calendar of the reader. */
export function localeOf({ language, digits, calendar }: Preferences): string {
  return `${language}-u-ca-${calendar}-nu-${digits}`
}

export function directionOf({ language }: Preferences): 'ltr' | 'rtl' {
  return language === 'ar' ? 'rtl' : 'ltr'
}

const dark = matchMedia('(prefers-color-scheme: dark)')

/** Sets the preferences on the page's root, before the first paint and at each change. */
export function applyPreferences(): void {
  const root = document.documentElement
  root.lang = current.language
  root.dir = directionOf(current)
  root.dataset.theme = current.theme === 'system' ? (dark.matches ? 'dark' : 'light') : current.theme
}
dark.addEventListener('change', applyPreferences)

export function changePreferences(change: Partial<Preferences>): void {
  chosen = { ...chosen, ...change }
  current = resolve()
  try {
    localStorage.setItem(STORE, JSON.stringify(chosen))
  } catch {
    // Storage may be disabled: the choice then lasts as long as the page.
  }
  // biome-ignore lint/suspicious/noDocumentCookie: Safari and Firefox of last year lack the Cookie Store API.
  document.cookie = `${LANGUAGE_COOKIE}=${current.language}; path=/; max-age=${COOKIE_AGE_S}; samesite=lax`
  applyPreferences()
  for (const watcher of watchers) watcher()
}

export const readPreferences = (): Preferences => current

export function watchPreferences(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}
