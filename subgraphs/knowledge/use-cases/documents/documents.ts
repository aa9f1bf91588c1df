import {
  listById,
  listSifted,
  type NameFilter,
  nameTest,
  type OrderedPage,
  type SiftBudget,
  type SortedPage,
} from '../../../common/documents/lists.ts'
import { KisError, NotFound, ServiceUnavailable } from '../../../common/errors.ts'
import { reportChange, reportCreation } from '../../../common/events/event-log.ts'
import { hasScope, type Principal, requirePrincipal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { sizeTexts } from '../../../common/sizes.ts'
import { isAudio, isImage, MAX_AUDIO_BYTES } from '../../domain/media-types.ts'
import { requireMetadata } from '../../domain/names.ts'
import {
  type CollectionRecord,
  type DocumentRecord,
  type DocumentStatus,
  type FileRecord,
  findPending,
  newJob,
} from '../../domain/records.ts'
import { bytesKey, externalKey, nameKey, requireExternalId } from '../../domain/version-key.ts'
import type { CallContext } from '../../ports/inference.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { attachFile, detachFile, dropUnpackedFile, findAttachedFile, getFile } from '../files/files.ts'
import { checkedSpeechModel, getCollection } from './collections.ts'
import { hideAndDelete } from './delete-now.ts'
import { toSnapshot } from './document-events.ts'
import { replaceDocument } from './replace-document.ts'

/** Maximum attempts to attach a file while other calls change the same document, and the wait before each. */
const MAX_TRIES = 100
const WAIT_MS = 20
const DOCUMENT_ID = /^doc_/

/** A file to attach to a collection, with options. */
export interface DocumentInput {
  readonly collectionId: string
  readonly fileId: string
  readonly metadata?: unknown
  /** The client's own ID of the document. */
  readonly externalId?: string | null
  /** The document whose next version the file becomes. It takes precedence over `externalId` and `onConflict`. */
  readonly documentId?: string | null
  /** How to handle an existing document with this external ID or, without one, the newest with the file's name. */
  readonly onConflict?: 'keep_both' | 'replace' | null
  /** The model that transcribes an audio file. Null: the collection's model. */
  readonly transcriptionModel?: string | null
}

/** The result of attaching a file. */
export interface AttachedDocument {
  readonly document: DocumentRecord
  /** `unchanged`: the collection already has these bytes. */
  readonly outcome: 'created' | 'unchanged' | 'replacing'
}

/**
 * Records a document and its job. A worker ingests it. Attaching the same bytes to a collection again returns the
 * existing document. With `replace`, the file replaces another one: see `replace-document.ts`.
 * @throws {KisError} `not_found` if the organization has no such collection or file.
 * @throws {KisError} `unsupported_file_type` if the file is audio and no speech model is set, or an image and the
 * collection does not use OCR.
 * @throws {KisError} `payload_too_large` if the file is audio of more than `MAX_AUDIO_BYTES`.
 * @throws {KisError} `model_not_found` if the key may not use the collection's model or the speech model.
 * @throws {KisError} `residency_policy_violation` if the residency policy excludes one of these models.
 * @throws {KisError} `storage_quota_exceeded` if the plan's vector quota is used up.
 * @throws {KisError} `invalid_request` if the file is attached too often, or the metadata or external ID is invalid.
 * @throws {KisError} `already_exists` if another document has the external ID, or the bytes that are to replace one.
 * @throws {ServiceUnavailable} if concurrent calls for the same document interfere.
 */
export async function createDocument(deps: Deps, context: LinkContext, input: DocumentInput): Promise<AttachedDocument> {
  const { store, clock } = deps
  const principal = requireScope(context.caller, 'knowledge:write')
  const { organizationId } = principal
  const metadata = requireMetadata(input.metadata, 'input.metadata')
  const externalId = input.externalId == null ? null : requireExternalId(input.externalId, 'input.externalId')
  const { documentId = null } = input
  if (documentId !== null && externalId !== null)
    throw new KisError('invalid_request', 'Send `documentId` or `externalId`, not both.', { param: 'input.documentId' })
  const isReplacing = documentId !== null || input.onConflict === 'replace'
  const collection = await getCollection(deps, organizationId, input.collectionId, 'input.collectionId')
  const file = await getFile(deps, organizationId, input.fileId, 'input.fileId')
  const named = await requireHearable(deps, { ...context, caller: principal }, file, collection, input.transcriptionModel ?? null)
  if (isImage(file.mediaType) && collection.ocr !== 'auto') {
    const message =
      'The file is an image, and the collection does not use OCR. Set `ocr` of the collection to `auto`, then attach it again.'
    throw new KisError('unsupported_file_type', message, { param: 'input.fileId' })
  }
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const there =
      (await store.documents.findOne({ attachKey: bytesKey(collection._id, file.sha256) })) ??
      // Documents of earlier versions have this key.
      (await store.documents.findOne({ attachKey: `${collection._id}_${file._id}` }))
    const former =
      documentId === null
        ? await findFormer(deps, collection._id, file.name, externalId, isReplacing)
        : await getFormer(deps, collection, documentId)
    const isSame = there && (!former || former._id === there._id)
    // While another version is pending, the live bytes are attached again, so that the last call wins.
    if (isSame && !(isReplacing && findPending(there))) return { document: there, outcome: 'unchanged' }
    if (there && !isSame) {
      const message = `The collection has this file as ${there._id}. Delete it first, or delete ${former!._id}.`
      throw new KisError('already_exists', message, { param: 'input.fileId' })
    }
    if (former && !isReplacing) {
      const message = `The collection has the external id as ${former._id}. Send \`onConflict\` to replace its file.`
      throw new KisError('already_exists', message, { param: 'input.externalId' })
    }
    if (former && findPending(former)?.sha256 === file.sha256) return { document: former, outcome: 'unchanged' }

    await requireIngestible(deps, principal, collection, context)
    const document = former
      ? await replaceDocument(deps, principal, former, file, {
          metadata: input.metadata == null ? null : metadata,
          ...named,
        })
      : await insertDocument(
          deps,
          principal,
          collection,
          file,
          {
            metadata,
            ...named,
            ...(externalId !== null && { externalId, versionKey: externalKey(collection._id, externalId) }),
            ...(externalId === null && isReplacing && { versionKey: nameKey(collection._id, file.name) }),
          },
          deps.ingestionWeights.get(principal.plan.code),
        )
    if (document) {
      deps.events.kick(organizationId)
      deps.wake()
      return { document, outcome: former ? 'replacing' : 'created' }
    }
    await clock.sleep(WAIT_MS)
  }
  throw new ServiceUnavailable('The document')
}

