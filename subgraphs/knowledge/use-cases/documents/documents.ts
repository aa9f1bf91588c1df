import { listById, type OrderedPage } from '../../../common/documents/list-by-id.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { tell, told } from '../../../common/events/event-log.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { FORMAT_LIST, isPicture, isSound } from '../../domain/media-types.ts'
import { requireMetadata } from '../../domain/names.ts'
import { type CollectionRecord, type DocumentRecord, type DocumentStatus, type FileRecord, newJob } from '../../domain/records.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { detachFile, findAttachedFile, getFile } from '../files/files.ts'
import { getCollection } from './collections.ts'
import { hideAndDelete } from './delete-now.ts'
import { toSnapshot } from './document-events.ts'

/** The number of collections that one file may be attached to. */
const MAX_ATTACHMENTS = 1_000
const DOCUMENT_ID = /^doc_/

/**
 * Records a document and its job; a worker ingests it. Attaching a file to a collection again returns the existing
 * document.
 * @throws {KisError} `not_found` if the organization has no such collection or file.
 * @throws {KisError} `unsupported_file_type` if the file is sound, or a picture and the collection does not use OCR.
 * @throws {KisError} `model_not_found` if the key may not use the collection's model.
 * @throws {KisError} `residency_policy_violation` if the residency policy excludes the collection's model.
 * @throws {KisError} `storage_quota_exceeded` if the plan has no vector left.
 * @throws {KisError} `invalid_request` if the file is attached too often, or the metadata is not valid.
 */
export async function createDocument(
  deps: Deps,
  context: LinkContext,
  input: { readonly collectionId: string; readonly fileId: string; readonly metadata?: unknown },
): Promise<{ readonly document: DocumentRecord; readonly created: boolean }> {
  const { store } = deps
  const principal = requireScope(context.caller, 'knowledge:write')
  const { organizationId, apiKeyId } = principal
  const metadata = requireMetadata(input.metadata, 'input.metadata')
  const collection = await getCollection(deps, organizationId, input.collectionId, 'input.collectionId')
  const file = await getFile(deps, organizationId, input.fileId, 'input.fileId')
  if (isSound(file.mediaType)) {
    const message = `The service cannot make a document from sound. Attach one of these formats: ${FORMAT_LIST}.`
    throw new KisError('unsupported_file_type', message, { param: 'input.fileId' })
  }
  if (isPicture(file.mediaType) && collection.ocr !== 'auto') {
    const message =
      'The file is a picture, and the collection does not use OCR. Set `ocr` of the collection to `auto`, then attach it again.'
    throw new KisError('unsupported_file_type', message, { param: 'input.fileId' })
  }
  const there = await store.documents.findOne({ attachKey: buildAttachKey(collection, file) })
  if (there) return { document: there, created: false }
  await requireIngestible(deps, principal, collection, context)
  return recordDocument(deps, { collection, file, metadata, apiKeyId })
}

/**
 * Records a document of a file, and its job. Gives the document that is there, if there is one.
 * @throws {KisError} `not_found` if the collection or file was deleted meanwhile.
 * @throws {KisError} `invalid_request` if the file is attached too often.
 */
export async function recordDocument(
  deps: Deps,
  {
    collection,
    file,
    metadata,
    apiKeyId,
    parent,
  }: {
    readonly collection: CollectionRecord
    readonly file: FileRecord
    readonly metadata: DocumentRecord['metadata']
    readonly apiKeyId: string
    readonly parent?: Required<Pick<DocumentRecord, 'parentId' | 'depth'>>
  },
): Promise<{ readonly document: DocumentRecord; readonly created: boolean }> {
  const { store, clock, ids } = deps
  const { organizationId } = collection
  const attachKey = buildAttachKey(collection, file)
  const there = await store.documents.findOne({ attachKey })
  if (there) return { document: there, created: false }
  const _id = ids('doc')
  const attached = await store.files.findOneAndUpdate(
    { _id: file._id, organizationId, attachmentCount: { $lt: MAX_ATTACHMENTS } },
    { $set: { [`attachments.${_id}`]: collection._id }, $inc: { attachmentCount: 1 } },
  )
  if (!attached) {
    await getFile(deps, organizationId, file._id, 'input.fileId')
    throw new KisError('invalid_request', `The file has ${MAX_ATTACHMENTS} documents, which is the limit. Delete one of them first.`, {
      param: 'input.fileId',
    })
  }
  const now = clock.now()
  const fields: Omit<DocumentRecord, 'outbox'> = {
    _id,
    organizationId,
    collectionId: collection._id,
    fileId: file._id,
    attachKey,
    listed: true,
    apiKeyId,
    fileName: file.name,
    ...parent,
    metadata,
    status: 'queued',
    stage: null,
    progress: null,
    error: null,
    warnings: [],
    pageCount: null,
    chunkCount: 0,
    language: null,
    attempts: 0,
    liveGeneration: null,
    generation: 1,
    countedVectors: { value: 0, by: _id },
    countedChunks: { value: 0, by: _id },
    embedding: null,
    createdAt: now,
    job: newJob('ingest', organizationId, now),
  }
  const document: DocumentRecord = { ...fields, ...told(organizationId, now, toSnapshot(fields)) }
  try {
    await store.documents.insertOne(document)
  } catch (error) {
    await detachFile(store, file._id, _id)
    const other = error instanceof DuplicateKey && (await store.documents.findOne({ attachKey }))
    if (other) return { document: other, created: false }
    throw error
  }
  // The collection or file may have been deleted meanwhile without seeing the document: the collection had already
  // listed its documents, or the file had dropped the attachment.
  const missing = await missingSource(store, document)
  if (missing) {
    await hideAndDelete(deps, document)
    throw new NotFound(missing, missing === 'file' ? file._id : collection._id, `input.${missing}Id`)
  }
  deps.events.kick(organizationId)
  deps.wake()
  return { document, created: true }
}

