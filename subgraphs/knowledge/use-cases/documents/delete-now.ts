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

/** Maximum documents of a collection that one call deletes, which takes some seconds. Workers delete the rest. */
const PAGE = 100
/**
 * Interval of checks for remaining documents of a collection. Other workers delete them, or an ingestion still has to
 * stop.
 */
const WAIT_MS = 1_000

/**
 * Maximum ingestions before a failed one that may have left data: one for each file that a newer one replaced before it
 * was ready.
 */
const MAX_PURGED = 100

/** Hides and deletes a document. A running ingestion can no longer write, because the new job has no lease. */
export async function hideAndDelete(
  deps: Deps,
  { _id, organizationId, collectionId }: Pick<DocumentRecord, '_id' | 'organizationId' | 'collectionId'>,
): Promise<void> {
  if (await hide(deps, { _id, organizationId, collectionId })) await deleteDocumentNow(deps, _id)
}

/** Hides a document and makes its deletion its job, which workers run. */
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

/** Deletes a hidden document's data, then its record. Each step may be repeated. */
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

/**
 * Returns files that may still be attached: that of a waiting version, and that of a version that was just replaced.
 */
function formerFiles({ replacement, versions }: DocumentRecord): readonly string[] {
  return [replacement, versions?.at(-1)].flatMap((one) => one?.fileId ?? [])
}

/** Deletes a document's data outside the primary store: chunks, extracted texts and stored chunks. Repeatable. */
export async function dropContents(deps: Deps, { _id, collectionId }: DocumentRecord): Promise<void> {
  await deleteFromIndices(deps, { collectionId, documentId: _id })
  await deps.blobs.deleteAll(`${_id}_`)
}

/**
 * Deletes a failed document's data outside the primary store, except recognized pages, which a retry does not pay for
 * again. With `storesText`, the last read text and chunks also stay, without vectors. Repeatable.
 */
export async function dropUnread(deps: Deps, document: DocumentRecord, storesText: boolean): Promise<void> {
  const { _id, collectionId, generation } = document
  await deleteFromIndices(deps, { collectionId, documentId: _id })
  await purgeIngestions(deps, _id, Math.max(1, generation - MAX_PURGED), storesText ? generation : generation + 1)
  await purgeTranscripts(deps, _id)
  if (storesText) await dropVectors(deps, document)
}

/** Deletes as much of a hidden collection as one request has time for. Workers delete the rest. */
export async function deleteCollectionNow(deps: Deps, id: string): Promise<void> {
  const collection = await claimJob(deps.store.collections, deps.clock, id)
  if (collection && (await continueCollectionDeletion(deps, collection))) deps.wake()
}

/**
 * Deletes a page of a collection's documents. After the last document, deletes the collection and returns false.
 * Otherwise, releases the lease and returns true: more is left to delete.
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
  // Hidden documents still have to remove their counts and chunks from the collection.
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
