import { createHash } from 'node:crypto'
import { isAbort, KisError } from '../../../common/errors.ts'
import { hasScope, type Principal } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { Task } from '../../../common/process/tasks.ts'
import { type DocumentRecord, findPending, type WebSourceErrorReason, type WebSourceRecord } from '../../domain/records.ts'
import { decodePage } from '../../domain/web-page.ts'
import type { Deps } from '../deps.ts'
import { type AttachedDocument, createDocument } from '../documents/documents.ts'
import { LeaseLost } from '../documents/lease-lost.ts'
import { detachFile, dropFile, storeFile } from '../files/files.ts'
import { type FetchedPage, FetchRefused, fetchPage } from './fetch-page.ts'

/** Addresses that one process works on at once, each of another organization. */
const AT_ONCE = 4
const PAGE = 100
/** The interval at which due addresses are looked for. */
const POLL_MS = 1_000
/** A worker that has taken an address and died: another takes it after this. Longer than a fetch with its robots.txt. */
const LEASE_MS = 120_000
/** How soon a worker looks whether a new version is live. */
const SWAP_POLL_MS = 1_000
/** How soon an address that was never fetched is tried again, and how long. */
const RETRY_MS = 60_000
const MAX_RETRY_AGE_MS = 30 * 60_000

type CallContext = LinkContext & { readonly caller: Principal }

interface Refreshed {
  readonly source: WebSourceRecord
  readonly outcome: AttachedDocument['outcome']
}

/**
 * Fetches an address and, if its content is new, makes it the next version of the address's document. Nothing is charged
 * for content that has not changed. A worker gives the lease that it has taken.
 * @throws {KisError} what `fetchPage`, `uploadFile` and `createDocument` throw.
 * @throws {LeaseLost} if another worker has taken the address meanwhile.
 */
export async function refreshSource(deps: Deps, context: CallContext, source: WebSourceRecord, lease: Lease = {}): Promise<Refreshed> {
  const { store, clock } = deps
  const live = source.documentId === null ? null : await store.documents.findOne({ _id: source.documentId, listed: true })
  const validators = live ? source : { etag: null, lastModified: null }
  const page = await fetchPage(deps, context.caller, source.url, validators, context.signal)
  const now = clock.now()
  const checked = { checkedAt: now, error: null, errorReason: null, refreshAt: nextRefresh(source, now) }
  const sha256 = page && createHash('sha256').update(page.bytes).digest('hex')
  if (!page || (live && sha256 === source.sha256)) return { source: await write(deps, source, checked, lease), outcome: 'unchanged' }
  const begun = await startVersion(deps, source, live, lease)
  const { document, outcome } = await attach(deps, context, begun, { page, isFirst: live === null })
  const former = outcome === 'replacing' && live ? { formerFileId: live.fileId } : {}
  const change = {
    documentId: document._id,
    sha256,
    changedAt: now,
    etag: page.etag,
    lastModified: page.lastModified,
    nextFileId: null,
    ...former,
  }
  return { source: await write(deps, begun, { ...checked, ...change }, lease), outcome }
}

/**
 * Records the live file as the one that a new version replaces, and keeps the address for as long as a lease: whoever
 * takes it after a crash finds what there is to delete. Deletes the file before, if nobody has done so yet.
 */
async function startVersion(deps: Deps, source: WebSourceRecord, live: DocumentRecord | null, lease: Lease): Promise<WebSourceRecord> {
  const { store, clock, ids } = deps
  const { _id, formerFileId: before } = source
  const formerFileId = live?.fileId ?? null
  const nextFileId = ids('file')
  const dueAt = lease.dueAt ?? new Date(clock.now().getTime() + LEASE_MS)
  const begun = await store.sources.findOneAndUpdate({ _id, ...lease }, { $set: { formerFileId, nextFileId, dueAt } })
  if (!begun && lease.dueAt) throw new LeaseLost()
  await dropLeftOver(deps, source, live)
  if (before !== null && before !== formerFileId) await dropFile(deps, source.organizationId, before)
  return begun ?? { ...source, formerFileId, nextFileId }
}

