import { findAttribute, type XmlElement } from '../xml/xml.ts'

/** Content of a paragraph that is not part of its line. */
interface Aside {
  readonly kind: 'note' | 'box'
  readonly element: XmlElement
}

/** Elements whose text is not part of the document: comments, deleted text, phonetic guides, forms and declarations. */
const NOT_TEXT = new Set(['annotation', 'tracked-changes', 'ruby-text', 'forms', 'variable-decls', 'sequence-decls', 'user-field-decls'])
/** Maximum spaces that one element represents. A larger number is an attack. */
const MAX_SPACES = 100

/** Returns the line of a paragraph or heading, with the marks of its notes. Passes notes and text boxes to `aside`. */
export function joinLine(paragraph: XmlElement, aside: (aside: Aside) => void = () => undefined): string {
  const parts: string[] = []
  const read = (element: XmlElement) => {
    for (const child of element.children) {
      // White space is folded. Elements represent spaces, tabs and line breaks (ODF 1.3, part 3, 6.1.2).
      if (typeof child === 'string') parts.push(child.replace(/[ \t\r\n]+/g, ' '))
      else if (child.name === 's') parts.push(' '.repeat(Math.min(MAX_SPACES, Number(findAttribute(child, 'c') ?? 1) || 1)))
      else if (child.name === 'tab') parts.push('\t')
      else if (child.name === 'line-break') parts.push('\u2028')
      else if (child.name === 'note') {
        const citation = child.children.find((part): part is XmlElement => typeof part !== 'string' && part.name === 'note-citation')
        if (citation) parts.push(`[${joinLine(citation)}]`)
        aside({ kind: 'note', element: child })
      } else if (child.name === 'text-box') aside({ kind: 'box', element: child })
      else if (!NOT_TEXT.has(child.name)) read(child)
    }
  }
  read(paragraph)
  return parts.join('').trim()
}

export function isText({ name }: XmlElement): boolean {
  return !NOT_TEXT.has(name)
}
