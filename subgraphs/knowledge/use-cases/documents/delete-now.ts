import { claimJob } from '../../../common/documents/jobs.ts'
import { reportChange } from '../../../common/events/event-log.ts'
import { indexNamesOf } from '../../domain/index-name.ts'
import { type CollectionRecord, type DocumentRecord, newJob } from '../../domain/records.ts'
import { deleteFromIndices } from '../chunk-index/index-names.ts'
import { dropVectors, purgeIngestions, purgeTranscripts } from '../chunk-index/stored-chunks.ts'
import { count } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { detachFile, dropUnpackedFile } from '../files/files.ts'
import { stopReembedding } from '../stop-reembedding.ts'
import { countedChunks, countedVectors } from './count-document.ts'
import { describeDeletion } from './document-events.ts'
import { purgeSketch } from './similar-documents.ts'

/**
 * The number of a collection's documents that one call deletes, which takes a request some seconds. Workers delete the
 * rest.
 */
const PAGE = 100
/**
 * The time until a collection's remaining documents are checked again. Other workers delete them, or an ingestion still
 * has to stop.
 */
const WAIT_MS = 1_000

/** The number of ingestions before a failed one that may have left something: each file that was overtaken is one. */
const MAX_PURGED = 100

/**
 * Hides a document and deletes it. A running ingestion loses the document: the new job has no lease, so the old worker
 * can no longer write.
 */
export async function hideAndDelete(
  deps: Deps,
  { _id, organizationId, collectionId }: Pick<DocumentRecord, '_id' | 'organizationId' | 'collectionId'>,
): Promise<void> {
  if (await hide(deps, { _id, organizationId, collectionId })) await deleteDocumentNow(deps, _id)
}

/** Hides a document. From then on its job is its deletion, which workers do. */
async function hide(
  deps: Deps,
  { _id, organizationId, collectionId }: Pick<DocumentRecord, '_id' | 'organizationId' | 'collectionId'>,
): Promise<DocumentRecord | null> {
  const now = deps.clock.now()
  const event = reportChange(organizationId, now, describeDeletion({ collectionId }))
  return deps.store.documents.findOneAndUpdate(
    { _id, listed: true },
    {
      $set: { listed: false, job: { ...newJob('delete', organizationId, now) }, ...event.$set },
      $unset: { attachKey: '', versionKey: '' },
      $push: event.$push,
    },
  )
}

/** Hides the documents that were unpacked from a document. Workers delete them. */
async function hideParts(deps: Deps, { _id }: DocumentRecord): Promise<void> {
  for (;;) {
    const parts = await deps.store.documents.find({ parentId: _id, listed: true }, { limit: PAGE })
    for (const part of parts) await hide(deps, part)
    if (parts.length > 0) deps.wake()
    if (parts.length < PAGE) return
  }
}

/** Deletes a hidden document now, unless a worker has taken the job. */
async function deleteDocumentNow(deps: Deps, id: string): Promise<void> {
  const document = await claimJob(deps.store.documents, deps.clock, id)
  if (document?.job?.kind === 'delete') await finishDocumentDeletion(deps, document)
}

/** Deletes what a hidden document has, and its record last. Each step may be repeated. */
export async function finishDocumentDeletion(deps: Deps, document: DocumentRecord): Promise<void> {
  const { store } = deps
  await dropContents(deps, document)
  await count(deps, countedChunks(deps, document), 0)
  await count(deps, countedVectors(deps, document), 0)
  for (const fileId of new Set([document.fileId, ...formerFiles(document)])) await detachFile(store, fileId, document._id)
  await purgeSketch(deps, document._id)
  await dropUnpackedFile(deps, document)
  await hideParts(deps, document)
  await deps.events.drain(document.organizationId)
  await store.documents.findOneAndDelete({ _id: document._id, 'job.lease': document.job!.lease })
}

/** Files that may still be attached: of a version that waits, and of one that a swap has just replaced. */
function formerFiles({ replacement, versions }: DocumentRecord): readonly string[] {
  return [replacement, versions?.at(-1)].flatMap((one) => one?.fileId ?? [])
}

/** Deletes what a document has outside the primary store: chunks, extracted texts and kept passages. Repeatable. */
export async function dropContents(deps: Deps, { _id, collectionId }: DocumentRecord): Promise<void> {
  await deleteFromIndices(deps, { collectionId, documentId: _id })
  await deps.blobs.deleteAll(`${_id}_`)
}

/**
 * Deletes what a failed document has outside the primary store, but for recognised pages, which a retry does not pay for
 * again. `keepsText`: the text and the chunks that were read last stay, too, without their vectors. Repeatable.
 */
export async function dropUnread(deps: Deps, document: DocumentRecord, storesText: boolean): Promise<void> {
  const { _id, collectionId, generation } = document
  await deleteFromIndices(deps, { collectionId, documentId: _id })
  await purgeIngestions(deps, _id, Math.max(1, generation - MAX_PURGED), storesText ? generation : generation + 1)
  await purgeTranscripts(deps, _id)
  if (storesText) await dropVectors(deps, document)
}

/** Deletes as much of a hidden collection as a request has time for. Workers delete the rest. */
export async function deleteCollectionNow(deps: Deps, id: string): Promise<void> {
  const collection = await claimJob(deps.store.collections, deps.clock, id)
  if (collection && (await continueCollectionDeletion(deps, collection))) deps.wake()
}

/**
 * Deletes a page of a collection's documents. Deletes the collection after the last document and returns false.
 * Otherwise gives the lease back and returns true: there is more to delete.
 */
export async function continueCollectionDeletion(deps: Deps, collection: CollectionRecord): Promise<boolean> {
  const { _id, organizationId, job } = collection
  const { store, index, clock } = deps
  const lease = { _id, 'job.lease': job!.lease }
  for (const document of await store.documents.find({ collectionId: _id, listed: true }, { limit: PAGE }))
    await hideAndDelete(deps, document)
  const reembedding = await store.reembeddings.findOne({ openKey: organizationId })
  const isReembedded = reembedding?.collectionId === _id
  if (isReembedded) await stopReembedding(deps, reembedding._id)
  // Documents that are already hidden still have to remove their counts and chunks from the collection.
  if (isReembedded || (await store.documents.findOne({ collectionId: _id }))) {
    const isAnyListed = await store.documents.findOne({ collectionId: _id, listed: true })
    const dueAt = new Date(clock.now().getTime() + (isAnyListed ? 0 : WAIT_MS))
    await store.collections.findOneAndUpdate(lease, { $set: { job: { ...newJob('delete', organizationId, dueAt) } } })
    return true
  }
  for (const records of [store.sources, store.goldQuestions, store.evaluationWatches, store.evaluations, store.reembeddings])
    while ((await records.deleteMany({ collectionId: _id })) > 0);
  for (const name of indexNamesOf(collection)) await index.dropCollection(name)
  await store.usage.findOneAndUpdate({ _id: organizationId }, { $unset: { [`chunks.${_id}`]: '' } })
  await store.collections.findOneAndDelete(lease)
  return false
}
