import { isOtherLanguage, type SearchMode } from '../../domain/search/fuse.ts'
import { toMaxSim } from '../../domain/search/max-sim.ts'
import type { Aim } from '../../domain/search/query-vectors.ts'
import type { Language } from '../../domain/text/language.ts'
import type { ChunkCandidate } from '../../ports/chunk-index.ts'

/** Passages that are compared, the closest ones: about 130 KB to read, and 1 to 3 ms to compare. */
const COMPARED = 40
/**
 * What a difference of one in `toMaxSim` is worth beside the cosine, tuned on the development halves of XQuAD and of
 * `test/eval`; figures are nearly the same from .4 to .6.
 */
const WEIGHT = 0.5

export interface Compared {
  /** The token states of the query; null: its model gives none. */
  readonly tokenEmbeddings: Int8Array | null
  readonly language: Language | null
  readonly mode: SearchMode
  readonly aim: Aim | null
}

/**
 * Late interaction: compares the query token by token with the closest passages in the other language, where one vector
 * for each says least. Gives, by chunk, by how much a passage is closer than these are on average, as a cosine. Passages
 * without token states get nothing, which leaves them where they are. `read` gives the stored states.
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
  // One alone has no order.
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
