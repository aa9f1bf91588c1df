import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, estypes } from '@elastic/elasticsearch'
import { KisError } from '../../../common/errors.ts'
import type { RebuildStep, ToTerms } from '../../ports/chunk-index.ts'
import { awaitResponse, checkItems, REQUEST_TIMEOUT_MS, toFailure } from './client.ts'
import { createIndex } from './create-index.ts'
import { COPIED, type EntrySource, toCopy } from './entries.ts'
import { type IndexNames, type IndexSize, NOT_COPIED, nextChunksIndex } from './indices.ts'
import { termMark } from './term-counts.ts'

/**
 * An index is replaced while it is in use: 1. A new index is created. It joins the search alias with a filter that
 * hides copies, takes all writes from then on, and joins the alias for deletions. 2. The old index, which gets no more
 * writes, is copied page by page, in the order of the chunks. Existing entries in the new index are newer and stay. 3.
 * Copies whose original was deleted meanwhile are deleted. 4. The search alias moves to the new index without the
 * filter, in one atomic step of the cluster. 5. Once no search can be using the old index, it is deleted.
 * All state is in the cluster: a rebuild reads its progress from the aliases.
 * Nothing is lost. A write is acknowledged only if the alias still names its index, so the old index was complete
 * before the copy started. A deletion repeats until it finds nothing in either index, so the original of a copy made
 * meanwhile is gone by step 3.
 */

/** Chunks copied per step: 5 MB of JSON. */
const COPIED_PER_STEP = 256
/** Copies checked per step, by ID only. */
const CHECKED_PER_STEP = 1_000
/** 256 nodes in the graph of vectors take seconds on a busy server. */
const COPY_TIMEOUT_MS = 30_000
/** Delay before a replaced index is deleted. By then, searches that found it through its alias have ended. */
const RETIRE_AFTER_MS = REQUEST_TIMEOUT_MS + 1_000

/** Collection, document, generation and ordinal, which identify a chunk. */
type Key = readonly [string, string, string, number]
const ORDER = ['collection_id', 'document_id', 'generation', 'ordinal'] as const

type RebuildCursor =
  | { readonly at: 'begin'; readonly dimensions: number }
  | { readonly at: 'copy' | 'check'; readonly dimensions: number; readonly number: number; readonly after: Key | null }
  | { readonly at: 'retire' }

interface Parts {
  readonly client: Client
  readonly names: IndexNames
  readonly size: IndexSize
}

interface Step {
  readonly chunks: number
  readonly next: RebuildCursor | null
}

/** Performs one step of a rebuild, as `ChunkIndex.rebuild` specifies. */
export async function rebuildStep(parts: Parts, after: string | null, toTerms: ToTerms, signal: AbortSignal): Promise<RebuildStep> {
  const { chunks, next } = await stepAt(parts, readCursor(after), toTerms, signal)
  return { chunks, next: next && Buffer.from(JSON.stringify(next)).toString('base64url') }
}

function readCursor(after: string | null): RebuildCursor {
  if (after === null) return { at: 'begin', dimensions: 0 }
  try {
    const cursor = JSON.parse(Buffer.from(after, 'base64url').toString()) as Partial<Record<string, unknown>>
    const isKey = cursor.after === null || (Array.isArray(cursor.after) && cursor.after.length === ORDER.length)
    const isCounted = Number.isInteger(cursor.dimensions)
    if (cursor.at === 'retire' || (cursor.at === 'begin' && isCounted)) return cursor as RebuildCursor
    if ((cursor.at === 'copy' || cursor.at === 'check') && isCounted && Number.isInteger(cursor.number) && isKey)
      return cursor as RebuildCursor
  } catch {
    // Invalid cursors are refused below.
  }
  throw new KisError('invalid_request', 'The cursor is not from a rebuild.', { param: 'after' })
}

async function stepAt(parts: Parts, cursor: RebuildCursor, toTerms: ToTerms, signal: AbortSignal): Promise<Step> {
  if (cursor.at === 'begin') return start(parts, cursor.dimensions)
  if (cursor.at === 'retire') return retire(parts, signal)
  const { dimensions, number } = cursor
  const filled = parts.names.built(dimensions, number)
  const found = await behind(parts, dimensions)
  // Another rebuild has finished this index.
  if (found?.written !== filled || found.old === null) return { chunks: 0, next: { at: 'begin', dimensions: dimensions + 1 } }
  const pair = { ...found, old: found.old, dimensions, number }
  return cursor.at === 'copy' ? copy(parts, pair, cursor.after, toTerms, signal) : check(parts, pair, cursor.after)
}

