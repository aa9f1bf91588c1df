import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { addReady, attach, ingest, newCollection, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import {
  Crash,
  createContext,
  DIMENSIONS,
  depsOn,
  errorCode,
  type FakeInference,
  Life,
  type ManualClock,
  type MemoryBlobStore,
  PARAGRAPH_WORDS,
  paragraphs,
  principal,
  type World,
} from '../../../../test/support/knowledge.ts'
import { openSqliteDocumentStore } from '../../../common/adapters/sqlite/documents/document-store.ts'
import { claimJob, LEASE_MS } from '../../../common/documents/jobs.ts'
import { EmbeddingStopped, KisError } from '../../../common/errors.ts'
import { eventLogSource } from '../../../common/events/event-log.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { silentLog } from '../../../common/process/log.ts'
import { formatUsd } from '../../../common/usd.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import type { ReembeddingRecord } from '../../domain/records.ts'
import { ReembeddingQuoteFields } from '../../resolvers/reembeddings.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { deleteCollection, getCollection } from '../documents/collections.ts'
import { continueCollectionDeletion } from '../documents/delete-now.ts'
import { deleteDocument, getDocument } from '../documents/documents.ts'
import { ingestDocument } from '../documents/ingest-document.ts'
import { Postponed } from '../documents/lease-lost.ts'
import { updateDocument } from '../documents/update-document.ts'
import { evaluate } from '../evaluation/evaluate.ts'
import { findEvaluation, startEvaluation } from '../evaluation/evaluations.ts'
import { addGoldQuestions } from '../evaluation/gold-questions.ts'
import { toKnowledgeEvent } from '../events/knowledge-events.ts'
import { searchCollection } from '../search/search-collection.ts'
import { verifyIndex } from '../verify/verify-index.ts'
import { quoteReembedding } from './quote-reembedding.ts'
import { reembed } from './reembed.ts'
import { cancelReembedding, costOf, findReembedding, startReembedding } from './reembeddings.ts'

const context = createContext()
const operator = createContext({ ...principal, scopes: ['operator'] })
const { organizationId } = principal
const folder = temporaryFolder()
const index = await openTestIndex()

/** Time limit for some dozens of lives, each with its own library. */
const KILLS_TIMEOUT_MS = 120_000
/** Two batches. Another document takes one more batch. */
const CHUNKS = 20
/** Tokens of a chunk with the new model, whose special tokens take one. */
const TOKENS = PARAGRAPH_WORDS + 1

interface Library {
  readonly world: World & { readonly inference: FakeInference; readonly clock: ManualClock; readonly blobs: MemoryBlobStore }
  readonly deps: Deps
  readonly collectionId: string
  readonly ids: readonly string[]
}

async function newLibrary(more: Partial<World> = {}): Promise<Library> {
  const world = newWorld({ index, ...more }) as Library['world']
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const ids = [
    await addReady(deps, collectionId, 'long.txt', paragraphs(CHUNKS, 'harbour')),
    await addReady(deps, collectionId, 'short.txt', paragraphs(1, 'desert')),
  ]
  return { world, deps, collectionId, ids }
}

const asVersion = { externalId: 'v', onConflict: 'replace' } as const

function start(deps: Deps, collectionId: string, embeddingModel = 'embed-new'): Promise<ReembeddingRecord> {
  return startReembedding(deps, context, { collectionId, embeddingModel })
}

/** Runs one worker once. */
async function workOn(deps: Deps, id: string): Promise<void> {
  const leased = await claimJob(deps.store.reembeddings, deps.clock, id)
  if (leased) await reembed(deps, leased, new AbortController().signal)
}

async function search(deps: Deps, collectionId: string, query: string, filter: unknown = null) {
  const { hits } = await searchCollection(deps, context, { collectionId, query, limit: 50, mode: 'vector', filter })
  return hits.map(({ chunk, document }) => `${document.fileName} ${chunk.ordinal}`).sort()
}

const read = async ({ deps }: Library, id: string) => (await findReembedding(deps, context, id))!
const namesOf = async (library: Library) =>
  (await index.listCollections('', 1_000)).map(({ collectionId }) => collectionId).filter((name) => name.startsWith(library.collectionId))

/** Returns a function for the tokens charged since, and whether a hold is open. */
function moneySince({ inference }: Library['world']) {
  const before = inference.charged
  return () => ({
    charged: inference.charged - before,
    open: [...inference.holds.values()].filter(({ state, known }) => state === 'open' && known > 0).length,
  })
}

/** Expects all data of the new model, and none of the former one. */
async function expectSwapped(library: Library, id: string): Promise<void> {
  const { deps, collectionId } = library
  const reembedding = await read(library, id)
  expect(reembedding).toMatchObject({ status: 'completed', stage: null, error: null, hold: null, at: null })
  expect(reembedding.job).toBeUndefined()
  const collection = await getCollection(deps, organizationId, collectionId)
  expect(collection).toMatchObject({ embeddingModel: 'embed-new', dimensions: 2 * DIMENSIONS })
  expect(collection.reembedding).toBeUndefined()
  expect(await namesOf(library)).toEqual([indexNameOf(collection)])
  expect(await index.hasCollection(collectionId)).toBe(false)
  expect((await verifyIndex(deps, operator, { collectionId, repair: false })).findings).toEqual([])
}

/** Expects that the collection is unchanged. */
async function expectFormer(library: Library): Promise<void> {
  const { deps, collectionId } = library
  const collection = await getCollection(deps, organizationId, collectionId)
  expect(collection).toMatchObject({ embeddingModel: 'embed', dimensions: DIMENSIONS })
  expect([collection.indexName, collection.reembedding]).toEqual([undefined, undefined])
  expect(await namesOf(library)).toEqual([collectionId])
  expect([...library.world.blobs.keys.keys()].filter((key) => /_g\d+_[0-9a-f]{32}_/.test(key))).toEqual([])
  expect(await search(deps, collectionId, 'harbour0x1')).toHaveLength(CHUNKS + 1)
}

/** Returns the webhook data of one re-embedding. */
async function readEvents({ deps }: Library, id: string) {
  await deps.events.drain(organizationId)
  const source = eventLogSource(deps.events, toKnowledgeEvent)
  const end = (await source.ends([organizationId])).get(organizationId)!
  const read = await Promise.all(Array.from({ length: end }, (_, after) => source.read(organizationId, after)))
  const events = new Map(read.flatMap((page) => page.events.map((event) => [event.sequence, event])))
  return [...events.values()].filter(({ subject }) => subject === id).map(({ type, data }) => ({ type, data }))
}

describe('Re-embedding with another model', () => {
  it('costs what the quote says, once, and searches find the same chunks', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const found = await search(deps, collectionId, 'harbour0x1')
    const quote = await quoteReembedding(deps, context, { collectionId, embeddingModel: 'embed-new' })
    expect(quote).toMatchObject({ passages: CHUNKS + 1, tokens: (CHUNKS + 1) * TOKENS, isExact: true, isCovered: true })
    expect(quote.amount).toBe(BigInt(quote.tokens) * 1_000n)
    const money = moneySince(world)
    const vectors = (await readUsage(deps.store, organizationId)).vectors
    const { _id } = await start(deps, collectionId)
    await workOn(deps, _id)
    await expectSwapped(library, _id)
    expect(money()).toEqual({ charged: quote.tokens, open: 0 })
    const ended = await read(library, _id)
    expect([ended.tokens, costOf(ended), ended.done, ended.total]).toEqual([quote.tokens, quote.amount, CHUNKS + 1, CHUNKS + 1])
    expect(await search(deps, collectionId, 'harbour0x1')).toEqual(found)
    expect((await readUsage(deps.store, organizationId)).vectors).toBe(vectors)
    const models = { embedding_model: 'embed-new', former_model: 'embed' }
    const done = { status: 'completed', passages: CHUNKS + 1, tokens: quote.tokens, cost_usd: formatUsd(quote.amount), error_code: null }
    expect(await readEvents(library, _id)).toEqual([
      { type: 'reembedding.completed', data: { reembedding_id: _id, collection_id: collectionId, ...models, ...done } },
    ])

    // Only the new vectors are stored, so the repair of a lost index needs no embedding.
    const { batches } = world.inference
    const name = indexNameOf(await getCollection(deps, organizationId, collectionId))
    await index.dropCollection(name)
    await verifyIndex(deps, operator, { collectionId, repair: true })
    expect(await search(deps, collectionId, 'harbour0x1')).toEqual(found)
    expect(world.inference.batches).toBe(batches)

    // Re-embed with the former model again.
    const back = await start(deps, collectionId, 'embed')
    await workOn(deps, back._id)
    expect(await search(deps, collectionId, 'harbour0x1')).toEqual(found)
    expect(await getCollection(deps, organizationId, collectionId)).toMatchObject({ embeddingModel: 'embed', dimensions: DIMENSIONS })
  })

  it(
    'completes although its process dies at every other call',
    async () => {
      // A failing call also covers the case that the response of the previous call was lost, so some of each are
      // enough.
      for (const [effect, step] of [
        ['failed', 5],
        ['lost answer', 2],
      ] as const) {
        for (let call = 1; ; call += step) {
          const library = await newLibrary()
          const { deps, collectionId, world } = library
          const { _id } = await start(deps, collectionId)
          const money = moneySince(world)
          const life = new Life(call, effect)
          await workOn(depsOn(world, life), _id).catch((error) => {
            if (!(error instanceof Crash)) throw error
          })
          world.clock.ms += LEASE_MS + 1
          await workOn(deps, _id)
          const where = `after a death at call ${call} (${effect})`
          await expectSwapped(library, _id).catch((error) => {
            throw new Error(where, { cause: error })
          })
          expect(money(), where).toEqual({ charged: (CHUNKS + 1) * TOKENS, open: 0 })
          if (!life.isDead) break
        }
      }
    },
    KILLS_TIMEOUT_MS,
  )

  it('every search before, during and after finds each chunk once', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const found = await search(deps, collectionId, 'harbour0x1')
    const { _id } = await start(deps, collectionId)
    const life = new Life()
    let searches = 0
    life.onCall = async () => {
      searches++
      expect(await search(deps, collectionId, 'harbour0x1')).toEqual(found)
    }
    await workOn(depsOn(world, life), _id)
    expect(searches).toBeGreaterThan(40)
    await expectSwapped(library, _id)
  })

  it('preserves a search that began with the former model', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const found = await search(deps, collectionId, 'harbour0x1')
    const { _id } = await start(deps, collectionId)
    const life = new Life()
    let isFirst = true
    life.onCall = async (_call, name) => {
      if (name !== 'index.search' || !isFirst) return
      isFirst = false
      await workOn(deps, _id)
    }
    expect(await search(depsOn(world, life), collectionId, 'harbour0x1')).toEqual(found)
    expect(isFirst).toBe(false)
    await expectSwapped(library, _id)
  })

  it('includes documents that were added, replaced, renamed and deleted meanwhile', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world, ids } = library
    const replaced = await addReady(deps, collectionId, 'versions.txt', paragraphs(2, 'before'), asVersion)
    const { _id } = await start(deps, collectionId)
    const life = new Life()
    let batch = 0
    life.onCall = async (_call, name) => {
      if (name !== 'inference.embedPassages' || ++batch !== 3) return
      await addReady(deps, collectionId, 'new.txt', paragraphs(1, 'mountain'))
      await attach(deps, collectionId, 'versions.txt', paragraphs(1, 'after'), asVersion)
      await ingest(deps, replaced)
      await updateDocument(deps, context, { id: ids[0]!, name: 'renamed.txt', metadata: { year: 2026 } })
      await deleteDocument(deps, context, ids[1]!)
    }
    await workOn(depsOn(world, life), _id)
    await expectSwapped(library, _id)
    const all = await search(deps, collectionId, 'mountain0x1')
    expect(all.filter((name) => !name.startsWith('renamed'))).toEqual(['new.txt 0', 'versions.txt 0'])
    expect(all).toHaveLength(CHUNKS + 2)
    expect(await search(deps, collectionId, 'harbour0x1', { 'metadata.year': 2026 })).toHaveLength(CHUNKS)
  })

  it('runs after documents that began with the former model, and before those that had not begun', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const { id: running } = await attach(deps, collectionId, 'running.txt', paragraphs(1, 'running'))
    const { id: waiting } = await attach(deps, collectionId, 'waiting.txt', paragraphs(1, 'waiting'))
    const leased = (await claimJob(deps.store.documents, deps.clock, running))!
    const { _id } = await start(deps, collectionId)
    let outcome: unknown
    world.clock.sleep = async (ms) => {
      world.clock.ms += ms
      if (outcome !== undefined) return
      outcome = await ingest(deps, waiting).then(
        () => 'ingested',
        (error) => error,
      )
      await deps.store.documents.findOneAndUpdate({ _id: waiting }, { $set: { 'job.lease': null } })
      // A worker that has read the collection before may continue.
      const { closedBy } = (await deps.store.collections.findOne({ _id: collectionId }))!.reembedding!
      await deps.store.collections.findOneAndUpdate({ _id: collectionId }, { $unset: { 'reembedding.closedBy': '' } })
      const life = new Life()
      life.onCall = (call) =>
        call === 3 && deps.store.collections.findOneAndUpdate({ _id: collectionId }, { $set: { 'reembedding.closedBy': closedBy! } })
      await ingestDocument(depsOn(world, life), leased, new AbortController().signal)
    }
    await workOn(deps, _id)
    expect(outcome).toBeInstanceOf(Postponed)
    await expectSwapped(library, _id)
    expect(await search(deps, collectionId, 'running0x1')).toContain('running.txt 0')
    world.clock.ms += LEASE_MS + 1
    await ingest(deps, waiting)
    expect(await search(deps, collectionId, 'waiting0x1')).toContain('waiting.txt 0')
    expect((await verifyIndex(deps, operator, { collectionId, repair: false })).findings).toEqual([])
  })

  it('restarts an interrupted ingestion with the new model', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const { id } = await attach(deps, collectionId, 'interrupted.txt', paragraphs(CHUNKS, 'interrupted'))
    world.inference.beforeBatch = (batch) => {
      if (batch === 5) throw new KisError('engine_unavailable', 'The engine does not answer.')
    }
    await expect(ingest(deps, id)).rejects.toMatchObject({ code: 'engine_unavailable' })
    await deps.store.documents.findOneAndUpdate({ _id: id }, { $set: { 'job.lease': null } })
    const { _id } = await start(deps, collectionId)
    await workOn(deps, _id)
    const money = moneySince(world)
    world.clock.ms += LEASE_MS + 1
    await ingest(deps, id)
    // The tokens embedded with the former model are charged, and all tokens with the new one.
    expect(money()).toEqual({ charged: 16 * (PARAGRAPH_WORDS + 2) + CHUNKS * TOKENS, open: 0 })
    expect(await search(deps, collectionId, 'interrupted0x1')).toHaveLength(2 * CHUNKS + 1)
    expect((await verifyIndex(deps, operator, { collectionId, repair: false })).findings).toEqual([])
  })

  it('works on a real store', async () => {
    await using documents = await openSqliteDocumentStore({ file: join(folder, 'documents.sqlite'), log: silentLog })
    const library = await newLibrary({ documents })
    const { _id } = await start(library.deps, library.collectionId)
    expect((await verifyIndex(library.deps, operator, { collectionId: library.collectionId, repair: false })).findings).toEqual([])
    await workOn(library.deps, _id)
    await expectSwapped(library, _id)
    await deleteCollection(library.deps, context, library.collectionId)
    expect(await namesOf(library)).toEqual([])
    expect(await findReembedding(library.deps, context, _id)).toBeNull()
  })
})

