import { NotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { decodeScanCursor, encodeScanCursor } from '../../../common/link/scan-cursor.ts'
import { belongs, isInRepair, isWhole, lastWhole } from '../../domain/index-differences.ts'
import { collectionIdOf, indexNameOf, indexNamesOf } from '../../domain/index-name.ts'
import type { CollectionRecord, DocumentRecord } from '../../domain/records.ts'
import type { IndexedCollection, IndexedGeneration } from '../../ports/chunk-index.ts'
import { restoreDocument } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'
import { type Payer, requeueDocument } from '../documents/requeue-document.ts'

/** The number of documents on a page. If the index has lost them all, each needs its own query of some milliseconds. */
const PAGE = 100
/** The number of passages that one page restores, which takes some seconds. The next page continues. */
const MAX_RESTORED = 4_096

type FindingKind = 'missing' | 'incomplete' | 'extra' | 'repairing' | 'large'

/** A difference between the index and the store, or a collection that the index is too slow for. */
export interface IndexFinding {
  readonly kind: FindingKind
  readonly collectionId: string
  /** Null if the finding is about the whole collection. */
  readonly documentId: string | null
  readonly generation: string | null
  /** The number of chunks that should be there, and that are there. Null means unknown. */
  readonly expected: number | null
  readonly found: number | null
  /** True if this call has repaired the difference, or has queued the document again. */
  readonly repaired: boolean
  /** True if the document's kept passages were put back, without a new embedding. */
  readonly restored?: boolean
}

export interface IndexVerification {
  /** The number of collections that this page begins, and of documents and chunks that it has checked. */
  readonly collections: number
  readonly documents: number
  readonly chunks: number
  readonly findings: readonly IndexFinding[]
  /** Where the next page begins. Null means that nothing is left. */
  readonly next: string | null
}

type VerifyDeps = Pick<Deps, 'store' | 'blobs' | 'index' | 'clock' | 'events' | 'wake'>

/**
 * Pages go through the collections of the store, each by pages of documents, and then through the collections that only
 * the index has.
 */
type IndexScanCursor =
  | { readonly at: 'collections'; readonly after: string }
  | { readonly at: 'documents'; readonly collectionId: string; readonly after: string }
  | { readonly at: 'index'; readonly after: string }

interface Page extends Omit<IndexVerification, 'next'> {
  readonly next: IndexScanCursor | null
}

const NOTHING = { collections: 0, documents: 0, chunks: 0, findings: [] }

/**
 * Compares one page of the index with the store, across all organizations. Documents that are being ingested or deleted
 * are not findings. With `repair`, it deletes chunks that belong to no document and restores missing chunks from the
 * kept passages. If some passages of a document are not kept, it queues the document for a new ingestion, which the
 * operator pays. Repeatable.
 * @throws {KisError} `permission_denied` if the caller is not an operator.
 * @throws {KisError} `not_found` if there is no collection `collectionId`.
 * @throws {KisError} `invalid_request` if `after` is not a cursor of this query.
 * @throws {KisError} `service_unavailable` if a store cannot be reached.
 */
export async function verifyIndex(
  deps: VerifyDeps,
  context: LinkContext,
  input: { readonly collectionId?: string | null; readonly repair: boolean; readonly after?: string | null },
): Promise<IndexVerification> {
  const { organizationId, apiKeyId } = requireScope(context.caller, 'operator')
  const repairAs = input.repair ? { organizationId, apiKeyId } : null
  const only = input.collectionId ?? null
  const { next, ...page } = await verifyAt(
    deps,
    input.after == null ? firstCursor(only) : decodeScanCursor(input.after, isCursor, 'input.after'),
    repairAs,
  )
  const isOver = next === null || (only !== null && next.at !== 'documents')
  return { ...page, next: isOver ? null : encodeScanCursor(next) }
}

function firstCursor(only: string | null): IndexScanCursor {
  return only === null ? { at: 'collections', after: '' } : { at: 'documents', collectionId: only, after: '' }
}

function isCursor({ at, after, collectionId }: Readonly<Record<string, unknown>>): boolean {
  if (typeof after !== 'string') return false
  return at === 'documents' ? typeof collectionId === 'string' : at === 'collections' || at === 'index'
}

async function verifyAt(deps: VerifyDeps, cursor: IndexScanCursor, repairAs: Payer | null): Promise<Page> {
  const { store } = deps
  switch (cursor.at) {
    case 'collections': {
      const after = cursor.after === '' ? {} : { _id: { $gt: cursor.after } }
      const [collection] = await store.collections.find(after, { sort: { _id: 1 }, limit: 1 })
      if (!collection) return { ...NOTHING, next: { at: 'index', after: '' } }
      // A worker deletes this collection.
      if (!collection.listed) return { ...NOTHING, next: { at: 'collections', after: collection._id } }
      return verifyDocuments(deps, collection, '', repairAs)
    }
    case 'documents': {
      const collection = await store.collections.findOne({ _id: cursor.collectionId, listed: true })
      if (collection) return verifyDocuments(deps, collection, cursor.after, repairAs)
      if (cursor.after === '') throw new NotFound('collection', cursor.collectionId, 'input.collectionId')
      return { ...NOTHING, next: { at: 'collections', after: cursor.collectionId } }
    }
    case 'index':
      return verifyUnknown(deps, cursor.after, repairAs)
  }
}

async function verifyDocuments(deps: VerifyDeps, collection: CollectionRecord, after: string, repairAs: Payer | null): Promise<Page> {
  const { store, index } = deps
  const collectionId = collection._id
  const room = after === '' ? await verifyRoom(deps, collection, repairAs !== null) : []
  // Read the index first. Everything in it was in the store before.
  const name = indexNameOf(collection)
  const indexed = await index.listGenerations(name, after, PAGE)
  const listed = await store.documents.find(
    { collectionId, listed: true, ...(after === '' ? {} : { _id: { $gt: after } }) },
    { sort: { _id: 1 }, limit: PAGE },
  )
  // The page ends at the last document that both lists cover.
  const ends = [indexed.length === PAGE ? lastWhole(indexed) : null, listed.length === PAGE ? listed.at(-1)!._id : null]
  const end = ends.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a))
  const within = (last: string | null) => ({
    entries: indexed.filter(({ documentId }) => last === null || documentId <= last),
    documents: listed.filter(({ _id }) => last === null || _id <= last),
  })
  const known = within(end)
  const { gaps, stoppedAt } = await findGaps(deps, { documents: known.documents, entries: known.entries, name }, repairAs)
  const last = stoppedAt ?? end
  const { entries, documents } = within(last)
  return {
    collections: after === '' ? 1 : 0,
    documents: documents.length,
    chunks: entries.reduce((sum, { chunks }) => sum + chunks, 0),
    findings: [...room, ...(await extras(deps, collection, entries, repairAs !== null)), ...gaps],
    next: last === null ? { at: 'collections', after: collectionId } : { at: 'documents', collectionId, after: last },
  }
}

