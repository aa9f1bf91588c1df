import { ParseFailure } from '../../../ports/document-parser.ts'
import { readHtml } from '../html/read-html.ts'
import type { ParserLimits } from '../limits.ts'
import { listDescendants, readXmlTree } from '../xml/xml.ts'
import { ZipArchive } from '../zip.ts'
import type { DocumentBuilder } from './document-builder.ts'

const CONTAINER = 'META-INF/container.xml'
const ENCRYPTION = 'META-INF/encryption.xml'

/**
 * Reads a book's chapters in reading order. Omits the table of contents, which repeats the headings.
 * @throws {ParseFailure} `corrupt` if the book is corrupted.
 * @throws {ParseFailure} `password_required` if a chapter is encrypted.
 * @throws {ParseFailure} `limit_exceeded` if the book exceeds a limit.
 */
export async function readEpub(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const archive = new ZipArchive(bytes, limits)
  const locked = archive.has(ENCRYPTION) ? Buffer.from(await archive.read(ENCRYPTION)).toString() : ''
  const container = await readXmlTree(archive.piecesOf(CONTAINER), limits)
  const file = listDescendants(container, 'rootfile').next().value
  const main = file?.attributes['full-path']
  if (main === undefined) throw new ParseFailure('corrupt', 'The book cannot be read: its container names no content.')
  const book = await readXmlTree(archive.piecesOf(main), limits)
  const folder = main.slice(0, main.lastIndexOf('/') + 1)
  const items = new Map([...listDescendants(book, 'item')].map((item) => [item.attributes.id, item.attributes]))
  const seen = new Set<string>()
  for (const { attributes } of listDescendants(book, 'itemref')) {
    const { href, 'media-type': type = '', properties = '' } = items.get(attributes.idref) ?? {}
    const part = href === undefined ? undefined : new URL(href, `file:///${folder}`).pathname
    if (part === undefined || !/html/.test(type) || /\bnav\b/.test(properties)) continue
    const name = decoded(part.slice(1))
    if (seen.has(name) || !archive.has(name)) continue
    seen.add(name)
    if (locked.includes(name)) throw new ParseFailure('password_required', 'The book has copy protection (DRM). Upload a copy without it.')
    readHtml(await archive.read(name), builder)
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