describe('Re-embedding job', () => {
  it('leaves nothing when cancelled, and charges what was embedded', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const { _id } = await start(deps, collectionId)
    const money = moneySince(world)
    world.inference.beforeBatch = async () => {
      expect(await cancelReembedding(deps, context, _id)).toMatchObject({ status: 'cancelling' })
      await expect(start(deps, collectionId)).rejects.toMatchObject({ code: 'in_use' })
    }
    await workOn(deps, _id)
    const ended = await read(library, _id)
    expect(ended).toMatchObject({ status: 'cancelled', stage: null, error: null, done: 16, tokens: 16 * TOKENS })
    expect(money()).toEqual({ charged: 16 * TOKENS, open: 0 })
    expect(await readEvents(library, _id)).toMatchObject([
      { type: 'reembedding.cancelled', data: { status: 'cancelled', passages: 16, tokens: 16 * TOKENS, error_code: null } },
    ])
    await expectFormer(library)
    // The re-embedding ends once, and the next one may start.
    expect(await cancelReembedding(deps, context, _id)).toMatchObject({ status: 'cancelled' })
    world.inference.beforeBatch = () => {}
    const next = await start(deps, collectionId)
    await workOn(deps, next._id)
    await expectSwapped(library, next._id)
  })

  it(
    'ends once when it is cancelled while its process dies at any call',
    async () => {
      for (let call = 1; ; call++) {
        const library = await newLibrary()
        const { deps, collectionId, world } = library
        const { _id } = await start(deps, collectionId)
        const money = moneySince(world)
        world.inference.beforeBatch = (batch) => void (batch === 5 && cancelReembedding(deps, context, _id))
        const life = new Life(call, 'lost answer')
        await workOn(depsOn(world, life), _id).catch((error) => {
          if (!(error instanceof Crash)) throw error
        })
        await cancelReembedding(deps, context, _id)
        world.clock.ms += LEASE_MS + 1
        await workOn(deps, _id)
        const { tokens, status } = await read(library, _id)
        expect(status).toBe('cancelled')
        expect(money(), `after a death at call ${call}`).toEqual({ charged: tokens, open: 0 })
        await expectFormer(library)
        if (!life.isDead) break
      }
    },
    KILLS_TIMEOUT_MS,
  )

  it.each([
    { name: 'the model leaves the allowlist', now: { modelAllowlist: ['embed'] }, code: 'model_not_found' },
    { name: 'the key expires', now: { isEnded: true }, code: 'invalid_api_key' },
    { name: 'the key loses its scope', now: { scopes: ['knowledge:read'] }, code: 'permission_denied' },
  ] as const)('ends with the reason when $name, and searches continue', async ({ now, code }) => {
    let caller: Principal = principal
    const library = await newLibrary({ accounts: { findPrincipal: async () => caller } })
    const { deps, collectionId, world } = library
    const { _id } = await start(deps, collectionId)
    const money = moneySince(world)
    world.inference.beforeBatch = () => {
      caller = { ...principal, ...now }
    }
    await workOn(deps, _id)
    expect(await read(library, _id)).toMatchObject({ status: 'failed', error: { code } })
    expect(money()).toEqual({ charged: 16 * TOKENS, open: 0 })
    await expectFormer(library)
  })

  it('is refused if the wallet does not cover it, and ends if a hold is refused later', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    world.inference.balance = 100
    await expect(start(deps, collectionId)).rejects.toMatchObject({ code: 'insufficient_quota' })
    world.inference.balance = 1_000_000
    const { _id } = await start(deps, collectionId)
    world.inference.balance = 100
    await workOn(deps, _id)
    expect(await read(library, _id)).toMatchObject({ status: 'failed', error: { code: 'insufficient_quota' }, done: 0 })
    expect(await readEvents(library, _id)).toMatchObject([
      { type: 'reembedding.failed', data: { status: 'failed', passages: 0, cost_usd: '0', error_code: 'insufficient_quota' } },
    ])
    await expectFormer(library)
  })

  it('continues with another hold when its own has expired', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const { _id } = await start(deps, collectionId)
    const money = moneySince(world)
    let isFirst = true
    world.inference.beforeBatch = () => {
      if (!isFirst) return
      isFirst = false
      world.inference.expireHolds()
    }
    await workOn(deps, _id)
    await expectSwapped(library, _id)
    // Billing knew nothing of the first batch when the hold expired.
    expect(money()).toEqual({ charged: (CHUNKS + 1 - 16) * TOKENS, open: 0 })
  })

  it('ends with its collection', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const { _id } = await start(deps, collectionId)
    const money = moneySince(world)
    const life = new Life()
    let batches = 0
    life.onCall = async (_call, name) => {
      if (name === 'inference.embedPassages' && ++batches === 2) await deleteCollection(deps, context, collectionId)
    }
    await workOn(depsOn(world, life), _id)
    expect(money()).toEqual({ charged: (await read(library, _id)).tokens, open: 0 })
    world.clock.ms += LEASE_MS + 1
    const leased = await claimJob(deps.store.collections, deps.clock, collectionId)
    await continueCollectionDeletion(deps, leased!)
    expect(await findReembedding(deps, context, _id)).toBeNull()
    expect(await namesOf(library)).toEqual([])
    expect([...world.blobs.keys.keys()].filter((key) => key.startsWith('doc_'))).toEqual([])
  })

  it('is limited to one per organization, by a key that may write', async () => {
    const library = await newLibrary()
    const { deps, collectionId } = library
    const attempt = (embeddingModel: string, caller = principal) =>
      startReembedding(deps, createContext(caller), { collectionId, embeddingModel }).then(() => 'started', errorCode)
    expect(await attempt('none')).toBe('model_not_found')
    expect(await attempt('embed-new', { ...principal, modelAllowlist: ['embed'] })).toBe('model_not_found')
    expect(await attempt('embed-new', { ...principal, scopes: ['knowledge:read'] })).toBe('permission_denied')
    expect(await attempt('embed-new', { ...principal, organizationId: 'org_2' })).toBe('not_found')
    expect(await attempt('embed-new')).toBe('started')
    expect(await attempt('embed-new')).toBe('in_use')
  })

  it('ends an evaluation that it overtakes, with the reason', async () => {
    const library = await newLibrary()
    const { deps, collectionId } = library
    await addGoldQuestions(deps, context, { collectionId, questions: [{ query: 'harbour0x1', expected: [{ fileName: 'long.txt' }] }] })
    const evaluation = await startEvaluation(deps, context, { collectionId })
    const { _id } = await start(deps, collectionId)
    await workOn(deps, _id)
    const leased = await claimJob(deps.store.evaluations, deps.clock, evaluation._id)
    await evaluate(deps, leased!, new AbortController().signal)
    expect(await findEvaluation(deps, context, evaluation._id)).toMatchObject({ status: 'failed', error: { code: 'in_use' } })
  })

  it('quotes and holds more tokens than an `Int` has', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const holding = vi.spyOn(world.inference, 'quoteEmbedding')
    await deps.store.usage.findOneAndUpdate({ _id: organizationId }, { $set: { [`chunks.${collectionId}`]: 100_000_000 } })
    const quote = await quoteReembedding(deps, context, { collectionId, embeddingModel: 'embed-new' })
    expect(quote.tokens).toBe(Math.ceil(100_000_000 * TOKENS * 1.1))
    expect(quote.amount).toBe(BigInt(quote.tokens) * 1_000n)
    expect(holding).toHaveBeenCalledWith('embed-new', 2 ** 31 - 1, expect.anything())
    expect(ReembeddingQuoteFields.tokens!(quote, {}, undefined as never, undefined as never)).toBe(2 ** 31 - 1)
  })

  it('costs what was sent of a batch that a deadline of the service has ended', async () => {
    const library = await newLibrary()
    const { deps, collectionId, world } = library
    const { _id } = await start(deps, collectionId)
    const money = moneySince(world)
    let batches = 0
    world.inference.beforeBatch = () => {
      if (++batches === 2) throw new EmbeddingStopped(new KisError('engine_timeout', 'late'), 7)
    }
    for (let round = 0; round < 2; round++) {
      await workOn(deps, _id).catch(() => undefined)
      world.clock.ms += LEASE_MS + 1
    }
    await expectSwapped(library, _id)
    expect(money().charged).toBe((CHUNKS + 1) * TOKENS + 7)
  })

  it('estimates the quote of a large collection from a sample', async () => {
    const library = await newLibrary()
    const { deps, collectionId, ids } = library
    await deps.store.usage.findOneAndUpdate({ _id: organizationId }, { $set: { [`chunks.${collectionId}`]: 100_000 } })
    const quote = await quoteReembedding(deps, context, { collectionId, embeddingModel: 'embed-new' })
    expect(quote).toMatchObject({ passages: 100_000, isExact: false, isCovered: false })
    expect(quote.tokens).toBe(Math.ceil(100_000 * TOKENS * 1.1))
    expect((await getDocument(deps, organizationId, ids[0]!)).status).toBe('ready')
  })
})
