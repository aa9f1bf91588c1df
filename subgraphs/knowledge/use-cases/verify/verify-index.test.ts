import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { plainChunk } from '../../../../test/support/data/chunks.ts'
import { addReady, attach, ingest, newWorld } from '../../../../test/support/data/knowledge-library.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import {
  createContext,
  createVector,
  DIMENSIONS,
  depsOn,
  errorCode,
  FakeInference,
  Life,
  paragraphs,
  principal,
  type World,
} from '../../../../test/support/knowledge.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { silentLog } from '../../../common/process/log.ts'
import { openSqliteChunkIndex } from '../../adapters/sqlite/chunk-index.ts'
import { buildChunkId, type DocumentRecord, newJob } from '../../domain/records.ts'
import type { ChunkIndex } from '../../ports/chunk-index.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { createCollection } from '../documents/collections.ts'
import { deleteDocument, getDocument } from '../documents/documents.ts'
import { searchCollection } from '../search/search-collection.ts'
import { type IndexFinding, type IndexVerification, verifyIndex } from './verify-index.ts'

const operator: Principal = {
  ...principal,
  organizationId: 'org_operator',
  apiKeyId: 'key_operator',
  ancestors: ['key_first'],
  scopes: ['admin', 'operator'],
}
const context = createContext()
const folder = temporaryFolder()
const opened: ChunkIndex[] = []
afterAll(async () => {
  for (const index of opened) await index[Symbol.asyncDispose]()
})

/** Records the callers of embeddings, in addition to the fake. */
class WatchedInference extends FakeInference {
  readonly callers: Principal[] = []
  override async embedPassages(input: Parameters<FakeInference['embedPassages']>[0], context?: CallContext) {
    this.callers.push(context!.caller)
    return super.embedPassages(input)
  }
}

async function openWorld() {
  const index = await openSqliteChunkIndex({ file: join(folder, `${opened.length}.sqlite`), log: silentLog })
  opened.push(index)
  const inference = new WatchedInference()
  const accounts = { findPrincipal: async (organizationId: string) => (organizationId === operator.organizationId ? operator : principal) }
  const world: World = newWorld({ index, inference, accounts })
  const deps = depsOn(world)
  const { _id: collectionId, organizationId } = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const add = (text: string, name = 'a.txt') => addReady(deps, collectionId, name, text)
  /** Writes chunks that the store does not know. */
  const put = (documentId: string, generation: string, chunks: number, collection = collectionId) =>
    index.put(
      { organizationId, collectionId: collection, documentId, generation, attributes: {} },
      Array.from({ length: chunks }, (_, i) =>
        plainChunk(buildChunkId(documentId, generation, i), i, 'harbour', {
          vector: createVector('harbour'),
          words: ['harbour'],
          grams: [],
        }),
      ),
    )
  const record = (id: string) => getDocument(deps, organizationId, id)
  return { world, deps, index, inference, collectionId, organizationId, add, put, record }
}

/** Reads every page, like the operator's tool. */
async function verify(deps: Deps, { repair = false, collectionId }: { repair?: boolean; collectionId?: string } = {}) {
  const findings: IndexFinding[] = []
  const total = { collections: 0, documents: 0, chunks: 0, pages: 0 }
  let after: string | null = null
  do {
    const page: IndexVerification = await verifyIndex(deps, createContext(operator), {
      repair,
      after,
      ...(collectionId && { collectionId }),
    })
    findings.push(...page.findings)
    total.collections += page.collections
    total.documents += page.documents
    total.chunks += page.chunks
    total.pages++
    after = page.next
  } while (after !== null)
  return { findings, ...total }
}

const shortly = ({ findings }: { readonly findings: readonly IndexFinding[] }) =>
  findings.map(({ kind, documentId, generation, expected, found }) => [kind, documentId, generation, expected, found])

