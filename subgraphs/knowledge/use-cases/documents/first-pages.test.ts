import { expect, it } from 'vitest'
import { newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import {
  base64,
  Crash,
  createContext,
  depsOn,
  FakeInference,
  Life,
  ManualClock,
  PARAGRAPH_WORDS,
  paragraphs,
  plainParser,
  principal,
} from '../../../../test/support/knowledge.ts'
import { claimJob, LEASE_MS } from '../../../common/documents/jobs.ts'
import { KisError } from '../../../common/errors.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import type { DocumentParser } from '../../ports/document-parser.ts'
import type { Deps } from '../deps.ts'
import { uploadFile } from '../files/files.ts'
import { findChunk } from '../search/find-chunk.ts'
import { searchCollection } from '../search/search-collection.ts'
import { createCollection } from './collections.ts'
import { createDocument, getDocument, retryDocument } from './documents.ts'
import { ingestDocument } from './ingest-document.ts'
import { LeaseLost } from './lease-lost.ts'
import { listChunks } from './list-chunks.ts'
import { readText } from './read-text.ts'
import { replaceDocument } from './replace-document.ts'
import { requeueDocument } from './requeue-document.ts'
import { updateDocument } from './update-document.ts'

const index = await openTestIndex()

/** Three batches of 16. */
const CHUNKS = 40
const BATCH_TOKENS = 16 * (PARAGRAPH_WORDS + 2)

async function attached(text = paragraphs(CHUNKS), parser: DocumentParser = plainParser) {
  const inference = new FakeInference()
  const clock = new ManualClock()
  const world = newWorld({ index, inference, clock, parser })
  const deps = depsOn(world)
  const { _id: collectionId } = await createCollection(deps, createContext(), { code: 'c', name: 'C', embeddingModel: 'embed' })
  const upload = (content: string, name: string) => uploadFile(deps, createContext(), { name, contentBase64: base64(content) })
  const file = await upload(text, 'a.txt')
  const { document } = await createDocument(deps, createContext(), { collectionId, fileId: file._id, metadata: { state: 'draft' } })
  const id = document._id
  const read = () => getDocument(deps, principal.organizationId, id)
  /** Returns the chunks that a search for a word finds. */
  const search = async (query: string, filter: unknown = null) => {
    const { hits } = await searchCollection(deps, createContext(), { collectionId, query, limit: 50, mode: 'lexical', filter })
    return hits.filter(({ chunk }) => chunk.text.includes(query))
  }
  const work = async (through: Deps = deps) => {
    const leased = await claimJob(deps.store.documents, clock, id)
    await ingestDocument(through, leased!, new AbortController().signal)
  }
  return { world, deps, inference, clock, collectionId, id, upload, read, search, work }
}

/** Returns a gate before a batch, which reports when a caller has reached it. */
function gateAt(inference: FakeInference, gated: number) {
  const reached = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  inference.beforeBatch = async (batch) => {
    if (batch !== gated) return
    reached.resolve()
    await open.promise
  }
  return { reached: reached.promise, open: () => open.resolve() }
}

it('the first pages of a first version are found while the rest is embedded, and are marked in progress', async () => {
  const { deps, inference, read, search, work } = await attached()
  const gate = gateAt(inference, 2)
  const done = work()
  await gate.reached
  const [hit, ...others] = await search('matter0x1')
  expect(others).toEqual([])
  expect(hit).toMatchObject({ chunk: { ordinal: 0 }, document: { status: 'processing', stage: 'embedding' } })
  expect(await read()).toMatchObject({ status: 'processing', progress: { done: 16, total: CHUNKS }, chunkCount: 0 })
  expect(await search('matter39x1')).toEqual([])
  expect(await findChunk(deps, createContext(), hit!.chunk.chunkId)).toMatchObject({ chunk: { ordinal: 0 } })
  gate.open()
  await done
  expect(await search('matter0x1')).toMatchObject([{ chunk: { chunkId: hit!.chunk.chunkId }, document: { status: 'ready' } }])
  expect(await search('matter39x1')).toHaveLength(1)
})

it('found pages remain after a crash, and are embedded and paid once', async () => {
  const { world, inference, clock, read, search, work } = await attached()
  const life = new Life()
  inference.beforeBatch = (batch) => {
    if (batch === 2) life.end()
  }
  await expect(work(depsOn(world, life))).rejects.toThrow(Crash)
  expect(await search('matter15x1')).toMatchObject([{ document: { status: 'processing' } }])
  clock.ms += LEASE_MS + 1
  const gate = gateAt(inference, 3)
  const done = work()
  await gate.reached
  expect(await search('matter15x1')).toHaveLength(1)
  gate.open()
  await done
  expect(await read()).toMatchObject({ status: 'ready', chunkCount: CHUNKS })
  expect([...inference.embedded.values()].every((times) => times === 1)).toBe(true)
  expect(inference.charged).toBe(2.5 * BATCH_TOKENS)
})

it('a first version replaced midway is no longer found, and never beside the new one', async () => {
  const { world, deps, inference, id, upload, read, search, work } = await attached(paragraphs(CHUNKS, 'shared old'))
  const gate = gateAt(inference, 2)
  const done = work().catch((error) => error)
  await gate.reached
  expect(await search('shared')).toHaveLength(16)
  const file = await upload(paragraphs(20, 'shared new'), 'b.txt')
  await replaceDocument(deps, principal, await read(), file, { metadata: null })
  expect(await search('shared')).toEqual([])
  gate.open()
  expect(await done).toBeInstanceOf(LeaseLost)

  const life = new Life()
  const seen = new Set<number>()
  life.onCall = async () => {
    const hits = await search('shared')
    seen.add(hits.length)
    for (const { chunk } of hits) expect(chunk.text).toContain('new')
  }
  await work(depsOn(world, life))
  expect([...seen]).toEqual([0, 16, 20])
  expect(await index.ordinals((await read()).collectionId, id, 'g1')).toEqual([])
})

it('a name and metadata changed midway apply to pages that are found already', async () => {
  const { deps, inference, id, search, work } = await attached()
  const gate = gateAt(inference, 2)
  const done = work()
  await gate.reached
  await updateDocument(deps, createContext(), { id, metadata: { state: 'final' } })
  const next = Promise.withResolvers<void>()
  const last = Promise.withResolvers<void>()
  inference.beforeBatch = async () => {
    next.resolve()
    await last.promise
  }
  gate.open()
  await next.promise
  const isFinal = { op: 'eq', field: 'metadata.state', value: 'final' }
  expect(await search('matter0x1', isFinal)).toHaveLength(1)
  last.resolve()
  await done
  expect(await search('matter0x1', isFinal)).toHaveLength(1)
})

/** Returns the text of a document and the ordinals of its chunks, page by page. */
async function readAll(deps: Deps, document: DocumentRecord) {
  const part = await readText(deps, document, { length: 100_000 })
  const ordinals: number[] = []
  for (let after: string | null = null; ; ) {
    const { edges, pageInfo } = await listChunks(deps, document, { first: 10, after })
    ordinals.push(...edges.map(({ node }) => node.ordinal))
    after = pageInfo.endCursor
    if (!pageInfo.hasNextPage) return { text: part?.text ?? null, ordinals }
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

it('the text and chunks read so far can be viewed while the rest is embedded', async () => {
  const { deps, inference, read, work } = await attached()
  expect(await readAll(deps, await read())).toEqual({ text: null, ordinals: [] })
  const gate = gateAt(inference, 2)
  const done = work()
  await gate.reached
  const before = await readAll(deps, await read())
  expect(before).toMatchObject({ text: expect.stringContaining('matter39x1'), ordinals: upTo(16) })
  const { edges } = await listChunks(deps, await read(), { last: 2 })
  expect(edges.map(({ node }) => node.ordinal)).toEqual([14, 15])
  gate.open()
  await done
  expect(await readAll(deps, await read())).toEqual({ text: before.text, ordinals: upTo(CHUNKS) })
  expect((await read()).readSoFar).toBeUndefined()
})

it('the text can be viewed after a failure but is not found, and a retry reads it anew', async () => {
  const { deps, inference, id, read, search, work } = await attached()
  inference.beforeBatch = async (batch) => {
    if (batch === 2) throw new KisError('invalid_request', 'The engine refuses the text.')
  }
  await work()
  expect(await read()).toMatchObject({ status: 'failed', error: { code: 'embedding_failed' } })
  expect(await readAll(deps, await read())).toEqual({ text: expect.stringContaining('matter39x1'), ordinals: upTo(16) })
  expect(await search('matter0x1')).toEqual([])
  inference.beforeBatch = async () => {}
  await retryDocument(deps, createContext(), id)
  expect(await readAll(deps, await read())).toEqual({ text: null, ordinals: [] })
  await work()
  expect(await readAll(deps, await read())).toMatchObject({ ordinals: upTo(CHUNKS) })
  expect(await search('matter0x1')).toHaveLength(1)
})

it.each(['storage_quota_exceeded', 'insufficient_quota'] as const)('nothing is stored of a document that failed with %s', async (code) => {
  const { world, deps, inference, id, read, work } = await attached()
  inference.beforeBatch = async (batch) => {
    if (batch === 2 && code === 'insufficient_quota') throw new KisError(code, 'The wallet is empty.')
  }
  const poor = { ...principal, plan: { ...principal.plan, vectors: CHUNKS - 1 } }
  const accounts = { findPrincipal: async () => (code === 'storage_quota_exceeded' ? poor : principal) }
  await work({ ...deps, accounts: { ...deps.accounts, ...accounts } })
  expect(await read()).toMatchObject({ status: 'failed', error: { code } })
  expect([...world.blobs.keys.keys()].filter((key) => key.startsWith(id))).toEqual([])
  expect(await readAll(deps, await read())).toEqual({ text: null, ordinals: [] })
  inference.beforeBatch = async () => {}
  await retryDocument(deps, createContext(), id)
  await work()
  expect(await readAll(deps, await read())).toMatchObject({ text: expect.stringContaining('matter39x1'), ordinals: upTo(CHUNKS) })
})

it('a new version in progress does not hide the text of the live one', async () => {
  const { deps, inference, upload, read, work } = await attached(paragraphs(20, 'shared old'))
  await work()
  const live = await readAll(deps, await read())
  await replaceDocument(deps, principal, await read(), await upload(paragraphs(40, 'shared new'), 'b.txt'), { metadata: null })
  const gate = gateAt(inference, inference.batches + 2)
  const done = work()
  await gate.reached
  expect(await readAll(deps, await read())).toEqual(live)
  gate.open()
  await done
  expect(await readAll(deps, await read())).toMatchObject({ text: expect.stringContaining('new'), ordinals: upTo(40) })
})

it('a document in repair is not found before it is ready again', async () => {
  const { deps, inference, read, search, work } = await attached()
  await work()
  await requeueDocument(deps, await read(), principal)
  const gate = gateAt(inference, inference.batches + 2)
  const done = work()
  await gate.reached
  expect(await search('matter0x1')).toEqual([])
  gate.open()
  await done
  expect(await search('matter0x1')).toHaveLength(1)
})

it('the pages read are its progress, except those of a document that was taken over', async () => {
  const reached = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const parser: DocumentParser = {
    ...plainParser,
    async parse(file, name, signal, options) {
      options!.onPages!(0, 300)
      options!.onPages!(16, 300)
      options!.onPages!(32, 300)
      reached.resolve()
      await open.promise
      options!.onPages!(300, 300)
      return plainParser.parse(file, name, signal)
    },
  }
  const { deps, id, read, work } = await attached('Few words.', parser)
  const events: unknown[] = []
  const { findOneAndUpdate } = deps.store.documents
  deps.store.documents.findOneAndUpdate = async (filter, update) => {
    const written = await findOneAndUpdate(filter, update)
    if (written && update.$set?.progress) events.push(update.$set.progress)
    return written
  }
  const done = work().catch((error) => error)
  await reached.promise
  await expect.poll(async () => (await read()).progress, { timeout: 10_000 }).toEqual({ done: 32, total: 300 })
  await deps.store.documents.findOneAndUpdate({ _id: id }, { $set: { 'job.lease': null } })
  open.resolve()
  expect(await done).toBeInstanceOf(LeaseLost)
  expect(events).toEqual([
    { done: 0, total: 1 },
    { done: 0, total: 300 },
    { done: 32, total: 300 },
  ])
  expect((await read()).progress).toEqual({ done: 32, total: 300 })
})
