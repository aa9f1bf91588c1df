import { expect } from 'vitest'
import { type DocumentChunk, toEmbeddingText } from '../../subgraphs/knowledge/domain/chunking/chunk-document.ts'
import type { ParsedDocument } from '../../subgraphs/knowledge/ports/document-parser.ts'

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** A token is a word or four characters of one, and each text has two special tokens. */
export const countWords = (text: string) => 2 + (text.match(/\S{1,4}/g)?.length ?? 0)

/**
 * What holds for the passages of every document: they are in order and do not overlap; their offsets are true; they cut
 * no grapheme and are not empty; no block loses a character but white space; none is above `mostTokens`, counted by
 * `countWords`, but a single grapheme; and their pages are those of their blocks.
 */
export function expectChunkInvariants(document: ParsedDocument, chunks: readonly DocumentChunk[], mostTokens: number): void {
  const { text, blocks } = document
  const boundaries = new Uint8Array(text.length + 1)
  for (const { index } of segmenter.segment(text)) boundaries[index] = 1
  boundaries[text.length] = 1
  const covered = new Uint8Array(text.length)
  const faults: string[] = []
  const expectOf = ({ ordinal }: DocumentChunk, law: string, holds: boolean) => {
    if (!holds) faults.push(`${ordinal}: ${law}`)
  }
  let last = 0
  for (const [index, chunk] of chunks.entries()) {
    const { charStart, charEnd, tokens } = chunk
    expectOf(chunk, 'is numbered in order', chunk.ordinal === index)
    expectOf(chunk, 'begins after the one before', charStart >= last && charEnd > charStart)
    expectOf(chunk, 'is the text between its offsets', text.slice(charStart, charEnd) === chunk.text)
    expectOf(chunk, 'has text', /\S/.test(chunk.text))
    expectOf(chunk, 'cuts no grapheme', boundaries[charStart] === 1 && boundaries[charEnd] === 1)
    expectOf(chunk, 'has its tokens', tokens === countWords(toEmbeddingText(chunk)))
    expectOf(chunk, 'is below the cap', tokens <= mostTokens || [...segmenter.segment(chunk.text)].length === 1)
    covered.fill(1, charStart, charEnd)
    last = charEnd
  }
  expect(faults).toEqual([])
  const lost = blocks.flatMap(({ charStart, charEnd }) =>
    [...text.slice(charStart, charEnd).matchAll(/\S/g)].filter(({ index }) => covered[charStart + index] === 0),
  )
  expect(lost).toHaveLength(0)
  let block = 0
  for (const chunk of chunks) {
    while (blocks[block]!.charEnd <= chunk.charStart) block += 1
    const end = blocks.findLastIndex(({ charStart }) => charStart < chunk.charEnd)
    expectOf(chunk, 'has its pages', chunk.pageStart === (blocks[block]!.page ?? null) && chunk.pageEnd === (blocks[end]!.page ?? null))
  }
  expect(faults).toEqual([])
}
