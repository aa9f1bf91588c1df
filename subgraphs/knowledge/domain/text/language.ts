/** The languages with stemming and language-specific ranking. */
export type Language = 'ar' | 'en'

/** Characters sampled from a whole document: enough for every language that matters in it. */
const SAMPLE_CHARS = 40_000
const SAMPLE_WINDOWS = 20

/** Below this share of the letters, neither script decides, such as Japanese with a few Latin words. */
const LEAST_SHARE = 0.3

const ARABIC = /\p{Script=Arabic}/gu
const LATIN = /\p{Script=Latin}/gu
const LETTER = /\p{L}/gu

/**
 * Detects the language by the share of scripts: Arabic script is `ar`, Latin script is `en`. Equal shares are `ar`,
 * because Arabic texts quote Latin names more often than the reverse. Returns null if the text has no letters or mostly
 * other scripts.
 */
export function detectLanguage(text: string): Language | null {
  const letters = count(text, LETTER)
  const arabic = count(text, ARABIC)
  const latin = count(text, LATIN)
  if (letters === 0 || Math.max(arabic, latin) < letters * LEAST_SHARE) return null
  return arabic >= latin ? 'ar' : 'en'
}

/**
 * Detects the language of a whole document from windows spread evenly over it, so that the cost does not depend on its
 * length.
 */
export function detectDocumentLanguage(text: string): Language | null {
  if (text.length <= SAMPLE_CHARS) return detectLanguage(text)
  const window = SAMPLE_CHARS / SAMPLE_WINDOWS
  const stride = (text.length - window) / (SAMPLE_WINDOWS - 1)
  const windows = Array.from({ length: SAMPLE_WINDOWS }, (_, index) =>
    text.slice(Math.floor(index * stride), Math.floor(index * stride) + window),
  )
  return detectLanguage(windows.join('\n'))
}

function count(text: string, pattern: RegExp): number {
  let found = 0
  for (const _ of text.matchAll(pattern)) found += 1
  return found
}
