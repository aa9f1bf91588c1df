/** Maximum pages that a message names. The `pages` of a warning have all of them. */
const MAX_PAGES_NAMED = 20

/** Formats page numbers: `2, 3, 7`. */
export function namePages(pages: readonly number[]): string {
  const named = pages.slice(0, MAX_PAGES_NAMED).join(', ')
  return pages.length > MAX_PAGES_NAMED ? `${named} and others` : named
}
