import type { ParsedDocument } from '../../ports/document-parser.ts'
import { shorten } from './cut-text.ts'
import { type HeadingPaths, type Section, toPath } from './heading-paths.ts'
import type { TokenCounter } from './token-counter.ts'

/** Characters of the heading path before a text. The innermost headings are kept first. */
const MAX_PATH_CHARS = 240
/** Characters of a table's header row before its rows. */
const MAX_TABLE_HEADER_CHARS = 240

/** What precedes the text of a chunk that begins with a given block, and its cost. */
export interface Contexts {
  textAt(block: number): string
  tokensAt(block: number): number
}

/** Counts each distinct context once. One of more than `maxTokens` is left out, so that it never displaces the text. */
export async function countContexts(
  document: ParsedDocument,
  headings: HeadingPaths,
  counter: TokenCounter,
  maxTokens: number,
): Promise<Contexts> {
  const texts = buildContexts(document, headings)
  const distinct = [...new Set(texts)]
  // The count includes the line feed between the context and the text.
  const counts = await counter.count(distinct.map((text) => (text === '' ? '' : `${text}\n`)))
  const tokens = new Map(distinct.map((text, index) => [text, counts[index]!]))
  const contextAt = (block: number) => {
    const text = texts[block]!
    return tokens.get(text)! <= maxTokens ? text : ''
  }
  return { textAt: contextAt, tokensAt: (block) => tokens.get(contextAt(block)) ?? 0 }
}

/** One string for each block, the same object for neighbours that share it: a table may have 100,000 rows. */
function buildContexts({ blocks }: ParsedDocument, headings: HeadingPaths): readonly string[] {
  let last: { readonly section: Section | null; readonly tableHeader: string | undefined; readonly text: string } | undefined
  return blocks.map(({ tableHeader }, index) => {
    const section = headings.above(index)
    if (last?.section !== section || last.tableHeader !== tableHeader) {
      const header = tableHeader ? shorten(tableHeader, MAX_TABLE_HEADER_CHARS) : ''
      last = { section, tableHeader, text: [selectInnermost(toPath(section)), header].filter((part) => part !== '').join('\n') }
    }
    return last?.text ?? ''
  })
}

/** The part of a heading path that precedes a text. */
export function selectInnermost(path: readonly string[]): string {
  let joined = ''
  for (const name of path.toReversed()) {
    const longer = joined === '' ? shorten(name, MAX_PATH_CHARS) : `${name} > ${joined}`
    if (longer.length > MAX_PATH_CHARS) break
    joined = longer
  }
  return joined
}
