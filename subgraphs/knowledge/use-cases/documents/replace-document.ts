import { NotFound } from '../../../common/errors.ts'
import { reportChange } from '../../../common/events/event-log.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { type DocumentRecord, type FileRecord, newJob } from '../../domain/records.ts'
import { bytesKey } from '../../domain/version-key.ts'
import type { Deps } from '../deps.ts'
import { attachFile, detachFile, findAttachedFile } from '../files/files.ts'
import { toSnapshot } from './document-events.ts'

/**
 * Makes a file the next version of a document. A ready document stays as it is until the file has been ingested; one
 * write then swaps them. A file that was waiting is given up. A document that searches do not find yet is ingested from
 * the new file instead. Returns null and changes nothing if the document has changed since it was read, or tidies up
 * after a swap.
 * @throws {KisError} `invalid_request` if the file has as many documents as it may have.
 * @throws {NotFound} if the file is gone.
 */
export async function replaceDocument(
  deps: Deps,
  { organizationId, apiKeyId, plan }: Principal,
  former: DocumentRecord,
  file: FileRecord,
  { metadata, ...named }: { readonly metadata: DocumentRecord['metadata'] | null } & Pick<DocumentRecord, 'transcriptionModel'>,
): Promise<DocumentRecord | null> {
  const { store, clock, ingestionWeights } = deps
  const { _id, collectionId, status, generation, job, replacement } = former
  if (job?.kind === 'tidy') return null
  await attachFile(deps, file, _id, collectionId)
  const now = clock.now()
  const queued = { status: 'queued', stage: null, progress: null, error: null } as const
  const { _id: fileId, sha256, name: fileName } = file
  const change =
    status === 'ready'
      ? { replacement: { fileId, sha256, fileName, metadata: metadata && { ...metadata }, ...queued, createdAt: now } }
      : {
          ...queued,
          ...{ fileId, fileName, attachKey: bytesKey(collectionId, sha256), warnings: [] },
          metadata: { ...(metadata ?? former.metadata) },
        }
  const event = reportChange(organizationId, now, toSnapshot({ ...former, ...change }))
  const superseded = replacement?.fileId ?? (status === 'ready' ? null : former.fileId)
  let replaced: DocumentRecord | null
  try {
    replaced = await store.documents.findOneAndUpdate(
      // The generation tells whether another file has come, and the job whether an ingestion has ended.
      { _id, listed: true, status, generation, 'job.kind': job?.kind ?? null },
      {
        // The new job has no lease, so a running ingestion can no longer write.
        $set: {
          ...change,
          ...named,
          apiKeyId,
          job: { ...newJob('ingest', organizationId, now, ingestionWeights.get(plan.code)) },
          ...event.$set,
        },
        // The name that it had is free for another document.
        ...(fileName !== former.fileName && former.externalId === undefined && { $unset: { versionKey: '' } as const }),
        $push: event.$push,
        $inc: { generation: 1 },
      },
    )
  } catch (error) {
    if (!(error instanceof DuplicateKey)) throw error
    replaced = null
  }
  if (!replaced) {
    const current = await store.documents.findOne({ _id })
    if (current?.fileId !== file._id && current?.replacement?.fileId !== file._id) await detachFile(store, file._id, _id)
    return null
  }
  // A call that was giving the same file up, or deleting it, may have dropped the attachment.
  if (!(await findAttachedFile(store, { _id, fileId: file._id }))) await attachFile(deps, file, _id, collectionId)
  if (superseded !== null && superseded !== file._id && superseded !== replaced.fileId) await detachFile(store, superseded, _id)
  // A deletion may have looked at its files before.
  if (!(await store.documents.findOne({ _id, listed: true }))) {
    await detachFile(store, file._id, _id)
    throw new NotFound('document', _id)
  }
  return replaced
}
