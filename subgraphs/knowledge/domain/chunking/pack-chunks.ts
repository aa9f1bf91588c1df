import type { Block } from '../../ports/document-parser.ts'
import type { Piece } from './chunk-pieces.ts'
import { type HeadingPaths, isWithin } from './heading-paths.ts'

/** A chunk below this share of the target is small: too little to stand alone. */
const SMALL_SHARE = 1 / 4

interface Packing {
  readonly targetTokens: number
  /** Tokens of text that a chunk beginning with a block may have. */
  readonly roomAt: (block: number) => number
}

interface Draft {
  pieces: Piece[]
  tokens: number
}

/**
 * Joins neighbouring pieces into chunks up to the target. Larger blocks that fit into the room stay whole. Rules, in
 * this order: the room is never exceeded; a heading starts a chunk, unless the one before is small and the heading is
 * beside or below its own; a heading is never last; the end of a page ends a chunk that is not small; a small chunk
 * continues, and a small one at the end of a section joins the chunk before it.
 */
export function packChunks(
  blocks: readonly Block[],
  pieces: readonly Piece[],
  headings: HeadingPaths,
  packing: Packing,
): readonly (readonly Piece[])[] {
  const { targetTokens, roomAt } = packing
  const done: Draft[] = []
  let open: Draft = { pieces: [], tokens: 0 }
  const isHeading = (piece: Piece | undefined) => piece !== undefined && blocks[piece.block]!.kind === 'heading'
  const isSmall = (draft: Draft) => draft.tokens < targetTokens * SMALL_SHARE
  const fits = (draft: Draft, tokens: number) => draft.tokens + tokens <= roomAt(draft.pieces[0]!.block)

  const isOnSamePage = (a: Piece, b: Piece) => blocks[a.block]!.page === blocks[b.block]!.page

  const close = () => {
    const before = done.at(-1)
    if (open.pieces.length === 0) return
    if (
      before &&
      isSmall(open) &&
      fits(before, open.tokens) &&
      headings.sectionAt(before.pieces.at(-1)!.block) === headings.above(open.pieces[0]!.block)
    ) {
      before.pieces.push(...open.pieces)
      before.tokens += open.tokens
    } else done.push(open)
    open = { pieces: [], tokens: 0 }
  }
  const append = (piece: Piece) => {
    open.pieces.push(piece)
    open.tokens += piece.tokens
  }
  const goesOn = (piece: Piece) => {
    const last = open.pieces.at(-1)
    if (!last) return true
    if (!fits(open, piece.tokens)) return false
    if (isHeading(piece) && last.block !== piece.block) {
      const first = open.pieces[0]!
      return isSmall(open) && isWithin(headings.above(piece.block), headings.sectionAt(first.block)?.parent ?? null)
    }
    if (isHeading(last) || isSmall(open)) return true
    return isOnSamePage(last, piece) && open.tokens + piece.tokens <= targetTokens
  }

  for (const piece of pieces) {
    if (!goesOn(piece)) {
      const stranded = isHeading(piece) ? [] : removeTrailingHeadings(open, isHeading)
      close()
      for (const heading of stranded) append(heading)
      if (stranded.length > 0 && !fits(open, piece.tokens)) close()
    }
    append(piece)
  }
  close()
  return done.map((draft) => draft.pieces)
}

/** Headings at the end of a draft belong to what follows. A draft of nothing else keeps them. */
function removeTrailingHeadings(draft: Draft, isHeading: (piece: Piece | undefined) => boolean): readonly Piece[] {
  const at = draft.pieces.findLastIndex((piece) => !isHeading(piece)) + 1
  if (at === 0) return []
  const removed = draft.pieces.splice(at)
  for (const { tokens } of removed) draft.tokens -= tokens
  return removed
}
