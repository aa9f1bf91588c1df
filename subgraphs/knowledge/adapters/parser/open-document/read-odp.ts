import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { findAttribute, listChildren, listDescendants, readXml, type XmlElement } from '../xml/xml.ts'
import { CONTENT, openOdf } from './odf-archive.ts'
import { OdfBody, type OdfStyles } from './odf-body.ts'
import { joinLine } from './odf-text.ts'

const NO_STYLES: OdfStyles = { lists: new Map(), headings: new Map(), titles: new Set() }
/** Classes of frames that repeat on every slide. */
const REPEATED = new Set(['date-time', 'footer', 'header', 'page-number'])

/**
 * Reads an OpenDocument presentation. A slide is a page, with its title as a heading and its notes after its content.
 * Returns the number of slides.
 */
export async function readOdp(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<number> {
  const archive = await openOdf(bytes, limits)
  let page = 0
  const units = new Set(['page'])
  await readXml(
    archive.piecesOf(CONTENT),
    limits,
    (slide) => {
      page += 1
      addSlide(slide, page, builder)
    },
    { units },
  )
  return page
}

function addSlide(slide: XmlElement, page: number, builder: DocumentBuilder): void {
  const shapes = listChildren(slide)
  const title = shapes.find((shape) => findAttribute(shape, 'class') === 'title')
  const lines = title ? [...listDescendants(title, 'p')].map((paragraph) => joinLine(paragraph)) : []
  builder.add('heading', lines.join(' ').trim() || `${page}`, { level: 1, page })
  const body = new OdfBody(builder, NO_STYLES, { page })
  for (const shape of shapes) {
    if (shape === title || REPEATED.has(findAttribute(shape, 'class') ?? '')) continue
    const children = shape.name === 'notes' ? shape.children.filter((child) => typeof child === 'string' || !isRepeated(child)) : [shape]
    body.read({ name: 'shapes', attributes: {}, children })
  }
}

function isRepeated(shape: XmlElement): boolean {
  return REPEATED.has(findAttribute(shape, 'class') ?? '')
}
