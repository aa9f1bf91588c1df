type Chunk = Readonly<Record<string, unknown>>

/**
 * A chunk as the caller asked for it, or `undefined` for one that is not for the caller. The engine is always asked for its usage, because
 * the call is priced by it: who did not ask sees none, who did sees `usage: null` until it comes.
 */
export function withUsageAsAsked(chunk: Chunk, includeUsage: boolean): Chunk | undefined {
  if (includeUsage) return 'usage' in chunk ? chunk : { ...chunk, usage: null }
  if (!('usage' in chunk)) return chunk
  const { usage, ...rest } = chunk
  // Some vendors open with empty choices (a report of their filter): only the chunk that brings the usage is left out.
  return usage !== null && Array.isArray(chunk.choices) && chunk.choices.length === 0 ? undefined : rest
}
