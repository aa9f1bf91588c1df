import { parseFragment } from 'parse5'
import { toPlain } from '../../common/plain-text.ts'

/** Characters of a page that are searched for its title. */
const HEAD_CHARACTERS = 256 * 1024
const MAX_TITLE_CHARACTERS = 1_000
const MAX_NAME_CHARACTERS = 200

/** A file name for what an address has given: the page's title, or the last part of the address. */
export function nameOfPage(url: string, page: string | null, extension: string): string {
  const title = page === null ? '' : unescapeHtml(findTitle(page.slice(0, HEAD_CHARACTERS)))
  const { pathname, hostname } = new URL(url)
  const last = decodePath(pathname.split('/').findLast((part) => part !== '') ?? hostname)
  const name = toPlain(title || last)
    .replaceAll(/[/\\]+/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_NAME_CHARACTERS)
    .toWellFormed()
  const plain = /^\.*$/.test(name) ? hostname : name
  return title && extension !== '' && !plain.endsWith(extension) ? `${plain}${extension}` : plain
}

function findTitle(head: string): string {
  const tag = head.search(/<title[\s>]/i)
  const start = tag < 0 ? -1 : head.indexOf('>', tag)
  if (start < 0) return ''
  const end = head.indexOf('<', start)
  return head.slice(start + 1, Math.min(end < 0 ? head.length : end, start + 1 + MAX_TITLE_CHARACTERS))
}

function decodePath(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function unescapeHtml(text: string): string {
  const [node] = parseFragment(text).childNodes
  return node && 'value' in node ? node.value.trim() : ''
}