async function getFormer(deps: Deps, { _id, organizationId }: CollectionRecord, documentId: string): Promise<DocumentRecord> {
  const document = await deps.store.documents.findOne({ _id: documentId, organizationId, collectionId: _id, listed: true })
  if (!document) throw new NotFound('document', documentId, 'input.documentId')
  return document
}

/** Finds the document with the external ID or, for a replacement, the newest document with the file's name. */
async function findFormer(
  { store }: Pick<Deps, 'store'>,
  collectionId: string,
  fileName: string,
  externalId: string | null,
  isReplacing: boolean,
): Promise<DocumentRecord | null> {
  if (externalId !== null) return store.documents.findOne({ versionKey: externalKey(collectionId, externalId) })
  if (!isReplacing) return null
  const [newest] = await store.documents.find({ collectionId, listed: true, fileName }, { sort: { _id: -1 }, limit: 1 })
  return newest ?? null
}

/**
 * Records a document for a file that was unpacked from another document's file. Drops the file if the collection
 * already has these bytes.
 */
export async function insertPart(deps: Deps, parent: DocumentRecord, collection: CollectionRecord, file: FileRecord): Promise<void> {
  const { _id: parentId, organizationId, metadata, depth = 0 } = parent
  const part = await insertDocument(deps, parent, collection, file, { metadata, parentId, depth: depth + 1 }, parent.job?.weight)
  if (part) {
    deps.events.kick(organizationId)
    deps.wake()
    return
  }
  const there = await deps.store.documents.findOne({ attachKey: bytesKey(collection._id, file.sha256) })
  if (there?.fileId !== file._id) await dropUnpackedFile(deps, { organizationId, fileId: file._id })
}

