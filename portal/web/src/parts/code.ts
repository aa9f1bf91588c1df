/** The service's limit of characters. */
const MAX_CODE = 64
/** Digits of a code for a name without Latin letters: 36^6 codes. */
const DIGITS = 6

/**
 * Returns a code that programs can use for a name: its Latin letters and digits. A name without Latin letters, such as
 * an Arabic one, gets a code that starts with `kind` and is always the same for that name. Empty: the name is empty.
 */
export function codeOf(name: string, kind: string): string {
  const code = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_CODE)
    .replace(/^-+|-+$/g, '')
  if (/[a-z]/.test(code) || name.trim() === '') return code
  let hash = 0
  for (const character of name.trim()) hash = (hash * 31 + character.codePointAt(0)!) % 36 ** DIGITS
  return `${kind}-${hash.toString(36).padStart(DIGITS, '0')}`
}