function buildAttachKey(collection: CollectionRecord, file: FileRecord): string {
  return `${collection._id}_${file._id}`
}

/**
 * Queues a failed document again, at the expense of the caller's key. Returns any other document unchanged.
 * @throws {NotFound} if the organization has no such document.
 * @throws {KisError} `model_not_found` or `residency_policy_violation` if the key may not use the collection's model.
 * @throws {KisError} `storage_quota_exceeded` if the plan has no vector left.
 */
export async function retryDocument(deps: Deps, context: LinkContext, id: string): Promise<DocumentRecord> {
  const { store, clock } = deps
  const principal = requireScope(context.caller, 'knowledge:write')
  const document = await getDocument(deps, principal.organizationId, id)
  if (document.status !== 'failed') return document
  await requireIngestible(deps, principal, await getCollection(deps, principal.organizationId, document.collectionId), context)
  const now = clock.now()
  const change = { status: 'queued', error: null, warnings: [] } as const
  const event = tell(principal.organizationId, now, toSnapshot({ ...document, ...change }))
  const queued = await store.documents.findOneAndUpdate(
    { _id: id, status: 'failed', listed: true },
    {
      $set: { ...change, apiKeyId: principal.apiKeyId, job: { ...newJob('ingest', principal.organizationId, now) }, ...event.$set },
      $push: event.$push,
      $inc: { generation: 1 },
    },
  )
  if (!queued) return getDocument(deps, principal.organizationId, id)
  deps.events.kick(principal.organizationId)
  deps.wake()
  return queued
}

/**
 * Deletes a document. A search that starts later does not find it, and its vectors no longer count.
 * @throws {NotFound} if the organization has no such document.
 */
export async function deleteDocument(deps: Deps, context: LinkContext, id: string): Promise<void> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  await hideAndDelete(deps, await getDocument(deps, organizationId, id))
}

/**
 * Returns a document of the organization.
 * @throws {NotFound} if the organization has no such document, or the document's collection is being deleted.
 */
export async function getDocument(deps: Pick<Deps, 'store'>, organizationId: string, id: string): Promise<DocumentRecord> {
  const document = await findListed(deps, organizationId, id)
  if (!document) throw new NotFound('document', id)
  return document
}

/** Finds a document of the caller's organization. Returns null if there is none, or its collection is being deleted. */
export async function findDocument(deps: Pick<Deps, 'store'>, { caller }: LinkContext, id: string): Promise<DocumentRecord | null> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return findListed(deps, organizationId, id)
}

/** Lists the documents of a collection that the caller may read, with one status or any. */
export async function listDocuments(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId }: CollectionRecord,
  { status, ...page }: OrderedPage & { readonly status?: DocumentStatus | null },
): Promise<Connection<DocumentRecord>> {
  return listById(store.documents, { collectionId, listed: true, ...(status && { status }) }, page, DOCUMENT_ID)
}

/** Counts a collection's documents in each status. */
export async function countByStatus(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId }: CollectionRecord,
): Promise<Readonly<Record<DocumentStatus, number>>> {
  const countOf = (status: DocumentStatus) => store.documents.countDocuments({ collectionId, listed: true, status })
  const [queued, processing, ready, failed] = await Promise.all([
    countOf('queued'),
    countOf('processing'),
    countOf('ready'),
    countOf('failed'),
  ])
  return { queued, processing, ready, failed }
}

export async function countDocuments({ store }: Pick<Deps, 'store'>, { _id: collectionId }: CollectionRecord): Promise<number> {
  return store.documents.countDocuments({ collectionId, listed: true })
}

/** Counts the chunks of a collection's ready documents. */
export async function countChunks({ store }: Pick<Deps, 'store'>, { _id, organizationId }: CollectionRecord): Promise<number> {
  return (await readUsage(store, organizationId)).chunks[_id] ?? 0
}

async function findListed({ store }: Pick<Deps, 'store'>, organizationId: string, id: string): Promise<DocumentRecord | null> {
  const document = await store.documents.findOne({ _id: id, organizationId, listed: true })
  return document && (await store.collections.findOne({ _id: document.collectionId, listed: true })) ? document : null
}

async function missingSource(store: Deps['store'], document: DocumentRecord): Promise<'collection' | 'file' | null> {
  if (!(await store.collections.findOne({ _id: document.collectionId, listed: true }))) return 'collection'
  return (await findAttachedFile(store, document)) ? null : 'file'
}

/** Requires that the key may use the collection's model, and that the plan has room for at least one vector. */
async function requireIngestible(
  { store, inference }: Deps,
  principal: Principal,
  collection: CollectionRecord,
  context: LinkContext,
): Promise<void> {
  await inference.embeddingModel(collection.embeddingModel, { ...context, caller: principal })
  const { vectors: limit } = principal.plan
  const { vectors } = await readUsage(store, principal.organizationId)
  if (limit !== null && vectors >= limit) {
    throw new KisError(
      'storage_quota_exceeded',
      `The vector quota of the plan is used up: ${vectors} of ${limit} vectors used, at least 1 needed. Delete documents first.`,
    )
  }
}
