import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { addTable, type TableCell } from '../tables/add-table.ts'
import { findRelation, OfficePackage } from '../xml/office-package.ts'
import { findAttribute, findChild, listChildren, listDescendants, type XmlElement } from '../xml/xml.ts'

/** Types of placeholders that repeat on every slide. */
const REPEATED = new Set(['dt', 'ftr', 'sldNum', 'hdr', 'sldImg'])
const TITLES = new Set(['title', 'ctrTitle'])

/**
 * Reads a PowerPoint presentation. A slide is a page, with its title as a heading and its notes after its content.
 * Omits hidden slides. Returns the number of slides.
 */
export async function readPptx(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<number> {
  const parts = new OfficePackage(bytes, limits)
  const main = (await parts.relatedPart('', 'officeDocument')) ?? 'ppt/presentation.xml'
  const related = await parts.readRelationships(main)
  const ids = findChild(await parts.read(main), 'sldIdLst')
  let page = 0
  for (const id of ids ? listChildren(ids) : []) {
    const slide = related.get(findRelation(id) ?? '')
    if (!slide || !parts.archive.has(slide.part)) continue
    page += 1
    const root = await parts.read(slide.part)
    if (/^(?:0|false)$/.test(root.attributes.show ?? '')) continue
    addSlide(root, page, builder)
    const notes = await parts.relatedPart(slide.part, 'notesSlide')
    if (notes) for (const text of listTexts(await parts.read(notes))) builder.add('paragraph', text, { page })
  }
  return page
}

function addSlide(root: XmlElement, page: number, builder: DocumentBuilder): void {
  const shapes = [...listShapes(root)]
  const title = shapes.find((shape) => TITLES.has(findPlaceholder(shape) ?? ''))
  builder.add('heading', (title && listParagraphs(title).join(' ')) || `${page}`, { level: 1, page })
  for (const shape of shapes) {
    if (shape === title || REPEATED.has(findPlaceholder(shape) ?? '')) continue
    const table = listDescendants(shape, 'tbl').next().value
    if (table) addTable(readRows(table), builder, { page })
    else for (const text of listParagraphs(shape)) builder.add('paragraph', text, { page })
  }
}

function listTexts(root: XmlElement): readonly string[] {
  return [...listShapes(root)].filter((shape) => !REPEATED.has(findPlaceholder(shape) ?? '')).flatMap(listParagraphs)
}

/** Yields shapes and frames, including those in groups, in their order on the slide. */
function* listShapes(element: XmlElement): Generator<XmlElement> {
  for (const child of listChildren(element)) {
    if (child.name === 'sp' || child.name === 'graphicFrame' || child.name === 'cxnSp') yield child
    else yield* listShapes(child)
  }
}

/** Returns the type of a placeholder, which is `body` by default. Returns undefined for other shapes. */
function findPlaceholder(shape: XmlElement): string | undefined {
  const placeholder = listDescendants(listChildren(shape)[0] ?? shape, 'ph').next().value
  return placeholder && (findAttribute(placeholder, 'type') ?? 'body')
}

function listParagraphs(shape: XmlElement): readonly string[] {
  return [...listDescendants(shape, 'p')].map(joinLine).filter((text) => text.trim() !== '')
}

function joinLine(element: XmlElement): string {
  return listChildren(element)
    .map((child) => {
      if (child.name === 't') return child.children.filter((text) => typeof text === 'string').join('')
      if (child.name === 'br') return '\u2028'
      return child.name === 'pPr' || child.name === 'rPr' ? '' : joinLine(child)
    })
    .join('')
}

function readRows(table: XmlElement): readonly (readonly TableCell[])[] {
  return listChildren(table)
    .filter(({ name }) => name === 'tr')
    .map((row) =>
      listChildren(row)
        .filter(({ name, attributes }) => name === 'tc' && attributes.hMerge !== '1')
        .map((cell) => ({
          text: listParagraphs(cell).join(' '),
          columns: Number(cell.attributes.gridSpan ?? 1),
          ...(cell.attributes.vMerge === '1' ? { goesOn: true } : {}),
        })),
    )
}