/** Deletes the file that a worker stored, and died before a document was made of it. */
async function dropLeftOver(deps: Deps, { organizationId, nextFileId }: WebSourceRecord, document: DocumentRecord | null) {
  if (!nextFileId || document?.fileId === nextFileId || document?.replacement?.fileId === nextFileId) return
  if (document) await detachFile(deps.store, nextFileId, document._id)
  await dropFile(deps, organizationId, nextFileId)
}

/** A file that no document is made of is not kept. Later versions keep the metadata that the document has by then. */
async function attach(
  deps: Deps,
  context: CallContext,
  { _id, collectionId, metadata, nextFileId }: WebSourceRecord,
  { page, isFirst }: { readonly page: FetchedPage; readonly isFirst: boolean },
): Promise<AttachedDocument> {
  const { bytes, contentType, url } = page
  const isPage = /html/i.test(contentType ?? '') || /^\s*<(?:!doctype|html)/i.test(Buffer.from(bytes.subarray(0, 200)).toString('latin1'))
  // Here, because its HTML parser takes 20 ms of a start, and most services read no page for long.
  const { nameOfPage } = await import('../../domain/page-name.ts')
  const name = nameOfPage(url, isPage ? decodePage(bytes, contentType) : null, isPage ? '.html' : '')
  const file = await storeFile(deps, context.caller, { id: nextFileId!, name, bytes, param: 'input.url' })
  try {
    const input = { collectionId, fileId: file._id, metadata: isFirst ? metadata : null, externalId: _id, onConflict: 'replace' } as const
    const attached = await createDocument(deps, context, input)
    if (attached.outcome === 'unchanged') await dropFile(deps, file.organizationId, file._id)
    return attached
  } catch (error) {
    await dropFile(deps, file.organizationId, file._id)
    throw error
  }
}

function nextRefresh({ refreshSeconds }: WebSourceRecord, now: Date): Date | null {
  return refreshSeconds === null ? null : new Date(now.getTime() + refreshSeconds * 1_000)
}

type Change = Partial<Omit<WebSourceRecord, '_id' | 'metadata'>>

/** The time until which a worker has the address: while it is due then, no other has taken it. Empty: no worker asks. */
type Lease = { readonly dueAt?: Date }

/** Writes the change and when a worker looks at the address next. */
async function write({ store, clock }: Deps, source: WebSourceRecord, change: Change, lease: Lease = {}): Promise<WebSourceRecord> {
  const after = { ...source, ...change }
  const dueAt = after.formerFileId === null ? after.refreshAt : new Date(clock.now().getTime() + SWAP_POLL_MS)
  const update = dueAt ? { $set: { ...change, dueAt } } : { $set: change, $unset: { dueAt: '' } as const }
  const written = await store.sources.findOneAndUpdate({ _id: source._id, ...lease }, update)
  if (!written && lease.dueAt) throw new LeaseLost()
  return written ?? after
}

/** Fetches what is due. Several processes may do it at once. */
export function refreshing(deps: Deps): Task {
  return { name: 'fetch_sources', everyMs: POLL_MS, run: (signal) => workOnSources(deps, signal) }
}

