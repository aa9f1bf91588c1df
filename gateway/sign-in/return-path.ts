/** Pages of the portal to which a sign-in may return. */
const PAGES = new Set([
  ...['home', 'collections', 'agents', 'workflows', 'models', 'keys', 'usage', 'wallet', 'webhooks'],
  ...['organization', 'people', 'operator', 'docs'],
])
/** Where a person chooses among their organizations. */
const CHOICE = '/sign-in/organization'
const MAX_CHARACTERS = 2_000
export const HOME = '/home'

/** The path as it was asked for if it is of a page of the portal, and else the first page. It is never of another host. */
export function toReturnPath(requested: unknown): string {
  if (typeof requested !== 'string' || requested.length > MAX_CHARACTERS) return HOME
  // Browsers take a backslash as a slash, and leave out tabs and line breaks.
  if (!/^\/[a-z]/.test(requested) || /[\\\p{C}\s]/u.test(requested)) return HOME
  const base = 'http://portal.invalid'
  const url = URL.parse(requested, base)
  if (url?.origin !== base || (url.pathname !== CHOICE && !PAGES.has(url.pathname.split('/')[1]!))) return HOME
  return url.pathname + url.search + url.hash
}
