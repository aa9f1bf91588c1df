import type { ParsedDocument } from '../../ports/document-parser.ts'
import { shorten } from './cut-text.ts'

/** Characters of a heading in a path. Longer headings are styled paragraphs. */
const MAX_HEADING_CHARS = 200

/** A heading and what is below it. */
interface Section {
  readonly level: number
  readonly name: string
  readonly parent: Section | null
}

/** Which headings contain which blocks. A section is identified by its object. */
export interface HeadingPaths {
  /** The section of a block. A heading is in its own. */
  sectionAt(block: number): Section | null
  /** The section above a block: for a heading, its parent. */
  above(block: number): Section | null
}

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

/** Names from the outermost heading to this one. */
export function toPath(section: Section | null): readonly string[] {
  return listAncestors(section).map(({ name }) => name)
}

/** True when `inner` is `outer` or below it. Everything is below null. */
export function isWithin(inner: Section | null, outer: Section | null): boolean {
  return outer === null || listAncestors(inner).includes(outer)
}

/** The innermost section that contains both. */
export function commonSection(a: Section | null, b: Section | null): Section | null {
  const holders = listAncestors(b)
  return listAncestors(a).findLast((section) => holders.includes(section)) ?? null
}

/** Outermost first. As long as there are levels, six at most. */
function listAncestors(section: Section | null): readonly Section[] {
  const chain: Section[] = []
  for (let at = section; at; at = at.parent) chain.push(at)
  return chain.reverse()
}

export type { Section }
