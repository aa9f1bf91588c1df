import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { addTable, type TableCell } from '../tables/add-table.ts'
import { OfficePackage, relationOf } from '../xml/office-package.ts'
import { attributeOf, childOf, childrenOf, descendantsOf, type XmlElement } from '../xml/xml.ts'

/** Types of placeholders that repeat on every slide. */
const REPEATED = new Set(['dt', 'ftr', 'sldNum', 'hdr', 'sldImg'])
const TITLES = new Set(['title', 'ctrTitle'])

/**
 * Reads a PowerPoint presentation. A slide is a page, with its title as a heading and its notes after its content.
 * Leaves out hidden slides. Returns the number of slides.
 */
export async function readPptx(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<number> {
  const parts = new OfficePackage(bytes, limits)
  const main = (await parts.relatedPart('', 'officeDocument')) ?? 'ppt/presentation.xml'
  const related = await parts.relationshipsOf(main)
  const ids = childOf(await parts.read(main), 'sldIdLst')
  let page = 0
  for (const id of ids ? childrenOf(ids) : []) {
    const slide = related.get(relationOf(id) ?? '')
    if (!slide || !parts.archive.has(slide.part)) continue
    page += 1
    const root = await parts.read(slide.part)
    if (/^(?:0|false)$/.test(root.attributes.show ?? '')) continue
    addSlide(root, page, builder)
    const notes = await parts.relatedPart(slide.part, 'notesSlide')
    if (notes) for (const text of textsOf(await parts.read(notes))) builder.add('paragraph', text, { page })
  }
  return page
}

function addSlide(root: XmlElement, page: number, builder: DocumentBuilder): void {
  const shapes = [...shapesOf(root)]
  const title = shapes.find((shape) => TITLES.has(placeholderOf(shape) ?? ''))
  builder.add('heading', (title && paragraphsOf(title).join(' ')) || `${page}`, { level: 1, page })
  for (const shape of shapes) {
    if (shape === title || REPEATED.has(placeholderOf(shape) ?? '')) continue
    const table = descendantsOf(shape, 'tbl').next().value
    if (table) addTable(rowsOf(table), builder, { page })
    else for (const text of paragraphsOf(shape)) builder.add('paragraph', text, { page })
  }
}

function textsOf(root: XmlElement): readonly string[] {
  return [...shapesOf(root)].filter((shape) => !REPEATED.has(placeholderOf(shape) ?? '')).flatMap(paragraphsOf)
}

/** Yields shapes and frames, including those in groups, in their order on the slide. */
function* shapesOf(element: XmlElement): Generator<XmlElement> {
  for (const child of childrenOf(element)) {
    if (child.name === 'sp' || child.name === 'graphicFrame' || child.name === 'cxnSp') yield child
    else yield* shapesOf(child)
  }
}

/** Returns the type of a placeholder, which is `body` by default. Returns undefined for other shapes. */
function placeholderOf(shape: XmlElement): string | undefined {
  const placeholder = descendantsOf(childrenOf(shape)[0] ?? shape, 'ph').next().value
  return placeholder && (attributeOf(placeholder, 'type') ?? 'body')
}

function paragraphsOf(shape: XmlElement): readonly string[] {
  return [...descendantsOf(shape, 'p')].map(lineOf).filter((text) => text.trim() !== '')
}

function lineOf(element: XmlElement): string {
  return childrenOf(element)
    .map((child) => {
      if (child.name === 't') return child.children.filter((text) => typeof text === 'string').join('')
      if (child.name === 'br') return '\u2028'
      return child.name === 'pPr' || child.name === 'rPr' ? '' : lineOf(child)
    })
    .join('')
}

function rowsOf(table: XmlElement): readonly (readonly TableCell[])[] {
  return childrenOf(table)
    .filter(({ name }) => name === 'tr')
    .map((row) =>
      childrenOf(row)
        .filter(({ name, attributes }) => name === 'tc' && attributes.hMerge !== '1')
        .map((cell) => ({
          text: paragraphsOf(cell).join(' '),
          columns: Number(cell.attributes.gridSpan ?? 1),
          ...(cell.attributes.vMerge === '1' ? { goesOn: true } : {}),
        })),
    )
}
