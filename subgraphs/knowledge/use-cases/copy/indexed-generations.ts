import { lastWhole } from '../../domain/index-differences.ts'
import { indexNameOf, indexNamesOf } from '../../domain/index-name.ts'
import type { CollectionRecord, DocumentRecord } from '../../domain/records.ts'
import type { BlobStore } from '../../ports/blob-store.ts'
import type { ChunkIndex, IndexedGeneration } from '../../ports/chunk-index.ts'
import type { KnowledgeStore } from '../../ports/knowledge-store.ts'

/** Knowledge's stores, of which nobody writes to any. */
export interface StillKnowledge {
  readonly store: Pick<KnowledgeStore, 'collections' | 'documents' | 'reembeddings'>
  readonly blobs: BlobStore
  readonly index: ChunkIndex
}

/** An index of a collection: that of searches, or one that is being filled. */
export interface KnownIndex {
  readonly name: string
  readonly organizationId: string
  /** Of its vectors. */
  readonly dimensions: number
}

/** What an index has of one ingestion of a document that exists. */
export interface KnownGeneration extends IndexedGeneration {
  readonly index: KnownIndex
  readonly document: DocumentRecord
}

const PAGE = 1_000

/** The indices that the collections of the store name, if there is room for them in the chunk index. */
export async function* listIndices({ store, index }: StillKnowledge): AsyncGenerator<KnownIndex> {
  for (let after = ''; ; ) {
    const collections = await store.collections.find({ _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE })
    for (const collection of collections)
      for (const name of indexNamesOf(collection)) if (await index.hasCollection(name)) yield await describe(store, collection, name)
    if (collections.length < PAGE) return
    after = collections.at(-1)!._id
  }
}

async function describe(store: StillKnowledge['store'], collection: CollectionRecord, name: string): Promise<KnownIndex> {
  const { organizationId, dimensions, reembedding } = collection
  if (name === indexNameOf(collection)) return { name, organizationId, dimensions }
  const filling = await store.reembeddings.findOne({ _id: reembedding!.id })
  return { name, organizationId, dimensions: filling!.dimensions }
}

/** Pages of what an index has, without what belongs to no document. */
export async function* listPages(stores: StillKnowledge, index: KnownIndex): AsyncGenerator<readonly KnownGeneration[]> {
  for (let after = ''; ; ) {
    const listed = await stores.index.listGenerations(index.name, after, PAGE)
    const end = listed.length === PAGE ? lastWhole(listed) : null
    const entries = listed.filter(({ documentId }) => end === null || documentId <= end)
    const ids = [...new Set(entries.map(({ documentId }) => documentId))]
    const found = ids.length === 0 ? [] : await stores.store.documents.find({ _id: { $in: ids } }, { limit: ids.length })
    const documents = new Map(found.map((document) => [document._id, document]))
    yield entries.flatMap((entry) => {
      const document = documents.get(entry.documentId)
      return document ? [{ ...entry, index, document }] : []
    })
    if (end === null) return
    after = end
  }
}
