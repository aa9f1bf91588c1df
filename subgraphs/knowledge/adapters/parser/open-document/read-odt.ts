import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { findAttribute, findChild, readXml, readXmlTree } from '../xml/xml.ts'
import type { ZipArchive } from '../zip.ts'
import { CONTENT, openOdf } from './odf-archive.ts'
import { OdfBody, type OdfStyles } from './odf-body.ts'
import { type ListLevels, readLevels } from './odf-lists.ts'

const STYLES = 'styles.xml'
const STYLE_UNITS = new Set(['list-style', 'outline-style', 'style'])

/**
 * Reads an OpenDocument text with the numbers of lists and headings, notes and text boxes. Omits deleted text and
 * comments.
 */
export async function readOdt(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const archive = await openOdf(bytes, limits)
  const styles = await readStyles(archive, limits)
  const root = await readXmlTree(archive.piecesOf(CONTENT), limits)
  new OdfBody(builder, styles).read(findChild(findChild(root, 'body'), 'text') ?? root)
}

/** Reads the styles of the document and those that its content defines. */
async function readStyles(archive: ZipArchive, limits: ParserLimits): Promise<OdfStyles> {
  const lists = new Map<string, ListLevels>()
  const titles = new Set(['Title'])
  let headings: ListLevels = new Map()
  for (const part of [STYLES, CONTENT]) {
    if (!archive.has(part)) continue
    await readXml(
      archive.piecesOf(part),
      limits,
      (style) => {
        const name = findAttribute(style, 'name') ?? ''
        if (style.name === 'list-style') lists.set(name, readLevels(style))
        else if (style.name === 'outline-style') headings = readLevels(style)
        else if (findAttribute(style, 'parent-style-name') === 'Title') titles.add(name)
      },
      { units: STYLE_UNITS },
    )
  }
  return { lists, headings, titles }
}
