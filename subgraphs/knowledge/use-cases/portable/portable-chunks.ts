import { buildChunkId } from '../../domain/records.ts'
import { MAX_TOKEN_EMBEDDINGS_BYTES } from '../../domain/search/max-sim.ts'
import type { IndexedChunk } from '../../ports/chunk-index.ts'
import { toTerms } from '../chunk-index/rebuild-index.ts'
import { type ChunkGroup, toGroup } from '../chunk-index/stored-chunks.ts'
import type { PortableChunk } from './kinds.ts'

/** Vectors have length 1. Another engine's vectors may be rounded. */
const LENGTH_TOLERANCE = 0.01

export function toPortableChunk({ vector, tokenStates, chunkId: _, ...chunk }: ChunkGroup['chunks'][number]): PortableChunk {
  const { buffer, byteOffset, byteLength } = vector
  return {
    ...chunk,
    vector: Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
    tokenStates: tokenStates ? Buffer.from(tokenStates.buffer, tokenStates.byteOffset, tokenStates.byteLength).toString('base64') : null,
  }
}

/**
 * Converts one group of chunks and computes their terms.
 * @throws {Error} the chunks are not of one group, or a vector does not fit the collection
 */
export async function toChunks(
  portable: readonly PortableChunk[],
  { documentId, generation, dimensions }: { readonly documentId: string; readonly generation: string; readonly dimensions: number },
): Promise<readonly IndexedChunk[]> {
  const corrupted = (why: string) => new Error(`The archive is corrupted: ${why} in the chunks of ${documentId}.`)
  const groups = new Set(portable.map(({ ordinal }) => toGroup(ordinal)))
  if (groups.size !== 1 || new Set(portable.map(({ ordinal }) => ordinal)).size !== portable.length)
    throw corrupted('there are wrong ordinals')
  const terms = await toTerms(portable)
  return portable.map((chunk, i) => {
    const vector = new Float32Array(Uint8Array.from(Buffer.from(chunk.vector, 'base64')).buffer.slice(0, 4 * dimensions))
    const length = Math.hypot(...vector)
    if (Buffer.byteLength(chunk.vector, 'base64') !== 4 * dimensions || !(Math.abs(length - 1) < LENGTH_TOLERANCE))
      throw corrupted('there is a wrong vector')
    const tokenEmbeddings = chunk.tokenStates === null ? null : Int8Array.from(Buffer.from(chunk.tokenStates, 'base64'))
    if (tokenEmbeddings && tokenEmbeddings.length > MAX_TOKEN_EMBEDDINGS_BYTES) throw corrupted('there are too many token embeddings')
    const chunkId = buildChunkId(documentId, generation, chunk.ordinal)
    return { ...chunk, chunkId, vector, tokenStates: tokenEmbeddings, ...terms[i]! }
  })
}
