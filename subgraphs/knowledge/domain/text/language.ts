export type Language = 'ar' | 'en'

/** Characters examined in a whole document. No language of a document goes unnoticed in a sample of this size. */
const SAMPLE_CHARS = 40_000
const SAMPLE_WINDOWS = 20

/** Below this share of the letters, neither script decides (Japanese with a few Latin words). */
const LEAST_SHARE = 0.3

const ARABIC = /\p{Script=Arabic}/gu
const LATIN = /\p{Script=Latin}/gu
const LETTER = /\p{L}/gu

/**
 * The language by share of scripts: Arabic script is `ar`, Latin script is `en`. Equal shares are `ar`, because Arabic
 * texts quote Latin names more often than the other way round. Null without letters, or when other scripts have most of
 * them.
 */
export function detectLanguage(text: string): Language | null {
  const letters = count(text, LETTER)
  const arabic = count(text, ARABIC)
  const latin = count(text, LATIN)
  if (letters === 0 || Math.max(arabic, latin) < letters * LEAST_SHARE) return null
  return arabic >= latin ? 'ar' : 'en'
}

/** The language of a whole document, from windows spread evenly over it, so that its length does not matter. */
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
