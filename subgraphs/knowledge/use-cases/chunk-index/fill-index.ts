import { listAll } from '../../../common/portable/organization-archive.ts'
import { documentAttributes } from '../../domain/document-attributes.ts'
import { indexNameOf, indexNamesOf } from '../../domain/index-name.ts'
import { type CollectionRecord, type DocumentRecord, findReadSoFar, generationName } from '../../domain/records.ts'
import type { BlobStore } from '../../ports/blob-store.ts'
import type { ChunkIndex, IndexedDocument } from '../../ports/chunk-index.ts'
import type { KnowledgeStore } from '../../ports/knowledge-store.ts'
import { markTerms } from './index-mark.ts'
import { toTerms } from './rebuild-index.ts'
import { type ChunkGroup, readChunkGroup, toGroup } from './stored-chunks.ts'

interface FilledStores {
  readonly store: KnowledgeStore
  readonly blobs: BlobStore
  readonly index: ChunkIndex
}

/** Documents at once: Elasticsearch answers a write when searches see it, up to a second later. */
const MAX_AT_ONCE = 16
/** Passages of one write, the port's limit. With vectors, token states and terms these are some 5 MB. */
const MAX_PER_PUT = 256

/**
 * Fills an empty index from the passages and vectors that are stored beside it. Embeds nothing. An ingestion or
 * re-embedding in work finds what it had. Gives the documents of which passages are lacking. Repeatable.
 */
export async function fillIndex(to: FilledStores, filled: (chunks: number) => void): Promise<readonly string[]> {
  const lacking: string[] = []
  for await (const collection of listAll(to.store.collections, {})) {
    for (const name of indexNamesOf(collection)) {
      const dimensions = await dimensionsOf(to, collection, name)
      await to.index.createCollection({ organizationId: collection.organizationId, collectionId: name, dimensions })
      let some: DocumentRecord[] = []
      const fill = async () => {
        await Promise.all(
          some.map(async (document) => {
            const isWhole = await fillDocument(to, { document, name, dimensions }, filled)
            if (!isWhole && name === indexNameOf(collection)) lacking.push(document._id)
          }),
        )
        some = []
      }
      for await (const document of listAll(to.store.documents, { collectionId: collection._id, listed: true })) {
        some.push(document)
        if (some.length === MAX_AT_ONCE) await fill()
      }
      await fill()
    }
  }
  await markTerms(to)
  return lacking
}

async function dimensionsOf({ store }: FilledStores, collection: CollectionRecord, name: string): Promise<number> {
  if (name === indexNameOf(collection)) return collection.dimensions
  return (await store.reembeddings.findOne({ _id: collection.reembedding!.id }))?.dimensions ?? collection.dimensions
}

interface Filling {
  readonly document: DocumentRecord
  readonly name: string
  readonly dimensions: number
}

/** False: passages that searches should find are not stored. */
async function fillDocument(to: FilledStores, { document, name, dimensions }: Filling, filled: (chunks: number) => void): Promise<boolean> {
  const { _id: documentId, organizationId, liveGeneration, chunkCount } = document
  const read = findReadSoFar(document)
  let isWhole = true
  for (const [generation, count] of [
    [liveGeneration, chunkCount] as const,
    ...(read?.indexName === name ? [[generationName(read.generation), read.chunks] as const] : []),
  ]) {
    if (generation === null) continue
    let waiting: ChunkGroup['chunks'][number][] = []
    let into: IndexedDocument | undefined
    let found = 0
    const put = async () => {
      if (!into || waiting.length === 0) return
      const terms = await toTerms(waiting)
      await to.index.put(
        into,
        waiting.map((chunk, i) => ({ ...chunk, ...terms[i]! })),
      )
      filled(waiting.length)
      waiting = []
    }
    for (let group = 0; count > 0 && group <= toGroup(count - 1); group++) {
      const stored = await readChunkGroup(to, { documentId, generation, collectionId: name }, group)
      // Those of a failed ingestion are stored without vectors.
      const chunks = (stored?.chunks ?? []).filter(({ vector }) => vector.length === dimensions)
      if (!stored || chunks.length === 0) continue
      if (waiting.length + chunks.length > MAX_PER_PUT) await put()
      into = { organizationId, collectionId: name, documentId, generation, attributes: documentAttributes(stored.attributes, document) }
      waiting.push(...chunks)
      found += chunks.length
    }
    await put()
    if (generation === liveGeneration && found < count) isWhole = false
  }
  return isWhole
}