/** Records a new document. Returns null if another call has recorded one with the same bytes or key. */
async function insertDocument(
  deps: Deps,
  { organizationId, apiKeyId }: Pick<Principal, 'organizationId' | 'apiKeyId'>,
  collection: CollectionRecord,
  file: FileRecord,
  own: Pick<DocumentRecord, 'metadata' | 'externalId' | 'versionKey' | 'parentId' | 'depth' | 'transcriptionModel'>,
  weight: number | undefined,
): Promise<DocumentRecord | null> {
  const { store, clock, ids } = deps
  await deps.room.reserve('documents', organizationId)
  const _id = ids('doc')
  await attachFile(deps, file, _id, collection._id)
  const now = clock.now()
  const fields: Omit<DocumentRecord, 'outbox'> = {
    _id,
    organizationId,
    collectionId: collection._id,
    fileId: file._id,
    attachKey: bytesKey(collection._id, file.sha256),
    listed: true,
    apiKeyId,
    fileName: file.name,
    ...own,
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
    job: newJob('ingest', organizationId, now, weight),
  }
  const document: DocumentRecord = { ...fields, ...reportCreation(organizationId, now, toSnapshot(fields)) }
  try {
    await store.documents.insertOne(document)
  } catch (error) {
    await detachFile(store, file._id, _id)
    if (error instanceof DuplicateKey) return null
    throw error
  }
  // The collection or file may have been deleted meanwhile without noticing the document: the deletion had already
  // listed the collection's documents, or the file had dropped the attachment.
  const missing = await missingSource(store, document)
  if (missing) {
    await hideAndDelete(deps, document)
    throw new NotFound(missing, missing === 'file' ? file._id : collection._id, `input.${missing}Id`)
  }
  return document
}

/**
 * Requeues a failed document, or its failed new version, at the expense of the caller's key. Returns any other document
 * unchanged.
 * @throws {NotFound} if the organization has no such document.
 * @throws {KisError} `model_not_found` or `residency_policy_violation` if the key may not use the collection's model.
 * @throws {KisError} `storage_quota_exceeded` if the plan's vector quota is used up.
 */