async function verifyRoom({ store, index }: VerifyDeps, collection: CollectionRecord, repair: boolean): Promise<readonly IndexFinding[]> {
  const { _id: collectionId, organizationId, dimensions } = collection
  const name = indexNameOf(collection)
  if (await index.hasCollection(name)) return []
  // The collection may have been deleted since, or have got another index.
  const now = await store.collections.findOne({ _id: collectionId, listed: true })
  if (!now || indexNameOf(now) !== name) return []
  if (repair) await index.createCollection({ organizationId, collectionId: name, dimensions })
  return [{ kind: 'missing', collectionId, documentId: null, generation: null, expected: null, found: null, repaired: repair }]
}

/** Finds chunks of documents that are gone, and of ingestions that have ended. */
async function extras(
  { store, index }: VerifyDeps,
  collection: CollectionRecord,
  entries: readonly IndexedGeneration[],
  repair: boolean,
): Promise<readonly IndexFinding[]> {
  const collectionId = collection._id
  const ids = [...new Set(entries.map(({ documentId }) => documentId))]
  const found = ids.length === 0 ? [] : await store.documents.find({ _id: { $in: ids }, collectionId }, { limit: ids.length })
  const documents = new Map(found.map((document) => [document._id, document]))
  const surplus = entries.filter((entry) => !belongs(documents.get(entry.documentId), entry))
  if (repair)
    for (const { documentId, generation } of surplus) await index.deleteGeneration(indexNameOf(collection), documentId, generation)
  return surplus.map(({ documentId, generation, chunks }) => ({
    kind: 'extra',
    collectionId,
    documentId,
    generation,
    expected: 0,
    found: chunks,
    repaired: repair,
  }))
}

