import type { Block } from '../../ports/document-parser.ts'
import type { Piece } from './chunk-pieces.ts'

/** Places that are named of a passage that is made of several, small sheets for instance. */
const MAX_LOCATIONS = 3

/**
 * Where a passage is found in formats without pages: `Sales!A2:D40`, `00:01:05–00:01:41`; null where they do not say.
 */
export function describeLocation(blocks: readonly Block[], pieces: readonly Piece[]): string | null {
  const locations: { within: string; start: string; end: string }[] = []
  for (const { block } of pieces) {
    const location = blocks[block]!.location
    if (!location) continue
    const last = locations.at(-1)
    if (last && last.within === location.within) last.end = location.end
    else locations.push({ ...location })
  }
  if (locations.length === 0) return null
  const named = locations.slice(0, MAX_LOCATIONS).map(({ within, start, end }) => {
    if (start === end) return within + start
    return `${within}${start}${within.endsWith('!') ? ':' : '–'}${end}`
  })
  return named.join(', ') + (locations.length > MAX_LOCATIONS ? ', …' : '')
}
