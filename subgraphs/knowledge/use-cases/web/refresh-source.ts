import { createHash } from 'node:crypto'
import { isAbort, KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { keepWorking } from '../../../common/process/keep-working.ts'
import type { FileRecord, WebSourceRecord } from '../../domain/records.ts'
import { decodePage, nameOfPage } from '../../domain/web-page.ts'
import type { Deps } from '../deps.ts'
import { hideAndDelete } from '../documents/delete-now.ts'
import { createDocument } from '../documents/documents.ts'
import { deleteFile, storeFile } from '../files/files.ts'
import { type FetchedPage, fetchPage } from './fetch-page.ts'

/** Addresses that one process works on at once, each of another organization. */
const AT_ONCE = 4
const PAGE = 100
/** The interval at which due addresses are looked for. */
const LOOK_MS = 1_000
/** A worker that has taken an address and died: another takes it after this. Longer than a fetch with its robots.txt. */
const LEASE_MS = 120_000
/** How soon a worker looks whether a changed document is ready. */
const SWAP_LOOK_MS = 1_000
/** How soon an address that was never fetched is tried again, and how often. */
const RETRY_MS = 60_000
const MAX_RETRY_AGE_MS = 30 * 60_000

type CallContext = LinkContext & { readonly caller: Principal }

/**
 * Fetches an address and, if its content is new, makes a document of it. The document before stays until the new one is
 * ready; then a worker deletes it. Nothing is charged for content that has not changed.
 * @throws {KisError} what `fetchPage`, `uploadFile` and `createDocument` throw.
 */
export async function refreshSource(deps: Deps, context: CallContext, source: WebSourceRecord): Promise<WebSourceRecord> {
  const { store, clock } = deps
  // It has just changed. Another change is seen by the next fetch.
  if (source.replaces !== null) return source
  const live = source.documentId !== null && (await store.documents.findOne({ _id: source.documentId, listed: true }))
  const validators = live ? source : { etag: null, lastModified: null }
  const page = await fetchPage(deps, context.caller, source.url, validators, context.signal)
  const now = clock.now()
  const checked = { checkedAt: now, error: null, refreshAt: nextRefresh(source, now) }
  const sha256 = page && createHash('sha256').update(page.bytes).digest('hex')
  if (!page || (live && sha256 === source.sha256)) return write(deps, source, checked)
  const { _id: documentId } = await makeDocument(deps, context, source, page)
  return write(deps, source, {
    ...checked,
    ...{ documentId, replaces: live ? { documentId: live._id, fileId: live.fileId } : null, sha256, changedAt: now },
    ...{ etag: page.etag, lastModified: page.lastModified },
  })
}

/** A file that nothing is made of is not kept. */
async function makeDocument(deps: Deps, context: CallContext, source: WebSourceRecord, page: FetchedPage) {
  const isPage =
    /html/i.test(page.contentType ?? '') || /^\s*<(?:!doctype|html)/i.test(Buffer.from(page.bytes.subarray(0, 200)).toString('latin1'))
  const name = nameOfPage(page.url, isPage ? decodePage(page.bytes, page.contentType) : null, isPage ? '.html' : '')
  const file = await storeFile(deps, context.caller, { name, bytes: page.bytes, param: 'input.url' })
  try {
    const { collectionId, metadata } = source
    return (await createDocument(deps, context, { collectionId, fileId: file._id, metadata })).document
  } catch (error) {
    await dropFile(deps, context, file._id)
    throw error
  }
}

function nextRefresh({ refreshSeconds }: WebSourceRecord, now: Date): Date | null {
  return refreshSeconds === null ? null : new Date(now.getTime() + refreshSeconds * 1_000)
}

type Change = Partial<{ -readonly [Field in keyof WebSourceRecord]: WebSourceRecord[Field] }>

/** Writes the change and when a worker looks at the address next. */
async function write({ store, clock }: Deps, source: WebSourceRecord, change: Change): Promise<WebSourceRecord> {
  const after = { ...source, ...change }
  const dueAt = after.replaces === null ? after.refreshAt : new Date(clock.now().getTime() + SWAP_LOOK_MS)
  const update = dueAt ? { $set: { ...change, dueAt } } : { $set: change, $unset: { dueAt: '' } as const }
  return (await store.sources.findOneAndUpdate({ _id: source._id }, update as never)) ?? after
}

/** Returns true once the document and its file are gone. */
async function isDropped(
  deps: Deps,
  context: CallContext,
  { documentId, fileId }: NonNullable<WebSourceRecord['replaces']>,
): Promise<boolean> {
  const { documents } = deps.store
  const document = await documents.findOne({ _id: documentId })
  if (document?.listed) await hideAndDelete(deps, document)
  if (document && (await documents.findOne({ _id: documentId }))) return false
  await dropFile(deps, context, fileId)
  return true
}

/** Other documents may be made of the file. It then stays. */
async function dropFile(deps: Deps, context: CallContext, id: FileRecord['_id']): Promise<void> {
  await deleteFile(deps, context, id).catch((error: unknown) => {
    if (!(error instanceof KisError && (error.code === 'in_use' || error.code === 'not_found'))) throw error
  })
}

/** Fetches what is due until the signal aborts. */
export async function keepSources(deps: Deps, signal: AbortSignal): Promise<void> {
  const failed = (error: unknown) => {
    if (!signal.aborted) deps.log.error({ err: error }, 'the worker for addresses failed')
  }
  await keepWorking(() => workOnSources(deps, signal), { clock: deps.clock, pauseMs: LOOK_MS, failed }, signal)
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
  const collection = await store.collections.findOne({ _id: collectionId, organizationId, listed: true })
  const caller = await accounts.findPrincipal(organizationId, apiKeyId, signal)
  if (!collection || !caller) {
    await store.sources.findOneAndDelete({ _id })
    return
  }
  const context = { caller, requestId: _id, signal }
  try {
    if (source.replaces !== null) await swap(deps, context, source)
    else if (caller.isEnded) await stop(deps, source, 'The key that added the address has ended. Add it again with another.')
    else if (source.documentId !== null && !(await store.documents.findOne({ _id: source.documentId, listed: true })))
      await store.sources.findOneAndDelete({ _id })
    else await refreshSource(deps, context, source)
  } catch (error) {
    if (signal.aborted || isAbort(error)) return
    if (!(error instanceof KisError)) log.error({ err: error, source: _id }, 'an address could not be fetched')
    await note(deps, source, error instanceof KisError ? error : new KisError('internal', 'The service failed to fetch it.'))
  }
}

/** Deletes the document before once the new one is ready. If the new one fails, the one before stays. */
async function swap(deps: Deps, context: CallContext, source: WebSourceRecord): Promise<void> {
  const next = await deps.store.documents.findOne({ _id: source.documentId!, listed: true })
  if (next && next.status !== 'ready' && next.status !== 'failed') {
    await write(deps, source, {})
    return
  }
  if (next?.status === 'ready') {
    await write(deps, source, (await isDropped(deps, context, source.replaces!)) ? { replaces: null } : {})
    return
  }
  const error = next?.error ? `The new content could not be read: ${next.error.message}` : 'The document of the new content was deleted.'
  if (next && !(await isDropped(deps, context, { documentId: next._id, fileId: next.fileId }))) return void (await write(deps, source, {}))
  // Its validators belong to the content that failed, so it is fetched whole the next time.
  await write(deps, source, {
    documentId: source.replaces!.documentId,
    replaces: null,
    sha256: null,
    etag: null,
    lastModified: null,
    error,
  })
}

async function note(deps: Deps, source: WebSourceRecord, error: KisError): Promise<void> {
  const now = deps.clock.now()
  const isNew = source.documentId === null && error.shouldRetry && now.getTime() - source.createdAt.getTime() < MAX_RETRY_AGE_MS
  const refreshAt = isNew ? new Date(now.getTime() + RETRY_MS) : nextRefresh(source, now)
  await write(deps, source, { error: error.message, checkedAt: now, refreshAt })
}

async function stop(deps: Deps, source: WebSourceRecord, error: string): Promise<void> {
  await write(deps, source, { error, refreshAt: null })
}
