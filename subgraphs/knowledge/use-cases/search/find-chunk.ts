import type { LinkContext } from '../../../common/link/link.ts'
import { type DocumentRecord, findableGeneration, partsOfChunkId } from '../../domain/records.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import { readIndex } from '../chunk-index/index-names.ts'
import type { Deps } from '../deps.ts'
import { findDocument } from '../documents/documents.ts'

/**
 * Finds a chunk of the caller's organization, with its document. Returns null if there is no such chunk, or if searches
 * do not return it.
 */
export async function findChunk(
  deps: Pick<Deps, 'store' | 'index'>,
  context: LinkContext,
  id: string,
): Promise<{ readonly chunk: StoredChunk; readonly document: DocumentRecord } | null> {
  const parts = partsOfChunkId(id)
  const document = parts ? await findDocument(deps, context, parts.documentId) : null
  if (!document || findableGeneration(document) !== parts!.generation) return null
  const [chunk] = await readIndex(deps, document.collectionId, (name) => deps.index.get(name, [id]))
  return chunk ? { chunk, document } : null
}