it('finds nothing in a consistent index, and counts what it has checked', async () => {
  const { deps, add } = await openWorld()
  await add(paragraphs(3))
  await add(paragraphs(2, 'other'), 'b.txt')
  expect(await verify(deps)).toMatchObject({ findings: [], collections: 1, documents: 2, chunks: 5 })
})

it('checks every document once, in any number, and finds each difference', async () => {
  const { deps, collectionId, put, add, record } = await openWorld()
  const { _id: _, job: _job, ...ready } = { ...(await record(await add('harbour'))), attachKey: 'x' }
  const ids = Array.from({ length: 330 }, (_, i) => `doc_${i.toString(16).padStart(32, '0')}`)
  for (const [i, id] of ids.entries()) {
    await deps.store.documents.insertOne({ ...ready, _id: id, attachKey: id, liveGeneration: 'g2', generation: 2 })
    if (i % 10 !== 3) await put(id, 'g2', 1)
    if (i % 3 === 0) await put(id, 'g1', 2)
    if (i % 50 === 7) await put(id.replace('doc_0', 'doc_1'), 'g1', 1)
  }
  const { findings, documents } = await verify(deps, { collectionId })
  expect(documents).toBe(331)
  const of = (kind: string) => findings.filter((finding) => finding.kind === kind).map(({ documentId }) => documentId)
  expect(of('missing')).toEqual(ids.filter((_, i) => i % 10 === 3))
  expect(of('extra').sort()).toEqual([
    ...ids.filter((_, i) => i % 3 === 0),
    ...ids.filter((_, i) => i % 50 === 7).map((id) => id.replace('doc_0', 'doc_1')),
  ])
  expect(findings).toHaveLength(of('missing').length + of('extra').length)
})

it('reports per document what the index lacks and what it has in excess', async () => {
  const { deps, index, collectionId, add, put } = await openWorld()
  const lost = await add(paragraphs(3))
  const partly = await add(paragraphs(4, 'part'), 'b.txt')
  const older = await add(paragraphs(2, 'older'), 'c.txt')
  const failed = await add('%corrupt', 'd.txt')
  const gone = `doc_${'0'.repeat(32)}`
  await index.deleteDocument(collectionId, lost)
  await index.deleteDocument(collectionId, partly)
  await put(partly, 'g1', 3)
  await put(older, 'g0', 2)
  await put(failed, 'g1', 1)
  await put(gone, 'g7', 1)
  const expected = [
    ['extra', gone, 'g7', 0, 1],
    ['extra', older, 'g0', 0, 2],
    ['extra', failed, 'g1', 0, 1],
    ['missing', lost, 'g1', 3, 0],
    ['incomplete', partly, 'g1', 4, 3],
  ]
  expect(shortly(await verify(deps))).toEqual(expected)
  expect(shortly(await verify(deps, { collectionId }))).toEqual(expected)
})

it('finds collections that only one side has', async () => {
  const { deps, index, collectionId, put } = await openWorld()
  const unknownCollection = `col_${'0'.repeat(32)}`
  await index.createCollection({ organizationId: 'org_1', collectionId: unknownCollection, dimensions: DIMENSIONS })
  expect((await verify(deps)).findings).toEqual([])
  await put('doc_x', 'g1', 2, unknownCollection)
  await index.dropCollection(collectionId)
  const { findings } = await verify(deps, { repair: true })
  expect(findings.map(({ kind, collectionId, documentId, found, repaired }) => [kind, collectionId, documentId, found, repaired])).toEqual([
    ['missing', collectionId, null, null, true],
    ['extra', unknownCollection, null, 2, true],
  ])
  expect((await verify(deps)).findings).toEqual([])
  expect([await index.hasCollection(collectionId), await index.hasCollection(unknownCollection)]).toEqual([true, false])
})

it('warns of a collection that is too large for the index, which repairs nothing', async () => {
  const { deps, collectionId, add } = await openWorld()
  await add('The harbour')
  const db = new DatabaseSync(join(folder, `${opened.length - 1}.sqlite`))
  db.exec('UPDATE collections SET chunks = 412345')
  db.close()
  const large = { kind: 'large', collectionId, documentId: null, generation: null, expected: null, found: 412_345, repaired: false }
  expect(await verify(deps, { repair: true })).toMatchObject({ findings: [large] })
})