export async function retryDocument(deps: Deps, context: LinkContext, id: string): Promise<DocumentRecord> {
  const { store, clock } = deps
  const principal = requireScope(context.caller, 'knowledge:write')
  const document = await getDocument(deps, principal.organizationId, id)
  const isVersion = document.status === 'ready' && document.replacement?.status === 'failed'
  if (document.status !== 'failed' && !isVersion) return document
  await requireIngestible(deps, principal, await getCollection(deps, principal.organizationId, document.collectionId), context)
  const now = clock.now()
  const change = isVersion
    ? { replacement: { ...document.replacement!, status: 'queued', stage: null, progress: null, error: null } as const }
    : ({ status: 'queued', error: null, warnings: [] } as const)
  const event = reportChange(principal.organizationId, now, toSnapshot({ ...document, ...change }))
  const queued = await store.documents.findOneAndUpdate(
    { _id: id, status: document.status, generation: document.generation, 'job.kind': null, listed: true },
    {
      $set: {
        ...change,
        apiKeyId: principal.apiKeyId,
        job: { ...newJob('ingest', principal.organizationId, now, deps.ingestionWeights.get(principal.plan.code)) },
        ...event.$set,
      },
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
 * Deletes a document. Later searches do not find it, and its vectors no longer count.
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

interface DocumentFilter extends NameFilter {
  readonly metadata?: unknown
}

/** Lists the documents of a collection that the caller may read, with one status or any. */
export async function listDocuments(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId }: CollectionRecord,
  { status, filter, sortBy, ...page }: SortedPage & { readonly status?: DocumentStatus | null; readonly filter?: DocumentFilter | null },
  sifting: SiftBudget,
): Promise<Connection<DocumentRecord>> {
  const { nameContains, since, until } = filter ?? {}
  const fields = Object.entries(requireMetadata(filter?.metadata, 'filter.metadata'))
  const isNamed = nameTest(nameContains)
  const isByName = sortBy === 'name'
  const tests: ((document: DocumentRecord) => boolean)[] = [
    ...(isNamed ? [({ fileName }: DocumentRecord) => isNamed(fileName)] : []),
    ...(fields.length > 0 ? [({ metadata }: DocumentRecord) => fields.every(([name, value]) => metadata[name] === value)] : []),
    ...(status && isByName ? [(document: DocumentRecord) => document.status === status] : []),
  ]
  return listSifted(
    store.documents,
    {
      filter: { collectionId, listed: true, ...(status && !isByName && { status }) },
      idPrefix: 'doc',
      since,
      until,
      matches: tests.length > 0 ? (document) => tests.every((test) => test(document)) : null,
      sifting,
      sortBy: isByName ? 'fileName' : null,
    },
    page,
  )
}

/** Counts a collection's documents in each status. */
export async function countByStatus(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId }: CollectionRecord,
): Promise<Readonly<Record<DocumentStatus, number>>> {
  return countEach(store, { collectionId })
}

/**
 * Counts the documents of all collections of an organization by status. Returns null for another organization than the
 * caller's, unless the caller is an operator.
 */
export async function countOfOrganization(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  organizationId: string,
): Promise<Readonly<Record<DocumentStatus, number>> | null> {
  const principal = requirePrincipal(caller)
  if (!hasScope(principal, 'operator')) requireScope(principal, 'knowledge:read')
  if (organizationId !== principal.organizationId && !hasScope(principal, 'operator')) return null
  return countEach(store, { organizationId })
}

async function countEach(store: Deps['store'], owner: { readonly collectionId: string } | { readonly organizationId: string }) {
  const countOf = (status: DocumentStatus) => store.documents.countDocuments({ ...owner, listed: true, status })
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

/** Checks that an audio file can be transcribed. Returns the speech model that the client named for it. */
async function requireHearable(
  deps: Deps,
  context: CallContext,
  file: FileRecord,
  collection: CollectionRecord,
  named: string | null,
): Promise<Pick<DocumentRecord, 'transcriptionModel'>> {
  if (!isAudio(file.mediaType)) return {}
  const model = named ?? collection.transcriptionModel ?? null
  if (model === null) {
    const message =
      'The file is audio, and no speech model is named. Set `transcription_model` of the collection or of this document to a model of the kind `transcription`, then attach it again.'
    throw new KisError('unsupported_file_type', message, { param: 'input.fileId' })
  }
  if (file.sizeBytes > MAX_AUDIO_BYTES) {
    const [has, most] = sizeTexts(file.sizeBytes, MAX_AUDIO_BYTES)
    const message = `The file has ${has}; speech models take ${most}. Split it, or compress it: Opus at 24 kbit/s has about 11 MiB an hour.`
    throw new KisError('payload_too_large', message, { param: 'input.fileId' })
  }
  const checked = await checkedSpeechModel(deps, context, model)
  return named === null || checked === null ? {} : { transcriptionModel: checked }
}

/** Checks that the key may use the collection's model and that the plan allows at least one more vector. */
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

/** Lists the documents with a status in all collections of the caller's organization. */
export async function listAllDocuments(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  { status, ...page }: OrderedPage & { readonly status: DocumentStatus },
): Promise<Connection<DocumentRecord>> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return listById(store.documents, { organizationId, listed: true, status }, page, DOCUMENT_ID)
}
