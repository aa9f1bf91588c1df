import { isOtherLanguage, type SearchMode } from '../../domain/search/fuse.ts'
import { toMaxSim } from '../../domain/search/max-sim.ts'
import type { Aim } from '../../domain/search/query-vectors.ts'
import type { Language } from '../../domain/text/language.ts'
import type { ChunkCandidate } from '../../ports/chunk-index.ts'

/** Number of closest chunks that are compared: about 130 KB to read, and 1 to 3 ms to compare. */
const COMPARED = 40
/**
 * Weight of `toMaxSim` beside the cosine, tuned on the development halves of XQuAD and of `test/eval`. The figures are
 * nearly the same from 0.4 to 0.6.
 */
const WEIGHT = 0.5

/** The query of a search whose token embeddings are compared with those of chunks. */
export interface Compared {
  /** The token embeddings of the query. Null: its model returns none. */
  readonly tokenEmbeddings: Int8Array | null
  readonly language: Language | null
  readonly mode: SearchMode
  readonly aim: Aim | null
}

/**
 * Late interaction: compares the query token by token with the closest chunks in the other language, where comparing
 * single vectors is least reliable. Returns, by chunk, how much closer it is than the average of these chunks, as a
 * cosine. Chunks without token embeddings are omitted, so their order stays. `read` returns the stored token
 * embeddings.
 */
export async function compareTokens(
  read: (chunkIds: readonly string[]) => Promise<ReadonlyMap<string, Int8Array>>,
  { tokenEmbeddings, language, mode, aim }: Compared,
  candidates: readonly ChunkCandidate[],
): Promise<ReadonlyMap<string, number>> {
  if (!tokenEmbeddings || !aim || mode !== 'hybrid') return new Map()
  const otherLanguage = candidates
    .filter((candidate) => candidate.cosine !== null && isOtherLanguage(candidate, language))
    .sort((a, b) => aim.closenessOf(b) - aim.closenessOf(a) || (a.chunkId < b.chunkId ? -1 : 1))
    .slice(0, COMPARED)
  // A single chunk has no order.
  if (otherLanguage.length < 2) return new Map()
  const stored = await read(otherLanguage.map(({ chunkId }) => chunkId))
  const maxSimOf = toMaxSim(tokenEmbeddings)
  const found = [...stored].flatMap(([chunkId, chunk]) => {
    const similarity = maxSimOf(chunk)
    return similarity === null ? [] : [[chunkId, similarity] as const]
  })
  const mean = found.reduce((sum, [, similarity]) => sum + similarity, 0) / found.length
  return new Map(found.map(([chunkId, similarity]) => [chunkId, WEIGHT * (similarity - mean)]))
}