it('reports no change in flight as a difference', async () => {
  const { deps, index, collectionId, add, put } = await openWorld()
  const { id: queued } = await attach(deps, collectionId, 'a.txt', paragraphs(3))
  await put(queued, 'g1', 2)
  const hidden = await add(paragraphs(2, 'hidden'), 'b.txt')
  await deps.store.documents.findOneAndUpdate(
    { _id: hidden },
    { $set: { listed: false, job: { ...newJob('delete', principal.organizationId, new Date(0)) } } },
  )
  const dropped = await createCollection(deps, context, { code: 'd', name: 'D', embeddingModel: 'embed' })
  await deps.store.collections.findOneAndUpdate({ _id: dropped._id }, { $set: { listed: false } })
  await put('doc_y', 'g1', 1, dropped._id)
  expect(await verify(deps, { repair: true })).toMatchObject({ findings: [], collections: 1, documents: 1 })
  expect(await index.ordinals(collectionId, queued, 'g1')).toEqual([0, 1])
})

it('reports nothing missing that became ready, or was deleted, after it had read the index', async () => {
  const { world, deps, add, index, collectionId } = await openWorld()
  const { id: late } = await attach(deps, collectionId, 'a.txt', paragraphs(2))
  const doomed = await add(paragraphs(2, 'doomed'), 'b.txt')
  await index.deleteDocument(collectionId, doomed)
  const life = new Life()
  life.onCall = async (_, name) => {
    if (name === 'documents.find' && (await deps.store.documents.findOne({ _id: late }))?.status === 'queued') await ingest(deps, late)
    if (name === 'index.ordinals' && (await deps.store.documents.findOne({ _id: doomed }))) await deleteDocument(deps, context, doomed)
  }
  expect((await verify(depsOn(world, life), { repair: true })).findings).toEqual([])
})

it('repairs until nothing is missing or extra, at the expense of its caller and by the rules of the owner', async () => {
  const { deps, index, inference, collectionId, add, put, record } = await openWorld()
  const intact = await add(paragraphs(2, 'kept'), 'k.txt')
  const lost = await add(paragraphs(3), 'a.txt')
  const gone = `doc_${'0'.repeat(32)}`
  await index.deleteDocument(collectionId, lost)
  await deps.blobs.deleteAll(`${lost}_g1_`)
  await put(gone, 'g1', 1)
  const paidBefore = inference.callers.length
  const found = async () => {
    const { hits } = await searchCollection(deps, context, { collectionId, query: 'matter0x1', limit: 10, mode: 'lexical', filter: null })
    return hits.some(({ document }) => document._id === lost)
  }

  const { findings } = await verify(deps, { repair: true })
  expect(findings.map(({ kind, documentId, repaired }) => [kind, documentId, repaired])).toEqual([
    ['extra', gone, true],
    ['missing', lost, true],
  ])
  expect(await index.listGenerations(collectionId, '', 10)).toMatchObject([{ documentId: intact }])
  expect(shortly(await verify(deps, { repair: true }))).toEqual([['repairing', lost, 'g1', 3, null]])
  expect(await found()).toBe(false)

  await ingest(deps, lost)
  expect(await verify(deps)).toMatchObject({ findings: [], chunks: 5 })
  expect(await found()).toBe(true)
  expect(await record(lost)).toMatchObject({ status: 'ready', liveGeneration: 'g2', chunkCount: 3 })
  expect(await record(lost)).not.toHaveProperty('payer')
  expect([...new Set(inference.embedded.values())].sort()).toEqual([1, 2])
  const { organizationId, apiKeyId, ancestors } = operator
  expect(inference.callers.slice(0, paidBefore)).toEqual(Array(paidBefore).fill(principal))
  expect(inference.callers.slice(paidBefore)).toEqual([{ ...principal, organizationId, apiKeyId, ancestors }])
})

