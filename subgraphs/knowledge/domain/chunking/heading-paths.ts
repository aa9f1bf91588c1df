import type { ParsedDocument } from '../../ports/document-parser.ts'
import { shorten } from './cut-text.ts'

/** Maximum characters of a heading in a path. Longer headings are styled paragraphs. */
const MAX_HEADING_CHARS = 200

/** A heading and the text below it. */
interface Section {
  readonly level: number
  readonly name: string
  readonly parent: Section | null
}

/** Maps blocks to the headings that contain them. A section is identified by its object. */
export interface HeadingPaths {
  /** Returns the section of a block. A heading belongs to its own section. */
  sectionAt(block: number): Section | null
  /** Returns the section above a block. For a heading, this is its parent. */
  above(block: number): Section | null
}

/** Builds the tree of headings from the levels of a document's headings. */
export function buildHeadingPaths({ blocks, text }: ParsedDocument): HeadingPaths {
  let section: Section | null = null
  const sections = blocks.map((block) => {
    if (block.kind === 'heading') {
      const level = block.level ?? 1
      let parent: Section | null = section
      while (parent && parent.level >= level) parent = parent.parent
      section = { level, name: shorten(text.slice(block.charStart, block.charEnd).replaceAll('\n', ' '), MAX_HEADING_CHARS), parent }
    }
    return section
  })
  return {
    sectionAt: (block) => sections[block] ?? null,
    above: (block) => (blocks[block]?.kind === 'heading' ? (sections[block]?.parent ?? null) : (sections[block] ?? null)),
  }
}

/** Returns the headings from the outermost to this section's. */
export function toPath(section: Section | null): readonly string[] {
  return listAncestors(section).map(({ name }) => name)
}

/** Returns true if `inner` is `outer` or below it. Every section is below null. */
export function isWithin(inner: Section | null, outer: Section | null): boolean {
  return outer === null || listAncestors(inner).includes(outer)
}

/** Returns the innermost section that contains both. */
export function commonSection(a: Section | null, b: Section | null): Section | null {
  const holders = listAncestors(b)
  return listAncestors(a).findLast((section) => holders.includes(section)) ?? null
}

/** Returns the section's ancestors, outermost first: one per heading level, six at most. */
function listAncestors(section: Section | null): readonly Section[] {
  const chain: Section[] = []
  for (let at = section; at; at = at.parent) chain.push(at)
  return chain.reverse()
}

export type { Section }
