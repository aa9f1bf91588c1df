import type { Block, ParsedDocument } from '../../ports/document-parser.ts'
import { detectLanguage, type Language } from '../text/language.ts'
import { type Contexts, countContexts } from './chunk-context.ts'
import { cutPieces, fitting, type Piece } from './chunk-pieces.ts'
import { buildHeadingPaths, commonSection, type HeadingPaths, isWithin, toPath } from './heading-paths.ts'
import { describeLocation } from './locations.ts'
import { packChunks } from './pack-chunks.ts'
import { type CountTokens, TokenCounter } from './token-counter.ts'

export interface DocumentChunk {
  /** From 0, in the order of the text. */
  readonly ordinal: number
  /** `document.text.slice(charStart, charEnd)`: what is shown and cited. */
  readonly text: string
  readonly charStart: number
  readonly charEnd: number
  /**
   * The headings above the whole chunk, outermost first, each of at most 200 characters; last its cells or times, in
   * formats with them.
   */
  readonly headingPath: readonly string[]
  /** Counts from 1; null in formats without pages. */
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly language: Language | null
  /** Tokens of `toEmbeddingText(chunk)`, as `TokenCounter` counts them. */
  readonly tokens: number
  /**
   * What a reader of the passage alone would miss: the headings above it, and the header row of the table in which it
   * begins. May be empty.
   */
  readonly context: string
}

interface ChunkingOptions {
  /** Counts the tokens of each text with the embedding model. Called with at most 2,048 texts. */
  readonly countTokens: CountTokens
  /** Paragraphs are joined up to this many tokens. Default: 256. */
  readonly targetTokens?: number
  /** Most tokens that the model gets, `overheadTokens` included. Default: 480, below the 512 that small models take. */
  readonly capTokens?: number
  /** Tokens that the caller puts before each text: the model's passage prefix. Default: 0. */
  readonly overheadTokens?: number
  readonly signal: AbortSignal
}

/** The share of a chunk that its context may take. */
const CONTEXT_SHARE = 1 / 3

/**
 * The text that is embedded and indexed by words. "It was opened in 1931." is found by its subject only with the
 * headings above it.
 */
export function toEmbeddingText(chunk: Pick<DocumentChunk, 'context' | 'text'>): string {
  return chunk.context === '' ? chunk.text : `${chunk.context}\n${chunk.text}`
}

/**
 * Cuts a document into passages for search. They are in order, do not overlap, and together contain every character of
 * every block except white space. Cuts are between blocks if possible, else at ends of sentences, else at white space,
 * and never inside a grapheme. No embedding text exceeds the cap, except that of a single grapheme, so none has more than
 * `MAX_CHARS_PER_TOKEN` characters for each token of the cap. Time and memory are linear in the length of the text.
 */
export async function chunkDocument(document: ParsedDocument, options: ChunkingOptions): Promise<readonly DocumentChunk[]> {
  const { targetTokens = 256, capTokens = 480, overheadTokens = 0, signal } = options
  const counter = new TokenCounter(options.countTokens, signal)
  const headings = buildHeadingPaths(document)
  const room = capTokens - overheadTokens
  const contexts = await countContexts(document, headings, counter, room * CONTEXT_SHARE)
  const roomAt = (block: number) => room - contexts.tokensAt(block)
  const pieces = await cutPieces(document, counter, roomAt)
  const packed = packChunks(document.blocks, pieces, headings, { targetTokens: Math.min(targetTokens, room), roomAt })
  return finish({ document, headings, contexts, counter, room }, packed)
}

interface Work {
  readonly document: ParsedDocument
  readonly headings: HeadingPaths
  readonly contexts: Contexts
  readonly counter: TokenCounter
  readonly room: number
}

type Draft = Omit<DocumentChunk, 'ordinal' | 'tokens'>

/**
 * Counts what will be embedded. Tokens of pieces do not add up exactly, so a chunk may exceed the cap; it is then
 * split, which is rare.
 */
async function finish(work: Work, packed: readonly (readonly Piece[])[]): Promise<readonly DocumentChunk[]> {
  const { counter, room } = work
  const drafts: Draft[] = []
  for (const pieces of packed) {
    const draft = toDraft(work, pieces)
    drafts.push(draft)
    await counter.breathe(draft.text.length)
  }
  const counts = await counter.count(drafts.map(toEmbeddingText))
  const chunks: DocumentChunk[] = []
  for (const [index, draft] of drafts.entries()) {
    const tokens = counts[index]!
    const smaller = tokens > room ? await splitPieces(work, packed[index]!) : []
    if (smaller.length > 1) {
      for (const chunk of await finish(work, smaller)) chunks.push({ ...chunk, ordinal: chunks.length })
    } else chunks.push({ ordinal: chunks.length, ...draft, tokens })
  }
  return chunks
}

async function splitPieces({ document, counter }: Work, pieces: readonly Piece[]): Promise<readonly (readonly Piece[])[]> {
  const middle = Math.ceil(pieces.length / 2)
  if (pieces.length > 1) return [pieces.slice(0, middle), pieces.slice(middle)]
  const [piece] = pieces
  const halves = await fitting(document.text, pieces, counter, Math.max(1, Math.floor(piece!.tokens / 2)))
  return halves.filter(({ start, end }) => /\S/.test(document.text.slice(start, end))).map((half) => [{ ...half, block: piece!.block }])
}

function toDraft({ document, headings, contexts }: Work, pieces: readonly Piece[]): Draft {
  const { text, blocks } = document
  const first = pieces[0]!
  const last = pieces.at(-1)!
  const charStart = first.start + leadingSpace(text.slice(first.start, first.end))
  const charEnd = first.start + text.slice(first.start, last.end).trimEnd().length
  const own = text.slice(charStart, charEnd)
  const location = describeLocation(blocks, pieces)
  return {
    text: own,
    charStart,
    charEnd,
    headingPath: [...toPath(findSection(blocks, pieces, headings)), ...(location === null ? [] : [location])],
    pageStart: blocks[first.block]!.page ?? null,
    pageEnd: blocks[last.block]!.page ?? null,
    language: detectLanguage(own),
    context: contexts.textAt(first.block),
  }
}

/** White space at the start, except a space that carries a mark: the two are one grapheme. */
function leadingSpace(text: string): number {
  return /^\s*(?!\p{M})/u.exec(text)?.[0].length ?? 0
}

/**
 * The innermost section that contains the pieces. Headings above the first text count, although they are in the chunk
 * themselves.
 */
function findSection(blocks: readonly Block[], pieces: readonly Piece[], headings: HeadingPaths) {
  let section = headings.sectionAt(pieces[0]!.block)
  let onlyHeadings = true
  for (const { block } of pieces) {
    const next = headings.sectionAt(block)
    section = onlyHeadings && isWithin(next, section) ? next : commonSection(section, next)
    onlyHeadings &&= blocks[block]!.kind === 'heading'
  }
  return section
}