it('restores stored chunks of documents, without an embedding, a limited number per page', async () => {
  const { deps, index, inference, collectionId, add, record } = await openWorld()
  const lost = await add(paragraphs(35), 'a.txt')
  const cut = await add(paragraphs(3, 'cut'), 'b.txt')
  const before = await index.get(collectionId, [`${lost.replace('doc_', 'chunk_')}_g1_34`])
  await index.deleteDocument(collectionId, lost)
  await index.deleteDocument(collectionId, cut)
  await deps.blobs.deleteAll(`${cut}_g1_`)
  const paidBefore = inference.callers.length
  const { findings } = await verify(deps, { repair: true })
  expect(findings).toMatchObject([
    { documentId: lost, repaired: true, restored: true },
    { documentId: cut, repaired: true },
  ])
  expect(findings[1]).not.toHaveProperty('restored')
  expect(inference.callers).toHaveLength(paidBefore)
  expect(await record(lost)).toMatchObject({ status: 'ready', liveGeneration: 'g1', chunkCount: 35 })
  expect(await index.listGenerations(collectionId, '', 10)).toMatchObject([{ documentId: lost, chunks: 35, lastOrdinal: 34 }])
  expect(await index.get(collectionId, [`${lost.replace('doc_', 'chunk_')}_g1_34`])).toEqual(before)
  const search = { collectionId, query: 'matter34x1', limit: 10, mode: 'hybrid', filter: null } as const
  expect((await searchCollection(deps, context, search)).hits[0]?.document._id).toBe(lost)
})

it('requeues what a repair has failed on, and nothing else that has failed', async () => {
  const { deps, index, inference, collectionId, add, record } = await openWorld()
  const lost = await add(paragraphs(2))
  await add('%corrupt', 'b.txt')
  await index.deleteDocument(collectionId, lost)
  await deps.blobs.deleteAll(`${lost}_g1_`)
  await verify(deps, { repair: true })
  inference.beforeBatch = () => {
    throw new KisError('insufficient_quota', 'The wallet is empty.')
  }
  await ingest(deps, lost)
  expect((await record(lost)).status).toBe('failed')
  expect(shortly(await verify(deps))).toEqual([['missing', lost, null, null, 0]])
  inference.beforeBatch = () => {}
  await verify(deps, { repair: true })
  await ingest(deps, lost)
  expect((await verify(deps)).findings).toEqual([])
  expect((await record(lost)).liveGeneration).toBe('g3')
})

it('changes nothing of a document that has changed since the check', async () => {
  const { world, deps, index, collectionId, add, record } = await openWorld()
  const lost = await add(paragraphs(2))
  await index.deleteDocument(collectionId, lost)
  await deps.blobs.deleteAll(`${lost}_g1_`)
  const life = new Life()
  let before: DocumentRecord | undefined
  life.onCall = async (_, name) => {
    if (name !== 'documents.findOneAndUpdate' || before) return
    before = await record(lost)
    // Another repair was faster.
    await verify(deps, { repair: true })
  }
  const { findings } = await verify(depsOn(world, life), { repair: true })
  expect(findings).toMatchObject([{ kind: 'missing', documentId: lost, repaired: false }])
  expect((await record(lost)).generation).toBe(before!.generation + 1)
})

it('is for operators, accepts existing collections, and uses its own cursors', async () => {
  const { deps } = await openWorld()
  const refusal = (caller: Principal, more: { after?: string; collectionId?: string } = {}) =>
    verifyIndex(deps, createContext(caller), { repair: false, ...more }).then(() => 'none', errorCode)
  expect(await refusal({ ...principal, scopes: ['admin'] })).toBe('permission_denied')
  expect(await refusal(operator, { collectionId: 'col_none' })).toBe('not_found')
  for (const after of ['', 'x', Buffer.from('{"at":"index"}').toString('base64url'), Buffer.from('[]').toString('base64url')])
    expect(await refusal(operator, { after })).toBe('invalid_request')
})