/** Works on the addresses that are due: those of each organization one after the other. */
export async function workOnSources(deps: Deps, signal: AbortSignal): Promise<void> {
  const { store, clock } = deps
  const due = await store.sources.find({ dueAt: { $lte: clock.now() } }, { sort: { dueAt: 1 }, limit: PAGE })
  const queues = [...Map.groupBy(due, ({ organizationId }) => organizationId).values()].values()
  const work = async () => {
    for (const queue of queues)
      for (const source of queue) {
        if (signal.aborted) return
        await workOn(deps, source, signal)
      }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

async function workOn(deps: Deps, found: WebSourceRecord, signal: AbortSignal): Promise<void> {
  const { store, clock, accounts, log } = deps
  const { _id, organizationId, apiKeyId, collectionId, dueAt } = found
  const leased = new Date(clock.now().getTime() + LEASE_MS)
  const source = await store.sources.findOneAndUpdate({ _id, dueAt: dueAt! }, { $set: { dueAt: leased } })
  if (!source) return
  const lease = { dueAt: leased }
  const collection = await store.collections.findOne({ _id: collectionId, organizationId, listed: true })
  const caller = await accounts.findPrincipal(organizationId, apiKeyId, signal)
  const document = source.documentId === null ? null : await store.documents.findOne({ _id: source.documentId, listed: true })
  // A document that was deleted is not fetched again.
  if (!collection || !caller || (source.documentId !== null && !document)) {
    await store.sources.findOneAndDelete({ _id })
    return
  }
  // It is looked at again after the lease, until the organization is resumed.
  if (caller.isSuspended) return
  const context = { caller, requestId: _id, signal }
  try {
    if (source.formerFileId !== null && document) await settle(deps, source, document, lease)
    else if (caller.isEnded) await stop(deps, source, 'The key that added the address has ended. Add it again with another.', lease)
    else if (!hasScope(caller, 'knowledge:write'))
      await stop(deps, source, 'The key that added the address lacks the scope `knowledge:write`. Add it again with another.', lease)
    else await refreshSource(deps, context, source, lease)
  } catch (error) {
    if (signal.aborted || isAbort(error) || error instanceof LeaseLost) return
    if (!(error instanceof KisError)) log.error({ err: error, source: _id }, 'an address could not be fetched')
    await note(deps, source, error instanceof KisError ? error : new KisError('internal', 'The service failed to fetch it.'), lease)
  }
}

/** Deletes the file of the version before once the new one is live. If the new one has failed, says why. */
async function settle(deps: Deps, source: WebSourceRecord, document: DocumentRecord, lease: Lease): Promise<void> {
  if (findPending(document) || document.job) return void (await write(deps, source, {}, lease))
  const { replacement } = document
  if (replacement?.status === 'failed') {
    const error = `The new content could not be read: ${replacement.error?.message ?? 'it failed.'}`
    // Its validators belong to the content that failed, so it is fetched whole the next time.
    const failed = { error, errorReason: 'unreadable' } as const
    await write(deps, source, { formerFileId: null, sha256: null, etag: null, lastModified: null, ...failed }, lease)
    return
  }
  await dropLeftOver(deps, source, document)
  // No new version came of the content: it was that of the live one, or the process that fetched it died.
  const isOver = source.formerFileId === document.fileId || (await dropFile(deps, source.organizationId, source.formerFileId!))
  await write(deps, source, isOver ? { formerFileId: null, nextFileId: null } : {}, lease)
}

async function note(deps: Deps, source: WebSourceRecord, error: KisError, lease: Lease): Promise<void> {
  const now = deps.clock.now()
  const isNew = source.documentId === null && error.shouldRetry && now.getTime() - source.createdAt.getTime() < MAX_RETRY_AGE_MS
  const refreshAt = isNew ? new Date(now.getTime() + RETRY_MS) : nextRefresh(source, now)
  await write(deps, source, { error: error.message, errorReason: reasonOf(error), checkedAt: now, refreshAt }, lease)
}

const REASONS: Partial<Readonly<Record<KisError['code'], WebSourceErrorReason>>> = {
  payload_too_large: 'too_large',
  unsupported_file_type: 'unsupported_type',
  residency_policy_violation: 'residency_policy_violation',
  storage_quota_exceeded: 'storage_quota_exceeded',
  insufficient_quota: 'insufficient_quota',
}

function reasonOf(error: KisError): WebSourceErrorReason {
  return error instanceof FetchRefused ? error.reason : (REASONS[error.code] ?? 'other')
}

async function stop(deps: Deps, source: WebSourceRecord, error: string, lease: Lease): Promise<void> {
  await write(deps, source, { error, errorReason: 'key_ended', refreshAt: null }, lease)
}
