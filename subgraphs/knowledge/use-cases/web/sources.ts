import { createHash } from 'node:crypto'
import { listById, type OrderedPage } from '../../../common/documents/lists.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { requireMetadata } from '../../domain/names.ts'
import type { CollectionRecord, WebSourceRecord } from '../../domain/records.ts'
import { decodePage, isSitemapIndex, linksIn, MAX_URL_CHARACTERS } from '../../domain/web-page.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import type { AttachedDocument } from '../documents/documents.ts'
import { fetchPage } from './fetch-page.ts'
import { refreshSource } from './refresh-source.ts'

/** Addresses of one collection. */
const MAX_SOURCES = 10_000
/** Links of one page or sitemap: the default, and the most. */
const DEFAULT_LINKS = 100
const MAX_LINKS = 500
/** Sitemaps of a sitemap that are read. */
const MAX_SITEMAPS = 10
/** Pages of one site are fetched this far apart. */
const PAGE_DISTANCE_MS = 1_000
/** An address is fetched again at most this often: four times an hour. */
export const MIN_REFRESH_SECONDS = 900
export const MAX_REFRESH_SECONDS = 365 * 86_400
const SOURCE_ID = /^web_/
const NOTHING = { etag: null, lastModified: null }

interface WebInput {
  readonly collectionId: string
  readonly url: string
  readonly metadata?: unknown
  readonly refreshSeconds?: number | null
}

/**
 * Makes a document of what is at an address. If the collection has the address already, it is fetched again.
 * @throws {KisError} what `fetchPage`, `uploadFile` and `createDocument` throw; then nothing is kept.
 */
export async function addWebDocument(deps: Deps, context: LinkContext, input: WebInput): Promise<AttachedDocument> {
  const { store } = deps
  const { principal, collection, ...settings } = await readInput(deps, context, input)
  const created = newSource(deps, principal, collection, settings)
  const there = await store.sources.findOne({ sourceKey: created.sourceKey })
  const known = there && (await store.sources.findOneAndUpdate({ _id: there._id }, { $set: settingsOf(settings) }))
  if (!known) await insert(deps, created)
  const source = known ?? created
  try {
    const { source: refreshed, outcome } = await refreshSource(deps, { ...context, caller: principal }, source)
    const document = await store.documents.findOne({ _id: refreshed.documentId! })
    if (!document) throw new NotFound('document', refreshed.documentId!)
    return { document, outcome }
  } catch (error) {
    if (!known) await store.sources.findOneAndDelete({ _id: created._id, documentId: null })
    throw error
  }
}

/**
 * Adds the pages that a sitemap or a page of links names, of its own host. Workers fetch them one after the other.
 * @throws {KisError} what `fetchPage` throws, of the sitemap or page.
 */
export async function addSite(
  deps: Deps,
  context: LinkContext,
  input: WebInput & { readonly limit?: number | null },
): Promise<readonly WebSourceRecord[]> {
  const { store, clock } = deps
  const limit = input.limit ?? DEFAULT_LINKS
  if (limit < 1) throw new KisError('integer_below_min_value', 'The limit is at least 1.', { param: 'input.limit' })
  if (limit > MAX_LINKS) throw new KisError('integer_above_max_value', `The limit is at most ${MAX_LINKS}.`, { param: 'input.limit' })
  const { principal, collection, ...settings } = await readInput(deps, context, input)
  const links = await findLinks(deps, principal, settings.url, limit, context.signal)
  if (links.length === 0)
    throw new KisError('invalid_request', 'The address names no pages of its own host. Send a sitemap, or a page with links.', {
      param: 'input.url',
    })
  const sources: WebSourceRecord[] = []
  const now = clock.now().getTime()
  for (const url of links) {
    const dueAt = new Date(now + sources.length * PAGE_DISTANCE_MS)
    const source = { ...newSource(deps, principal, collection, { ...settings, url }), dueAt }
    const there = await store.sources.findOne({ sourceKey: source.sourceKey })
    if (!there) await insert(deps, source)
    sources.push(there ?? source)
  }
  return sources
}

async function findLinks(deps: Deps, principal: Principal, url: string, limit: number, signal: AbortSignal): Promise<readonly string[]> {
  const read = async (at: string) => {
    // Without validators the answer is never "not changed".
    const page = (await fetchPage(deps, principal, at, NOTHING, signal))!
    return { url: page.url, text: decodePage(page.bytes, page.contentType) }
  }
  const first = await read(url)
  if (!isSitemapIndex(first.text)) return linksIn(first.text, first.url, limit)
  const found = new Set<string>()
  for (const sitemap of linksIn(first.text, first.url, MAX_SITEMAPS)) {
    if (found.size >= limit) break
    const { url: at, text } = await read(sitemap)
    for (const link of linksIn(text, at, limit - found.size)) found.add(link)
  }
  return [...found].slice(0, limit)
}