/** A page of what the store and the index have, and the name of the index. */
interface Known {
  readonly documents: readonly DocumentRecord[]
  readonly entries: readonly IndexedGeneration[]
  readonly name: string
}

/**
 * Finds documents of which searches find nothing or not everything. `stoppedAt` is the last document that was checked
 * if the repair reached the limit of one page; otherwise it is null.
 */
async function findGaps(
  deps: VerifyDeps,
  { documents, entries, name }: Known,
  repairAs: Payer | null,
): Promise<{ readonly gaps: readonly IndexFinding[]; readonly stoppedAt: string | null }> {
  const findings: IndexFinding[] = []
  let restoredChunks = 0
  for (const document of documents) {
    if (restoredChunks >= MAX_RESTORED) return { gaps: findings, stoppedAt: findings.at(-1)!.documentId }
    const { _id: documentId, collectionId, liveGeneration: generation } = document
    const described = { collectionId, documentId, generation, expected: document.chunkCount || null }
    if (isInRepair(document)) {
      findings.push({ kind: 'repairing', ...described, found: null, repaired: false })
      continue
    }
    const isReady = document.status === 'ready'
    // A failed repair leaves nothing in the index.
    if (!isReady && !document.payer) continue
    const entry = entries.find((entry) => entry.documentId === documentId && entry.generation === generation)
    if (isReady && isWhole(document, entry)) continue
    const found = isReady ? await confirmedGap(deps, document, name) : 0
    if (found === null) continue
    const restored = repairAs !== null && isReady && (await restoreDocument(deps, document, name))
    if (restored) restoredChunks += document.chunkCount
    const repaired = restored || (repairAs !== null && (await requeueDocument(deps, document, repairAs)))
    findings.push({ kind: found === 0 ? 'missing' : 'incomplete', ...described, found, repaired, ...(restored && { restored }) })
  }
  return { gaps: findings, stoppedAt: null }
}

/**
 * Counts a ready document's chunks in the index. Returns null if all of them are there, or if the document has changed.
 */
async function confirmedGap({ store, index }: VerifyDeps, document: DocumentRecord, name: string): Promise<number | null> {
  const { _id, collectionId, liveGeneration } = document
  // The document may have become ready after the index was listed.
  const ordinals = await index.ordinals(name, _id, liveGeneration!)
  if (isWhole(document, { chunks: ordinals.length, lastOrdinal: ordinals.at(-1) ?? -1 })) return null
  const again = await store.documents.findOne({ _id, listed: true, status: 'ready', liveGeneration })
  const collection = await store.collections.findOne({ _id: collectionId, listed: true })
  return again && collection && indexNameOf(collection) === name ? ordinals.length : null
}

/** Finds collections that only the index has, and those that are too large for it. */
async function verifyUnknown({ store, index }: VerifyDeps, after: string, repairAs: Payer | null): Promise<Page> {
  const indexed = await index.listCollections(after, PAGE)
  const ids = indexed.map(({ collectionId }) => collectionId)
  const owners = [...new Set(ids.map(collectionIdOf))]
  const known = ids.length === 0 ? [] : await store.collections.find({ _id: { $in: owners } }, { limit: owners.length })
  const names = new Set(known.flatMap(indexNamesOf))
  const unknown = indexed.filter(({ collectionId }) => !names.has(collectionId))
  if (repairAs) for (const { collectionId } of unknown) await index.dropCollection(collectionId)
  return {
    ...NOTHING,
    chunks: unknown.reduce((sum, { chunks }) => sum + chunks, 0),
    findings: [
      ...unknown.map((found) => toFinding('extra', found, repairAs !== null)),
      ...indexed.filter(({ isLarge, collectionId }) => isLarge && names.has(collectionId)).map((found) => toFinding('large', found, false)),
    ],
    next: indexed.length === PAGE ? { at: 'index', after: ids.at(-1)! } : null,
  }
}

function toFinding(kind: 'extra' | 'large', { collectionId: indexName, chunks }: IndexedCollection, repaired: boolean): IndexFinding {
  const [collectionId, expected] = kind === 'large' ? [collectionIdOf(indexName), null] : [indexName, 0]
  return { kind, collectionId, documentId: null, generation: null, expected, found: chunks, repaired }
}
