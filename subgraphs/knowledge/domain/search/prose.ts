/** A passage that says little ranks this much lower, as a cosine: below every text that answers the query at all. */
export const JUNK_PENALTY = 0.06
/** Words below which a passage is a heading or a label. */
const MIN_WORDS = 4
/** Lines of contents that make a passage one. */
const MIN_CONTENTS_LINES = 4
const CONTENTS_SHARE = 0.6
/** Share of dots, dashes and underlines from which a text is a form or a line of signatures. */
const LEADER_SHARE = 0.4
/** Passages with the same words, apart from numbers, that make them boilerplate. */
const MIN_REPEATS = 3

const LEADERS = /[.·…_ـ\-–—―=*•]/g
/** A page number at the end of a line. */
const PAGE_NUMBER = /(?<![\d٠-٩])[\d٠-٩]{1,4}$/
/** What may stand between a title and its page number, and what of it tells that it is one. */
const FILLER = /[\s|.·…_]/
const LEADER = /[.·…_]{3}|\s\|\s|\t/

/** Tables of contents, lines to sign or fill in, and labels. */
export function isJunk(text: string): boolean {
  return countWords(text) < MIN_WORDS || isForm(text) || isContents(text)
}

/** The passages, by index, whose words several others have too, apart from numbers. */
export function findRepeated(texts: readonly string[]): ReadonlySet<number> {
  const words = texts.map((text) => text.replace(/[\p{N}\s]+/gu, ''))
  const sameWords = Map.groupBy(words.keys(), (index) => words[index]!)
  return new Set([...sameWords.values()].filter((same) => same.length >= MIN_REPEATS).flat())
}

function countWords(text: string): number {
  return text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0
}

function isForm(text: string): boolean {
  const solid = text.replace(/\s/g, '')
  return (solid.match(LEADERS)?.length ?? 0) > solid.length * LEADER_SHARE
}

/** Page numbers never fall, which tells contents from a table of two columns. */
function isContents(text: string): boolean {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const pages = lines.flatMap((line) => {
    const page = findPageNumber(line.normalize('NFKC'))
    return page === null ? [] : [Number(page.replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) & 0xf)))]
  })
  if (pages.length < MIN_CONTENTS_LINES || pages.length < lines.length * CONTENTS_SHARE) return false
  return pages.every((page, at) => at === 0 || page >= pages[at - 1]!)
}

/** Returns the page number of a line of contents: a title, dots or the border of a cell, and the number. */
function findPageNumber(line: string): string | null {
  const text = line.trimEnd()
  const page = PAGE_NUMBER.exec(text)?.[0]
  if (page === undefined || /^\d/.test(text)) return null
  let titleEnd = text.length - page.length
  while (titleEnd > 0 && FILLER.test(text[titleEnd - 1]!)) titleEnd--
  return titleEnd > 0 && LEADER.test(text.slice(titleEnd, -page.length)) ? page : null
}
