/** What the service takes at most. */
const MAX_CODE = 64

/** A code that programs can use for a name: its Latin letters and digits. Empty: the name has none. */
export function codeOf(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, MAX_CODE)
}
