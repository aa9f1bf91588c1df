import type { Block, ParsedDocument } from '../../ports/document-parser.ts'
import { cutInto } from './cut-text.ts'
import { type Span, splitSentences } from './sentences.ts'
import type { TokenCounter } from './token-counter.ts'

/** A run of text that stays in one chunk: a block, or a sentence or smaller part of one that is too large. */
export interface Piece extends Span {
  /** Index of its block. */
  readonly block: number
  readonly tokens: number
}

/** A block of more characters is cut into sentences without counting it first: it hardly ever fits. */
const MAX_WHOLE_CHARS = 4_000

/**
 * Characters that a token rarely exceeds. Spans that exceed the room by this measure are cut before they are counted.
 */
const MAX_TOKEN_CHARS = 6

/**
 * Pieces of every block in order, each of which fits into the room of a chunk that begins with its block. White space
 * makes no piece.
 */
export async function cutPieces(
  document: ParsedDocument,
  counter: TokenCounter,
  roomAt: (block: number) => number,
): Promise<readonly Piece[]> {
  const { blocks, text } = document
  const whole = blocks.map(({ charStart, charEnd }) => (charEnd - charStart <= MAX_WHOLE_CHARS ? text.slice(charStart, charEnd) : ''))
  const counts = await counter.count(whole)
  const pieces: Piece[] = []
  for (const [index, block] of blocks.entries()) {
    if (!/\S/.test(text.slice(block.charStart, block.charEnd))) continue
    if (whole[index] !== '' && counts[index]! <= roomAt(index)) {
      pieces.push({ block: index, start: block.charStart, end: block.charEnd, tokens: counts[index]! })
    } else {
      const parts = await fitting(text, await splitSpans(text, block, counter), counter, roomAt(index))
      for (const part of parts) if (/\S/.test(text.slice(part.start, part.end))) pieces.push({ block: index, ...part })
    }
  }
  return pieces
}

/** Lines of code; sentences of anything else, where a line feed only wraps a line. */
async function splitSpans(text: string, { kind, charStart, charEnd }: Block, counter: TokenCounter): Promise<readonly Span[]> {
  const own = text.slice(charStart, charEnd)
  const spans: Span[] = []
  for (const { start, end } of kind === 'code' ? splitLines(own) : splitSentences(own.replaceAll('\n', ' '))) {
    spans.push({ start: charStart + start, end: charStart + end })
    await counter.breathe(end - start)
  }
  return spans
}

function* splitLines(text: string): Generator<Span> {
  for (let start = 0; start < text.length; ) {
    const feed = text.indexOf('\n', start)
    const end = feed < 0 ? text.length : feed + 1
    yield { start, end }
    start = end
  }
}

/** Counts the spans, and halves those that exceed the room until they fit or are one grapheme. */
export async function fitting(
  text: string,
  spans: readonly Span[],
  counter: TokenCounter,
  room: number,
): Promise<readonly (Span & { readonly tokens: number })[]> {
  const limited: Span[] = []
  for (const span of spans) {
    limited.push(...cutInto(text, span, Math.max(1, room * MAX_TOKEN_CHARS)))
    await counter.breathe(span.end - span.start)
  }
  const counts = await counter.count(limited.map(({ start, end }) => text.slice(start, end)))
  const fitted: (Span & { readonly tokens: number })[] = []
  for (const [index, span] of limited.entries()) {
    const tokens = counts[index]!
    const halves = tokens > room ? cutInto(text, span, Math.ceil((span.end - span.start) / 2)) : []
    if (halves.length > 1) {
      for (const part of await fitting(text, halves, counter, room)) fitted.push(part)
    } else fitted.push({ ...span, tokens })
  }
  return fitted
}
