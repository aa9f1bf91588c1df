import { attributeOf, type XmlElement } from '../xml/xml.ts'

/** What stands in a paragraph without being part of its line. */
export interface Aside {
  readonly kind: 'note' | 'box'
  readonly element: XmlElement
}

/** Comments, deleted text, readings over words, and what a program would need to make the document again. */
const NOT_TEXT = new Set(['annotation', 'tracked-changes', 'ruby-text', 'forms', 'variable-decls', 'sequence-decls', 'user-field-decls'])
/** Spaces of one element; a document that says more means harm. */
const MAX_SPACES = 100

/** The line of a paragraph or heading, with the numbers of its notes; notes and text boxes are given apart. */
export function lineOf(paragraph: XmlElement, aside: (aside: Aside) => void = () => undefined): string {
  const parts: string[] = []
  const read = (element: XmlElement) => {
    for (const child of element.children) {
      // White space folds, and is written by elements of its own (ODF 1.3, part 3, 6.1.2).
      if (typeof child === 'string') parts.push(child.replace(/[ \t\r\n]+/g, ' '))
      else if (child.name === 's') parts.push(' '.repeat(Math.min(MAX_SPACES, Number(attributeOf(child, 'c') ?? 1) || 1)))
      else if (child.name === 'tab') parts.push('\t')
      else if (child.name === 'line-break') parts.push('\u2028')
      else if (child.name === 'note') {
        const citation = child.children.find((part): part is XmlElement => typeof part !== 'string' && part.name === 'note-citation')
        if (citation) parts.push(`[${lineOf(citation)}]`)
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
