import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { attributeOf, childOf, readXml, readXmlTree } from '../xml/xml.ts'
import type { ZipArchive } from '../zip.ts'
import { CONTENT, openOdf } from './odf-archive.ts'
import { OdfBody, type OdfStyles } from './odf-body.ts'
import { type ListLevels, levelsOf } from './odf-lists.ts'

const STYLES = 'styles.xml'
const STYLE_UNITS = new Set(['list-style', 'outline-style', 'style'])

/**
 * Reads an OpenDocument text with the numbers of lists and headings, notes and text boxes. Leaves out deleted text and
 * comments.
 */
export async function readOdt(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const archive = await openOdf(bytes, limits)
  const styles = await stylesOf(archive, limits)
  const root = await readXmlTree(archive.piecesOf(CONTENT), limits)
  new OdfBody(builder, styles).read(childOf(childOf(root, 'body'), 'text') ?? root)
}

/** Reads the styles of the document and those that its content defines. */
async function stylesOf(archive: ZipArchive, limits: ParserLimits): Promise<OdfStyles> {
  const lists = new Map<string, ListLevels>()
  const titles = new Set(['Title'])
  let headings: ListLevels = new Map()
  for (const part of [STYLES, CONTENT]) {
    if (!archive.has(part)) continue
    await readXml(
      archive.piecesOf(part),
      limits,
      (style) => {
        const name = attributeOf(style, 'name') ?? ''
        if (style.name === 'list-style') lists.set(name, levelsOf(style))
        else if (style.name === 'outline-style') headings = levelsOf(style)
        else if (attributeOf(style, 'parent-style-name') === 'Title') titles.add(name)
      },
      { units: STYLE_UNITS },
    )
  }
  return { lists, headings, titles }
}
