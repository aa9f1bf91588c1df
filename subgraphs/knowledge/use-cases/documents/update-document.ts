import { ServiceUnavailable } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { requireFileName, requireMetadata } from '../../domain/names.ts'
import { type DocumentRecord, findPending } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { noteChange } from '../note-change.ts'
import { getDocument } from './documents.ts'
import { settleDocument, settleLater } from './settle-document.ts'

/** The number of times that an update begins again because the document's status has changed. */
const MAX_TRIES = 10

/**
 * Changes the name and the metadata of a document. Fields that are left out keep their values. Searches that start
 * later see the change; nothing is embedded again. After a crash a worker finishes the change.
 * @throws {NotFound} if the organization has no such document.
 * @throws {KisError} `invalid_request`, `invalid_type` or `string_above_max_length` if a field is not valid.
 * @throws {ServiceUnavailable} if other changes of the document get in the way.
 */
export async function updateDocument(
  deps: Deps,
  context: LinkContext,
  { id, name, metadata }: { readonly id: string; readonly name?: string | null; readonly metadata?: unknown },
): Promise<DocumentRecord> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  const changes = {
    ...(name != null && { fileName: requireFileName(name, 'input.name') }),
    ...(metadata !== undefined && { metadata: { ...requireMetadata(metadata, 'input.metadata') } }),
  }
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const document = await getDocument(deps, organizationId, id)
    if (Object.keys(changes).length === 0) return document
    const { job, status, externalId } = document
    const pending = findPending(document)
    const ofPending = pending ? Object.fromEntries(Object.entries(changes).map(([field, value]) => [`replacement.${field}`, value])) : {}
    // A document that was found by its name is not found by the former one.
    const isRenamed = 'fileName' in changes && externalId === undefined
    // An ingestion indexes the details that it finds at its end.
    const isLater = job === undefined || job.kind === 'settle'
    const updated = await deps.store.documents.findOneAndUpdate(
      { _id: id, listed: true, status, 'job.kind': job?.kind ?? null, 'replacement.status': document.replacement?.status ?? null },
      {
        $set: { ...changes, ...ofPending, ...(isLater && status === 'ready' && { job: { ...settleLater(deps, organizationId) } }) },
        $inc: { details: 1 },
        ...(isRenamed && { $unset: { versionKey: '' } }),
      },
    )
    if (!updated) continue
    if (status === 'ready') await noteChange(deps, document.collectionId, 'updated')
    if (status === 'ready') await settleDocument(deps, id)
    deps.digests.evict(document.collectionId)
    return updated
  }
  throw new ServiceUnavailable('The document')
}