/** Returns the index that takes writes now. */
export async function writtenIndex(client: Client, names: IndexNames, dimensions: number): Promise<string | undefined> {
  return (await behind({ client, names }, dimensions))?.written
}

/** Returns the indices of a search alias: the one that takes writes, and the one that it replaces. */
async function behind({ client, names }: Pick<Parts, 'client' | 'names'>, dimensions: number) {
  const alias = names.chunks(dimensions)
  const indices = Object.entries(await awaitResponse(client.indices.getAlias({ name: alias }, { ignore: [404] }))).flatMap(
    ([index, { aliases }]) => (aliases?.[alias] ? [{ index, isWritten: aliases[alias].is_write_index === true }] : []),
  )
  const written = indices.length === 1 ? indices[0] : indices.find(({ isWritten }) => isWritten)
  if (!written) return undefined
  return { written: written.index, old: indices.find(({ index }) => index !== written.index)?.index ?? null }
}

/** Starts or resumes the rebuild of the next number of dimensions from `from` on. Ends after the last. */
async function start(parts: Parts, from: number): Promise<Step> {
  const { client, names, size } = parts
  const dimensions = (await everyIndex(parts))
    .map((index) => index.dimensions)
    .filter((each) => each >= from)
    .sort((a, b) => a - b)[0]
  if (dimensions === undefined) return { chunks: 0, next: { at: 'retire' } }
  const found = await behind(parts, dimensions)
  if (!found) return { chunks: 0, next: { at: 'begin', dimensions: dimensions + 1 } }
  // Continues an interrupted rebuild.
  if (found.old !== null)
    return { chunks: 0, next: { at: 'copy', dimensions, number: names.parseIndexName(found.written)!.number, after: null } }
  const old = found.written
  const number = names.parseIndexName(old)!.number + 1
  const index = names.built(dimensions, number)
  // The index exists if a rebuild was interrupted right after creating it.
  await createIndex(client, nextChunksIndex(names, dimensions, number, size))
  const alias = names.chunks(dimensions)
  await move(client, [
    // The whole update fails if another rebuild has continued from here.
    { remove: { index: old, alias, must_exist: true } },
    { add: { index: old, alias, is_write_index: false } },
    { add: { index, alias, is_write_index: true, filter: NOT_COPIED } },
    { add: { index, alias: names.allChunks } },
  ])
  return { chunks: 0, next: { at: 'copy', dimensions, number, after: null } }
}

interface Pair {
  readonly written: string
  readonly old: string
  readonly dimensions: number
  readonly number: number
}

async function copy(
  { client }: Parts,
  { written, old, dimensions, number }: Pair,
  after: Key | null,
  toTerms: ToTerms,
  signal: AbortSignal,
): Promise<Step> {
  if (after === null) await awaitResponse(client.indices.refresh({ index: old }))
  const { hits } = await awaitResponse(
    client.search<EntrySource>(
      { index: old, ...pageAfter(after, COPIED_PER_STEP), _source: COPIED },
      { signal, requestTimeout: COPY_TIMEOUT_MS },
    ),
    signal,
  )
  const sources = hits.hits.map(({ _source }) => _source!)
  const terms = await toTerms(sources.map(({ text, heading_path: headingPath, context = null }) => ({ text, headingPath, context })))
  if (hits.hits.length > 0) {
    const operations = hits.hits.flatMap(({ _id, _source }, i) => [
      { create: { _id: _id!, routing: _source!.collection_id } },
      toCopy(_source!, terms[i]!, termMark(_source!.collection_id)),
    ])
    const { items } = await awaitResponse(client.bulk({ index: written, operations }, { requestTimeout: COPY_TIMEOUT_MS }))
    // Existing entries were written since, or copied by an interrupted rebuild.
    checkItems(
      items.map(({ create }) => create!),
      [409],
    )
  }
  const next = hits.hits.length < COPIED_PER_STEP ? null : lastKey(hits.hits)
  return { chunks: hits.hits.length, next: { at: next ? 'copy' : 'check', dimensions, number, after: next } }
}