/**
 * Fetches an address of a collection again now.
 * @throws {NotFound} if the organization has no such source.
 */
export async function refreshNow(deps: Deps, context: LinkContext, id: string): Promise<WebSourceRecord> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const source = await getSource(deps, principal.organizationId, id)
  return (await refreshSource(deps, { ...context, caller: principal }, source)).source
}

/** Fetches an address no more. Its document stays. */
export async function deleteSource(deps: Deps, context: LinkContext, id: string): Promise<void> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  await getSource(deps, organizationId, id)
  await deps.store.sources.findOneAndDelete({ _id: id })
}

/** Lists the addresses of a collection that the caller may read. */
export function listSources(
  { store }: Pick<Deps, 'store'>,
  { _id }: CollectionRecord,
  page: OrderedPage,
): Promise<Connection<WebSourceRecord>> {
  return listById(store.sources, { collectionId: _id }, page, SOURCE_ID)
}

/** Returns a source of the caller's organization, or null if there is none. */
export async function findSource({ store }: Pick<Deps, 'store'>, { caller }: LinkContext, id: string): Promise<WebSourceRecord | null> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return store.sources.findOne({ _id: id, organizationId })
}

async function getSource({ store }: Deps, organizationId: string, id: string): Promise<WebSourceRecord> {
  const source = await store.sources.findOne({ _id: id, organizationId })
  if (!source) throw new NotFound('source', id)
  return source
}

async function readInput(deps: Deps, context: LinkContext, input: WebInput) {
  const principal = requireScope(context.caller, 'knowledge:write')
  const metadata = requireMetadata(input.metadata, 'input.metadata')
  const { refreshSeconds = null } = input
  if (refreshSeconds !== null && refreshSeconds < MIN_REFRESH_SECONDS)
    throw new KisError('integer_below_min_value', `An address is fetched again after ${MIN_REFRESH_SECONDS} s at the earliest.`, {
      param: 'input.refreshSeconds',
    })
  if (refreshSeconds !== null && refreshSeconds > MAX_REFRESH_SECONDS)
    throw new KisError('integer_above_max_value', `An address is fetched again within ${MAX_REFRESH_SECONDS} s.`, {
      param: 'input.refreshSeconds',
    })
  const url = input.url.length <= MAX_URL_CHARACTERS ? URL.parse(input.url) : null
  if (!url)
    throw new KisError('invalid_request', `An address has at most ${MAX_URL_CHARACTERS} characters and begins with https://.`, {
      param: 'input.url',
    })
  url.hash = ''
  const collection = await getCollection(deps, principal.organizationId, input.collectionId, 'input.collectionId')
  return { principal, collection, metadata, refreshSeconds, url: url.href }
}

type Settings = Pick<WebSourceRecord, 'url' | 'metadata' | 'refreshSeconds'>

const settingsOf = ({ metadata, refreshSeconds }: Settings) => ({ metadata, refreshSeconds })

function newSource(
  { ids, clock }: Deps,
  principal: Principal,
  { _id: collectionId }: CollectionRecord,
  settings: Settings,
): WebSourceRecord {
  const { organizationId, apiKeyId } = principal
  return {
    _id: ids('web'),
    organizationId,
    collectionId,
    sourceKey: `${collectionId}_${createHash('sha256').update(settings.url).digest('hex')}`,
    apiKeyId,
    ...settings,
    documentId: null,
    formerFileId: null,
    etag: null,
    lastModified: null,
    sha256: null,
    refreshAt: null,
    checkedAt: null,
    changedAt: null,
    error: null,
    errorReason: null,
    createdAt: clock.now(),
  }
}

async function insert({ store }: Deps, source: WebSourceRecord): Promise<void> {
  const { collectionId } = source
  if ((await store.sources.countDocuments({ collectionId })) >= MAX_SOURCES)
    throw new KisError('array_above_max_length', `A collection has at most ${MAX_SOURCES} addresses. Delete some first.`, {
      param: 'input.url',
    })
  await store.sources.insertOne(source).catch((error: unknown) => {
    if (!(error instanceof DuplicateKey)) throw error
    throw new KisError('in_use', 'The address is being added by another request. Try again.', { param: 'input.url', retryAfterMs: 1_000 })
  })
}
