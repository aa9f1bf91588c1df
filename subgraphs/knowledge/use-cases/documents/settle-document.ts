import { LEASE_MS } from '../../../common/documents/jobs.ts'
import { ServiceUnavailable } from '../../../common/errors.ts'
import { documentAttributes } from '../../domain/document-attributes.ts'
import { type DocumentRecord, type Job, newJob } from '../../domain/records.ts'
import type { IndexedDocument } from '../../ports/chunk-index.ts'
import { deleteFromIndices, findIndexNames } from '../chunk-index/index-names.ts'
import { toTerms } from '../chunk-index/rebuild-index.ts'
import { purgeIngestions, readStoredAttributes } from '../chunk-index/stored-chunks.ts'
import { count } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { detachFile } from '../files/files.ts'
import { countedVectors } from './count-document.ts'
import { dropContents } from './delete-now.ts'
import { LeaseLost } from './lease-lost.ts'

/** The number of times that one call begins again because the document was changed meanwhile. */
const MAX_TRIES = 20

/** The number of ingestions before the live one that may have left something: each file that was overtaken is one. */
const MAX_PURGED = 100

/** A job for the workers if this process does not finish what it has begun. */
export function settleLater({ clock }: Pick<Deps, 'clock'>, organizationId: string): Job {
  return newJob('settle', organizationId, new Date(clock.now().getTime() + LEASE_MS))
}

/** Brings the index to what the record says, and ends the job that would do it later. Repeatable. */
export async function settleDocument(deps: Deps, id: string): Promise<void> {
  const { store } = deps
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const document = await store.documents.findOne({ _id: id, listed: true })
    if (!document) return
    await indexDetails(deps, document)
    const settled = await store.documents.findOne({ _id: id })
    // A deletion may have finished before the last write.
    if (!settled?.listed) return dropContents(deps, document)
    if ((settled.details ?? 0) !== (document.details ?? 0) || settled.liveGeneration !== document.liveGeneration) continue
    // Any other job that the document has meanwhile stays.
    if (settled.job?.kind !== 'settle') return
    const ended = await store.documents.findOneAndUpdate(
      { _id: id, 'job.kind': 'settle', details: document.details ?? null, liveGeneration: document.liveGeneration },
      { $unset: { job: '' } },
    )
    if (ended) return
  }
  throw new ServiceUnavailable('The document')
}

/**
 * Removes what a new version has replaced, and ends the job. The caller has the document's lease. Repeatable.
 * @throws {LeaseLost} if another worker or a deletion has taken over the document.
 */
export async function tidyDocument(deps: Deps, leased: DocumentRecord): Promise<void> {
  const { store } = deps
  const { _id, collectionId, fileId, liveGeneration, chunkCount, generation, versions } = leased
  await deleteFromIndices(deps, { collectionId, documentId: _id }, liveGeneration!)
  await purgeIngestions(deps, _id, Math.max(1, generation - MAX_PURGED), generation)
  if ((await count(deps, countedVectors(deps, leased), chunkCount)) === 'lost') throw new LeaseLost()
  const former = versions?.at(-1)
  if (former && former.fileId !== fileId) await detachFile(store, former.fileId, _id)
  for (;;) {
    const document = await store.documents.findOne({ _id, 'job.lease': leased.job!.lease })
    if (!document) throw new LeaseLost()
    await indexDetails(deps, document)
    const ended = await store.documents.findOneAndUpdate(
      { _id, 'job.lease': leased.job!.lease, details: document.details ?? null },
      { $unset: { job: '' } },
    )
    if (ended) return
  }
}

/** Gives the chunks that searches find the document's name and metadata. */
export async function indexDetails(
  { store, blobs, index }: Pick<Deps, 'store' | 'blobs' | 'index'>,
  document: DocumentRecord,
): Promise<void> {
  const { _id: documentId, organizationId, collectionId, liveGeneration: generation } = document
  if (generation === null || document.details === undefined) return
  const names = await findIndexNames({ store }, collectionId)
  const stored = await readStoredAttributes({ blobs }, { documentId, generation, collectionId: names[0]! })
  // Documents of early versions have no kept passages.
  const attributes = documentAttributes(stored ?? (await readFacts({ store }, document)), document)
  for (const name of names) await index.setAttributes({ organizationId, collectionId: name, documentId, generation, attributes }, toTerms)
}

/** Returns what filters compare of a document besides its name and metadata. */
export async function readFacts(
  { store }: Pick<Deps, 'store'>,
  { fileId, language, createdAt }: DocumentRecord,
): Promise<IndexedDocument['attributes']> {
  const file = await store.files.findOne({ _id: fileId })
  return { media_type: file?.mediaType ?? null, language, created_at: createdAt.getTime() }
}