async function check(parts: Parts, { written, old, dimensions, number }: Pair, after: Key | null): Promise<Step> {
  const { client, names } = parts
  if (after === null) await awaitResponse(client.indices.refresh({ index: written }))
  const { hits } = await awaitResponse(
    client.search({
      index: written,
      ...pageAfter(after, CHECKED_PER_STEP, [{ term: { copied: true } }]),
      _source: false,
      seq_no_primary_term: true,
    }),
  )
  const orphans = await withoutOriginal(client, old, hits.hits)
  if (orphans.length > 0) {
    const operations = orphans.map(({ _id, _routing, _seq_no, _primary_term }) => ({
      delete: { _id: _id!, routing: _routing!, if_seq_no: _seq_no!, if_primary_term: _primary_term! },
    }))
    const { items } = await awaitResponse(client.bulk({ index: written, operations }, { requestTimeout: COPY_TIMEOUT_MS }))
    // The entry was written again since, or deleted.
    checkItems(
      items.map((item) => item.delete!),
      [404, 409],
    )
  }
  if (hits.hits.length === CHECKED_PER_STEP) return { chunks: 0, next: { at: 'check', dimensions, number, after: lastKey(hits.hits) } }

  await awaitResponse(client.indices.refresh({ index: written }))
  const alias = names.chunks(dimensions)
  await move(client, [
    { remove: { index: old, alias, must_exist: true } },
    { remove: { index: old, alias: names.allChunks } },
    { add: { index: written, alias, is_write_index: true } },
  ])
  return { chunks: 0, next: { at: 'begin', dimensions: dimensions + 1 } }
}

async function withoutOriginal(client: Client, old: string, hits: readonly estypes.SearchHit[]): Promise<readonly estypes.SearchHit[]> {
  if (hits.length === 0) return []
  const docs = hits.map(({ _id, _routing }) => ({ _index: old, _id: _id!, routing: _routing!, _source: false }))
  const response = await awaitResponse(client.mget({ docs }))
  return hits.filter((_, i) => {
    const doc = response.docs[i]!
    if ('error' in doc) throw toFailure(503, `a chunk was not looked up, ${doc.error.type}`)
    return !doc.found
  })
}

/** Deletes replaced indices. */
async function retire(parts: Parts, signal: AbortSignal): Promise<Step> {
  const all = await everyIndex(parts)
  const isReplaced = ({ dimensions, number, isNamed }: (typeof all)[number]) =>
    !isNamed && all.some((other) => other.isNamed && other.dimensions === dimensions && other.number > number)
  const replaced = all.filter(isReplaced).map(({ index }) => index)
  if (replaced.length > 0) {
    await sleep(RETIRE_AFTER_MS, undefined, { signal })
    await awaitResponse(parts.client.indices.delete({ index: replaced, ignore_unavailable: true }))
  }
  return { chunks: 0, next: null }
}

/** Returns the indices of chunks, and whether an alias names each. */
async function everyIndex({ client, names }: Pick<Parts, 'client' | 'names'>) {
  const found = await awaitResponse(client.indices.getAlias({ index: `${names.allChunks}-*` }, { ignore: [404] }))
  return Object.entries(found).flatMap(([index, { aliases }]) => {
    const parts = names.parseIndexName(index)
    return parts ? [{ index, ...parts, isNamed: Object.keys(aliases ?? {}).length > 0 }] : []
  })
}

/** Applies all actions, or none if the aliases have changed, which means that another rebuild has continued. */
export async function move(client: Client, actions: estypes.IndicesUpdateAliasesAction[]): Promise<void> {
  const { acknowledged } = await awaitResponse(client.indices.updateAliases({ actions }, { ignore: [404] }))
  if (acknowledged === false) throw toFailure(503, 'not every node knows the moved alias yet')
}

function pageAfter(after: Key | null, size: number, filter: estypes.QueryDslQueryContainer[] = []) {
  // The range lets the server skip most of the earlier entries.
  const from = after ? [{ range: { collection_id: { gte: after[0] } } }] : []
  return {
    query: { bool: { filter: [...filter, ...from] } },
    sort: ORDER.map((field) => ({ [field]: 'asc' as const })),
    ...(after && { search_after: [...after] }),
    size,
    track_total_hits: false,
    allow_partial_search_results: false,
  }
}

function lastKey(hits: readonly estypes.SearchHit[]): Key {
  // One value per field of `ORDER`.
  return hits.at(-1)!.sort as unknown as Key
}
