import { LEASE_MS } from '../../../common/documents/jobs.ts'
import { ServiceUnavailable } from '../../../common/errors.ts'
import { documentAttributes } from '../../domain/document-attributes.ts'
import { type DocumentRecord, type Job, newJob } from '../../domain/records.ts'
import { readKeptAttributes } from '../chunk-index/kept-passages.ts'
import { toTerms } from '../chunk-index/rebuild-index.ts'
import type { Deps } from '../deps.ts'
import { dropContents } from './delete-now.ts'

/** The number of times that one call begins again because the document was changed meanwhile. */
const MAX_TRIES = 20

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

/** Gives the chunks that searches find the document's name and metadata. */
export async function indexDetails(
  { store, blobs, index }: Pick<Deps, 'store' | 'blobs' | 'index'>,
  document: DocumentRecord,
): Promise<void> {
  const { _id: documentId, organizationId, collectionId, fileId, liveGeneration: generation, language, createdAt } = document
  if (generation === null || document.details === undefined) return
  const kept = await readKeptAttributes({ blobs }, documentId, generation)
  // Documents of early versions have no kept passages.
  const facts = kept ?? {
    media_type: (await store.files.findOne({ _id: fileId }))?.mediaType ?? null,
    language,
    created_at: createdAt.getTime(),
  }
  const attributes = documentAttributes(facts, document)
  await index.setAttributes({ organizationId, collectionId, documentId, generation, attributes }, toTerms)
}
