import type { ParsedDocument } from '../../ports/document-parser.ts'
import { shorten } from './cut-text.ts'

/** Maximum headings of an outline. It describes the document's subject and is not a table of contents. */
const MAX_HEADINGS = 8
/** Maximum characters of a title or heading. */
const MAX_CHARACTERS = 80

/** The title and the main headings of a document, as it states them. */
export interface Outline {
  /** The first heading, if the document starts with it. */
  readonly title: string | null
  /** The other headings: those of the outermost levels, in order. */
  readonly headings: readonly string[]
}

/** Reads the outline from the headings. Among repeated headings the first one counts. */
export function buildOutline({ blocks, text }: Pick<ParsedDocument, 'blocks' | 'text'>): Outline {
  const found = blocks.flatMap(({ kind, level = 1, charStart, charEnd }, index) => {
    const name = kind === 'heading' ? oneLine(text.slice(charStart, charEnd)) : ''
    return name === '' ? [] : { name, level, index }
  })
  const [first, ...others] = found
  const title = first?.index === 0 ? first.name : null
  const rest = (title === null ? found : others).filter(({ name }) => name !== title)
  // The first position of a repeated name counts.
  const distinct = [...new Map(rest.toReversed().map((heading) => [heading.name, heading])).values()]
  const outermost = distinct.toSorted((a, b) => a.level - b.level || a.index - b.index).slice(0, MAX_HEADINGS)
  return { title, headings: outermost.toSorted((a, b) => a.index - b.index).map(({ name }) => name) }
}

function oneLine(text: string): string {
  return shorten(text.replaceAll(/\s+/g, ' ').trim(), MAX_CHARACTERS)
}
