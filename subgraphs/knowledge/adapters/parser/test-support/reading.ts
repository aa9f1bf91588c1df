import { writeZip } from '../../../../../test/support/data/zip-file.ts'
import type { ParsedDocument } from '../../../ports/document-parser.ts'
import { DEFAULT_LIMITS, type ParserLimits } from '../limits.ts'
import { DocumentBuilder } from '../readers/document-builder.ts'
import { readDocument } from '../readers/read-document.ts'
import { sniffMediaType } from '../sniff.ts'

/** Reads a file in this process, by its detected format. */
export async function read(content: Uint8Array | string, fileName = 'file', limits: Partial<ParserLimits> = {}): Promise<ParsedDocument> {
  const bytes = Buffer.from(content)
  const all = { ...DEFAULT_LIMITS, ...limits }
  const builder = new DocumentBuilder(all)
  const mediaType = sniffMediaType(bytes, fileName)
  const pageCount = await readDocument(mediaType, bytes, builder, all)
  return builder.build(mediaType, pageCount)
}

/** Formats blocks as `kind: text`, with their level, table header and location. */
function toOutline({ text, blocks }: ParsedDocument): readonly string[] {
  return blocks.map(({ kind, level, tableHeader, location, charStart, charEnd }) => {
    const position = location && `${location.within}${location.start}-${location.end}`
    const facts = [level && `${level}`, tableHeader && ` [${tableHeader}]`, position && ` (${position})`].filter(Boolean).join('')
    return `${kind}${facts}: ${text.slice(charStart, charEnd)}`
  })
}

export async function outline(content: Uint8Array | string, fileName?: string): Promise<readonly string[]> {
  return toOutline(await read(content, fileName))
}

/** Returns an archive with these entries, in order. */
export function zip(entries: Readonly<Record<string, Uint8Array | string>>): Buffer {
  return writeZip(Object.entries(entries).map(([name, content]) => ({ name, content: Buffer.from(content) })))
}

/** Returns an archive whose first entry is an uncompressed `mimetype`, as OpenDocument and EPUB require. */
export function declaredZip(mediaType: string, entries: Readonly<Record<string, Uint8Array | string>>): Buffer {
  return writeZip([
    { name: 'mimetype', content: Buffer.from(mediaType), stored: true },
    ...Object.entries(entries).map(([name, content]) => ({ name, content: Buffer.from(content) })),
  ])
}
