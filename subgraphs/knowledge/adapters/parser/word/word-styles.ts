import { findAttribute, findChild, listChildren, type XmlElement } from '../xml/xml.ts'
import { integer, valueIn } from './word-numbering.ts'

/** The properties of paragraphs of a style, unless a paragraph overrides them. */
export interface WordStyle {
  /** The level of a heading, 1 to 6; 0 for running text. */
  readonly heading?: number
  readonly list?: string
  readonly level?: number
}

/** Maximum styles that are followed from one to its base. It ends cycles. */
const MAX_BASES = 20

/** Returns the paragraph styles by ID. */
export function readStyles(root: XmlElement | undefined): ReadonlyMap<string, WordStyle> {
  const elements = new Map(
    (root ? listChildren(root) : [])
      .filter((style) => style.name === 'style' && (findAttribute(style, 'type') ?? 'paragraph') === 'paragraph')
      .map((style) => [findAttribute(style, 'styleId') ?? '', style]),
  )
  return new Map([...elements.keys()].map((id) => [id, readStyle(id, elements)]))
}

function readStyle(id: string, elements: ReadonlyMap<string, XmlElement>): WordStyle {
  let style: WordStyle = {}
  let next: string | undefined = id
  for (let bases = 0; next !== undefined && bases < MAX_BASES; bases += 1) {
    const element: XmlElement | undefined = elements.get(next)
    style = { ...readOwnStyle(element), ...style }
    next = valueIn(element, 'basedOn')
  }
  return style
}

function readOwnStyle(style: XmlElement | undefined): WordStyle {
  const facts = readFacts(findChild(style, 'pPr'))
  const name = valueIn(style, 'name') ?? ''
  const named = /^heading (\d)$/i.exec(name)?.[1] ?? (/^title$/i.test(name) ? '1' : undefined)
  return named === undefined ? facts : { heading: Math.min(6, Number(named)), ...facts }
}

/** Returns the properties of a style or a paragraph. An outline level of 9 means running text. */
export function readFacts(properties: XmlElement | undefined): WordStyle {
  const outline = integer(valueIn(properties, 'outlineLvl'))
  const numbers = findChild(properties, 'numPr')
  const list = valueIn(numbers, 'numId')
  const level = integer(valueIn(numbers, 'ilvl'))
  return {
    ...(outline !== undefined && { heading: outline < 9 ? Math.min(6, outline + 1) : 0 }),
    ...(list !== undefined && { list }),
    ...(level !== undefined && { level }),
  }
}
