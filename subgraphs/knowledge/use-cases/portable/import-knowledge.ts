import { type ArchiveTakers, listAll, refuseOwnedByOthers, requireOwn, storedTaker } from '../../../common/portable/organization-archive.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import { NO_CHANGES } from '../../domain/evaluation/changes.ts'
import { collectionIdOf, indexNameOf } from '../../domain/index-name.ts'
import type { BlobStore } from '../../ports/blob-store.ts'
import type { ChunkIndex } from '../../ports/chunk-index.ts'
import type { KnowledgeStore } from '../../ports/knowledge-store.ts'
import { checkTerms } from '../chunk-index/index-mark.ts'
import { documentTakers } from './import-documents.ts'
import { fileTakers } from './import-files.ts'
import { COLLECTION, EVALUATION, GOLD_QUESTION, REEMBEDDING, SOURCE, WATCH } from './kinds.ts'

/** The stores to which an organization is imported. */
export interface KnowledgeImport {
  readonly store: KnowledgeStore
  readonly blobs: BlobStore
  readonly index: ChunkIndex
  readonly organizationId: string
  /**
   * Explains why vectors of this model cannot be used here. Null: they can.
   * @param dimensions of the vectors
   */
  explainModel(model: string, dimensions: number): string | null
  readonly clock: Clock
  readonly log: Log
}

/** Returns the functions that import each kind of archive entry. */
export function knowledgeTakers(to: KnowledgeImport): ArchiveTakers {
  const { store, index, organizationId, explainModel } = to
  const ofCollections = (imported: readonly { readonly collectionId: string }[]) =>
    requireOwn(
      [store.collections],
      imported.map(({ collectionId }) => collectionId),
      organizationId,
    )
  const collections = storedTaker(
    COLLECTION,
    store.collections,
    organizationId,
    (collection) => ({ ...collection, listed: true }),
    async (imported) => {
      await checkTerms(to)
      for (const collection of imported)
        await index.createCollection({ organizationId, collectionId: indexNameOf(collection), dimensions: collection.dimensions })
    },
  )
  const { bytes, requireAll, ...files } = fileTakers(to)
  const { texts, ...documents } = documentTakers(to)
  return {
    files: [bytes, texts],
    requireAll,
    records: [
      {
        ...collections,
        async check(
          imported: readonly {
            readonly _id: string
            readonly embeddingModel: string
            readonly dimensions: number
            readonly indexName?: string
          }[],
        ) {
          for (const { _id, indexName = _id, embeddingModel, dimensions } of imported) {
            if (collectionIdOf(indexName) !== _id) throw new Error(`The archive is corrupted: ${_id} has the index of another collection.`)
            const problem = explainModel(embeddingModel, dimensions)
            if (problem) throw new Error(problem)
          }
          await collections.check?.(imported as never)
        },
      },
      ...files.records,
      ...documents.records,
      storedTaker(
        SOURCE,
        store.sources,
        organizationId,
        (source) => ({ ...source, nextFileId: null }),
        async (imported) => {
          const strange = imported.find(({ collectionId, sourceKey }) => !sourceKey.startsWith(`${collectionId}_`))
          if (strange) throw new Error(`The archive is corrupted: ${strange._id} has a key of another collection.`)
          await ofCollections(imported)
          const documents = imported.flatMap(({ documentId }) => documentId ?? [])
          await refuseOwnedByOthers(store.documents, documents, organizationId)
          const files = imported.flatMap(({ formerFileId }) => formerFileId ?? [])
          await refuseOwnedByOthers(store.files, files, organizationId)
        },
      ),
      storedTaker(GOLD_QUESTION, store.goldQuestions, organizationId, (question) => question, ofCollections),
      storedTaker(
        WATCH,
        store.evaluationWatches,
        organizationId,
        (watch) => ({ ...watch, position: 0, changes: NO_CHANGES, seen: 0, changedAt: null, waitingSince: null, startedAt: null }),
        async (imported) => {
          const strange = imported.find(({ _id, collectionId }) => _id !== collectionId)
          if (strange) throw new Error(`The archive is corrupted: ${strange._id} watches another collection.`)
          await ofCollections(imported)
        },
      ),
      storedTaker(EVALUATION, store.evaluations, organizationId, (evaluation) => ({ ...evaluation, outbox: [] }), ofCollections),
      storedTaker(
        REEMBEDDING,
        store.reembeddings,
        organizationId,
        (reembedding) => ({ ...reembedding, outbox: [], at: null, hold: null, stage: null }),
        ofCollections,
      ),
    ],
  }
}

/** Counts the organization's stored amounts after everything was imported. Can be repeated. */
export async function countImported({ store, organizationId }: Pick<KnowledgeImport, 'store' | 'organizationId'>): Promise<void> {
  let storageBytes = 0
  let vectors = 0
  const chunks: Record<string, number> = {}
  // A hexadecimal digest follows the organization's ID, so every key is below `g`.
  for (let after = `${organizationId}_`; ; ) {
    const page = await store.blobs.find({ _id: { $gt: after, $lt: `${organizationId}_g` } }, { sort: { _id: 1 }, limit: 500 })
    for (const { counted } of page) storageBytes += counted.value
    if (page.length < 500) break
    after = page.at(-1)!._id
  }
  for await (const { _id: collectionId } of listAll(store.collections, { organizationId, listed: true })) {
    for await (const { countedVectors, countedChunks } of listAll(store.documents, { collectionId, listed: true })) {
      vectors += countedVectors.value
      chunks[collectionId] = (chunks[collectionId] ?? 0) + countedChunks.value
    }
  }
  await store.usage.findOneAndUpdate({ _id: organizationId }, { $set: { storageBytes, vectors, chunks, marks: {} } }, { upsert: true })
}
