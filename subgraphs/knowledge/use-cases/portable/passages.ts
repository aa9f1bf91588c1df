import { buildChunkId } from '../../domain/records.ts'
import { MAX_STATES_BYTES } from '../../domain/search/max-sim.ts'
import type { IndexedChunk } from '../../ports/chunk-index.ts'
import { type KeptGroup, toGroup } from '../chunk-index/kept-passages.ts'
import { toTerms } from '../chunk-index/rebuild-index.ts'
import type { PortablePassage } from './kinds.ts'

/** Vectors have length 1. Those of another engine may be rounded. */
const LENGTH_TOLERANCE = 0.01

export function toPortablePassage({ vector, tokenStates, chunkId: _, ...passage }: KeptGroup['passages'][number]): PortablePassage {
  const { buffer, byteOffset, byteLength } = vector
  return {
    ...passage,
    vector: Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
    tokenStates: tokenStates ? Buffer.from(tokenStates.buffer, tokenStates.byteOffset, tokenStates.byteLength).toString('base64') : null,
  }
}

/**
 * The chunks of one group of passages, with their terms.
 * @throws {Error} they are not of one group, or a vector does not fit the collection
 */
export async function toChunks(
  passages: readonly PortablePassage[],
  { documentId, generation, dimensions }: { readonly documentId: string; readonly generation: string; readonly dimensions: number },
): Promise<readonly IndexedChunk[]> {
  const damaged = (why: string) => new Error(`The archive is damaged: ${why} in the passages of ${documentId}.`)
  const groups = new Set(passages.map(({ ordinal }) => toGroup(ordinal)))
  if (groups.size !== 1 || new Set(passages.map(({ ordinal }) => ordinal)).size !== passages.length)
    throw damaged('there are wrong ordinals')
  const terms = await toTerms(passages)
  return passages.map((passage, i) => {
    const vector = new Float32Array(Uint8Array.from(Buffer.from(passage.vector, 'base64')).buffer.slice(0, 4 * dimensions))
    const length = Math.hypot(...vector)
    if (Buffer.byteLength(passage.vector, 'base64') !== 4 * dimensions || !(Math.abs(length - 1) < LENGTH_TOLERANCE))
      throw damaged('there is a wrong vector')
    const states = passage.tokenStates === null ? null : Int8Array.from(Buffer.from(passage.tokenStates, 'base64'))
    if (states && states.length > MAX_STATES_BYTES) throw damaged('there are too many token states')
    const chunkId = buildChunkId(documentId, generation, passage.ordinal)
    return { ...passage, chunkId, vector, tokenStates: states, ...terms[i]! }
  })
}
