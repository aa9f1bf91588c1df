type Chunk = Readonly<Record<string, unknown>>

/**
 * Gives a chunk as the caller asked for it, or `undefined` for a chunk to leave out. The engine is always asked for
 * usage, because it sets the price. A caller who did not ask for it sees none; one who did sees `usage: null` until it
 * comes.
 */
export function withRequestedUsage(chunk: Chunk, includeUsage: boolean): Chunk | undefined {
  if (includeUsage) return 'usage' in chunk ? chunk : { ...chunk, usage: null }
  if (!('usage' in chunk)) return chunk
  const { usage, ...rest } = chunk
  // Some vendors begin with empty choices (a report of their filter). Only the chunk with the usage is left out.
  return usage !== null && Array.isArray(chunk.choices) && chunk.choices.length === 0 ? undefined : rest
}
