import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { attach, ingest, newCollection, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import {
  Crash,
  createContext,
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
import { silentLog } from '../../../common/process/log.ts'
import { openDocumentParser } from '../../adapters/parser/open-document-parser.ts'
import { openSqliteBlobStore } from '../../adapters/sqlite/blob-store.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import { readChunkGroup, textKey } from '../chunk-index/stored-chunks.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { deleteFile } from '../files/files.ts'
import { searchCollection } from '../search/search-collection.ts'
import { deleteCollection } from './collections.ts'
import { deleteCollectionNow, finishDocumentDeletion } from './delete-now.ts'
import { deleteDocument, getDocument, retryDocument } from './documents.ts'
import { ingestDocument } from './ingest-document.ts'

const context = createContext()
const folder = temporaryFolder()
const index = await openTestIndex()

/** Two batches. */
const CHUNKS = 20
const TEXT = paragraphs(CHUNKS)
const CHUNK_TOKENS = PARAGRAPH_WORDS + 2
const BATCH_TOKENS = 16 * CHUNK_TOKENS

interface IngestWorld extends World {
  readonly blobs: MemoryBlobStore
  readonly inference: FakeInference
  readonly clock: ManualClock
}

interface Attached {
  readonly world: IngestWorld
  readonly deps: Deps
  readonly collectionId: string
  readonly fileId: string
  readonly id: string
}

async function attached(text = TEXT, more: Partial<World> = {}): Promise<Attached> {
  const world = newWorld({ index, ...more }) as IngestWorld
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const { id, fileId } = await attach(deps, collectionId, 'a.txt', text)
  return { world, deps, collectionId, fileId, id }
}

function afterLease({ world }: Attached): void {
  world.clock.ms += LEASE_MS + 1
}

const usage = ({ deps }: Attached) => readUsage(deps.store, principal.organizationId)

async function expectReady(one: Attached, chunks = CHUNKS): Promise<void> {
  const { world, deps, id, collectionId } = one
  const document = await getDocument(deps, principal.organizationId, id)
  expect(document).toMatchObject({ status: 'ready', stage: null, progress: null, error: null, chunkCount: chunks, embedding: null })
  expect(document.job).toBeUndefined()
  const ordinals = await index.ordinals(collectionId, id, document.liveGeneration!)
  expect(ordinals).toEqual(Array.from({ length: chunks }, (_, i) => i))
  expect(await usage(one)).toMatchObject({ vectors: chunks, chunks: { [collectionId]: chunks }, marks: {} })
  expect([...world.blobs.keys.keys()]).toContain(textKey(id, document.liveGeneration!))
}

/** Expects that nothing is left of the document except, perhaps, its record. */
async function expectNothingStored(one: Attached): Promise<void> {
  expect([...one.world.blobs.keys.keys()].filter((key) => key.startsWith(one.id))).toEqual([])
  await expectNothingFound(one)
}

/** Expects that only the last read text of the failed document is left, without entries in searches and counts. */
async function expectOnlyTextsStored(one: Attached): Promise<void> {
  const { world, id } = one
  const { generation, readSoFar } = await getDocument(one.deps, principal.organizationId, id)
  const last = textKey(id, `g${generation}`)
  expect([...world.blobs.keys.keys()].filter((key) => key.startsWith(id) && key !== last && !key.startsWith(`${last}_`))).toEqual([])
  for (let group = 0; group * 16 < (readSoFar?.chunks ?? 0); group++) {
    const storedGroup = await readChunkGroup(world, { documentId: id, generation: `g${generation}`, collectionId: one.collectionId }, group)
    expect(storedGroup!.chunks.every(({ vector, tokenStates }) => vector.length === 0 && tokenStates === null)).toBe(true)
  }
  await expectNothingFound(one)
}

async function expectNothingFound(one: Attached): Promise<void> {
  const { deps, id, collectionId } = one
  for (const generation of ['g1', 'g2', 'g3']) expect(await index.ordinals(collectionId, id, generation)).toEqual([])
  const { vectors, chunks, marks } = await readUsage(deps.store, principal.organizationId)
  expect({ vectors, chunks: chunks[collectionId] ?? 0, marks }).toEqual({ vectors: 0, chunks: 0, marks: {} })
}

/** Runs `check` with a death at each call, until a life completes. */
async function atEveryCall(check: (life: Life) => Promise<void>): Promise<number> {
  for (const effect of ['failed', 'lost answer'] as const) {
    for (let call = 1; ; call++) {
      const life = new Life(call, effect)
      await check(life).catch((error) => {
        throw new Error(`after a death at call ${call} (${effect})`, { cause: error })
      })
      if (!life.isDead) {
        if (effect === 'lost answer') return call
        break
      }
    }
  }
  return 0
}

const survived = (error: unknown) => {
  if (!(error instanceof Crash)) throw error
}

it('creates, counts and charges every chunk once, at whichever call a worker dies, except for the batch in progress', async () => {
  await atEveryCall(async (life) => {
    const one = await attached()
    await ingest(depsOn(one.world, life), one.id).catch(survived)
    afterLease(one)
    await ingest(one.deps, one.id)
    await expectReady(one)
    const { inference } = one.world
    inference.expireHolds()
    expect(inference.charged).toBeLessThanOrEqual(CHUNKS * CHUNK_TOKENS)
    // A batch whose end was not recorded is not charged.
    expect(inference.charged).toBeGreaterThanOrEqual(CHUNKS * CHUNK_TOKENS - (life.isDead ? BATCH_TOKENS : 0))
    expect(Math.max(...inference.embedded.values())).toBeLessThanOrEqual(2)
    expect([...inference.embedded.values()].filter((times) => times > 1).length).toBeLessThanOrEqual(16)
  })
}, 120_000)

it('places a new hold for the rest when the first expired, and continues where it was', async () => {
  const one = await attached()
  const life = new Life()
  life.onCall = (_call, name) => {
    if (name === 'index.put' && one.world.inference.batches === 1) one.world.inference.expireHolds()
  }
  await ingest(depsOn(one.world, life), one.id)
  await expectReady(one)
  expect(one.world.inference.holds.size).toBe(2)
  expect([...one.world.inference.embedded.values()].every((times) => times === 1)).toBe(true)
})

describe('Batch past the deadline of the service', () => {
  const late = () => new EmbeddingStopped(new KisError('engine_timeout', 'The engine was late.'), 10)

  it('costs what was sent if the document fails, and nothing of its other batches', async () => {
    const one = await attached()
    one.world.inference.beforeBatch = (batch) => {
      if (batch === 2) throw late()
      if (batch === 3) throw new KisError('invalid_request', 'No more.')
    }
    for (let start = 0; start < 2; start++) await ingest(one.deps, one.id).catch(() => afterLease(one))
    expect(await getDocument(one.deps, principal.organizationId, one.id)).toMatchObject({ status: 'failed' })
    expect(one.world.inference.charged).toBe(10)
  })

  it('counts toward the hold of the document', async () => {
    const one = await attached()
    one.world.inference.beforeBatch = (batch) => {
      if (batch === 2) throw late()
    }
    for (let start = 0; start < 2; start++) await ingest(one.deps, one.id).catch(() => afterLease(one))
    await expectReady(one)
    expect(one.world.inference.charged).toBe(CHUNKS * CHUNK_TOKENS + 10)
  })
})

it('opens no further holds when each has ended at once', async () => {
  const one = await attached()
  one.world.inference.embedPassages = async () => {
    throw new KisError('not_found', 'No hold.')
  }
  await ingest(one.deps, one.id)
  expect(one.world.inference.holds.size).toBe(1)
  expect(await getDocument(one.deps, principal.organizationId, one.id)).toMatchObject({
    status: 'failed',
    error: { code: 'embedding_failed' },
  })
})

it('a worker that lost its lease changes nothing, at any point', async () => {
  for (let call = 1, passed = false; !passed; call++) {
    const one = await attached()
    passed = true
    const life = new Life()
    life.onCall = async (at) => {
      if (at !== call) return
      passed = false
      afterLease(one)
      await ingest(one.deps, one.id)
      await expectReady(one)
    }
    await ingest(depsOn(one.world, life), one.id).catch(() => undefined)
    await expectReady(one)
  }
}, 120_000)

it('a worker that lost its lease and reaches a verdict takes nothing from the current worker', async () => {
  for (const failing of ['parser.parse', 'inference.embedPassages', 'index.put']) {
    const one = await attached()
    const life = new Life()
    life.onCall = async (_call, name) => {
      if (name !== failing) return
      afterLease(one)
      await ingest(one.deps, one.id)
      throw new KisError('invalid_request', 'A late verdict.')
    }
    await ingest(depsOn(one.world, life), one.id).catch(() => undefined)
    await expectReady(one)
  }
})

it('a deletion at any moment of the ingestion leaves nothing', async () => {
  for (let call = 1, passed = false; !passed; call++) {
    const one = await attached()
    passed = true
    const life = new Life()
    life.onCall = async (at) => {
      if (at !== call) return
      passed = false
      await deleteDocument(one.deps, context, one.id)
    }
    await ingest(depsOn(one.world, life), one.id).catch(() => undefined)
    if (passed) await deleteDocument(one.deps, context, one.id)
    await expectNothingStored(one)
    expect(await one.deps.store.documents.findOne({ _id: one.id })).toBeNull()
    await deleteFile(one.deps, context, one.fileId)
    expect(one.world.blobs.keys.size).toBe(0)
  }
}, 120_000)

it('a deletion of the collection at any moment of the ingestion leaves nothing, nor a count below zero', async () => {
  for (let call = 1, passed = false; !passed; call += 3) {
    const one = await attached()
    passed = true
    const life = new Life()
    life.onCall = async (at) => {
      if (at !== call) return
      passed = false
      await deleteCollection(one.deps, context, one.collectionId)
    }
    await ingest(depsOn(one.world, life), one.id).catch(() => undefined)
    if (passed) await deleteCollection(one.deps, context, one.collectionId)
    expect(await one.deps.store.documents.findOne({ _id: one.id })).toBeNull()
    expect(await one.deps.store.collections.findOne({ _id: one.collectionId })).toBeNull()
    const { vectors, chunks, marks } = await usage(one)
    expect({ vectors, chunks: chunks[one.collectionId] ?? 0, marks }).toEqual({ vectors: 0, chunks: 0, marks: {} })
    await deleteFile(one.deps, context, one.fileId)
    expect(one.world.blobs.keys.size).toBe(0)
  }
}, 120_000)

it('a deletion that crashes at any call is finished by a worker', async () => {
  await atEveryCall(async (life) => {
    const one = await attached(paragraphs(2))
    await ingest(one.deps, one.id)
    await deleteCollection(depsOn(one.world, life), context, one.collectionId).catch(survived)
    // A deletion that did not start is requested again.
    await deleteCollection(one.deps, context, one.collectionId).catch((error) => expect(errorCode(error)).toBe('not_found'))
    for (let attempt = 0; attempt < 3; attempt++) {
      afterLease(one)
      await deleteCollectionNow(one.deps, one.collectionId)
      const leased = await claimJob(one.deps.store.documents, one.world.clock, one.id)
      if (leased) await finishDocumentDeletion(one.deps, leased)
    }
    expect(await one.deps.store.documents.findOne({ _id: one.id })).toBeNull()
    expect(await one.deps.store.collections.findOne({ _id: one.collectionId })).toBeNull()
    expect(await usage(one)).toMatchObject({ vectors: 0, chunks: {}, marks: {} })
    await deleteFile(one.deps, context, one.fileId)
    expect(one.world.blobs.keys.size).toBe(0)
  })
}, 120_000)

describe('Ingestion verdict', () => {
  const records: Record<string, { readonly text?: string; readonly set?: (one: Attached) => void; readonly caller?: typeof principal }> = {
    corrupt: { text: '%corrupt' },
    no_text: { text: '   ' },
    insufficient_quota: {
      set: ({ world }) => {
        world.inference.beforeBatch = (batch) => {
          if (batch === 2) throw new KisError('insufficient_quota', 'The wallet is empty.')
        }
      },
    },
    model_not_found: { caller: { ...principal, modelAllowlist: [] } },
    storage_quota_exceeded: { caller: { ...principal, plan: { ...principal.plan, vectors: CHUNKS - 1 } } },
  }
  for (const [code, { text, set, caller }] of Object.entries(records)) {
    it(`${code} stores, holds and charges nothing, at whichever call its worker dies`, async () => {
      await atEveryCall(async (life) => {
        const one = await attached(text, { accounts: { findPrincipal: async () => caller ?? principal } })
        set?.(one)
        await ingest(depsOn(one.world, life), one.id).catch(survived)
        afterLease(one)
        set?.(one)
        one.world.inference.batches = 0
        await ingest(one.deps, one.id)
        const document = await getDocument(one.deps, principal.organizationId, one.id)
        // A batch that was embedded before the crash reduces the work, so the engine's second batch may never be
        // requested.
        if (code === 'insufficient_quota' && document.status === 'ready') return
        expect(document).toMatchObject({ status: 'failed', error: { code }, chunkCount: 0, liveGeneration: null, embedding: null })
        await expectOnlyTextsStored(one)
        if (!life.isDead) {
          expect(one.world.inference.charged).toBe(0)
          expect([...one.world.inference.holds.values()].every(({ state }) => state === 'settled')).toBe(true)
        }
      })
    }, 120_000)
  }
})

it('a document that kills worker after worker is poison, at any stage', async () => {
  for (const fatal of ['parser.parse', 'index.ordinals', 'inference.embedPassages', 'bytes.put']) {
    const one = await attached()
    let starts = 0
    for (; starts < 10; starts++) {
      const life = new Life()
      life.onCall = (_call, name) => {
        if (name === fatal) throw new Crash(name)
      }
      const deps = depsOn(one.world, life)
      // A process that dies records nothing.
      await ingest(deps, one.id).catch(survived)
      afterLease(one)
      if ((await getDocument(one.deps, principal.organizationId, one.id)).status === 'failed') break
    }
    expect(await getDocument(one.deps, principal.organizationId, one.id)).toMatchObject({ error: { code: 'poison' } })
    // In addition to the starts before the first reading.
    expect(starts).toBeGreaterThanOrEqual(5)
    expect(starts).toBeLessThanOrEqual(6)
    await expectOnlyTextsStored(one)
  }
})

it('deaths with progress between them are not poison', async () => {
  const one = await attached(paragraphs(16 * 5))
  for (let death = 0; death < 4; death++) {
    const life = new Life()
    let puts = 0
    life.onCall = (_call, name) => {
      if (name === 'index.put' && ++puts === 2) throw new Crash(name)
    }
    await ingest(depsOn(one.world, life), one.id).catch(survived)
    afterLease(one)
  }
  await ingest(one.deps, one.id)
  await expectReady(one, 80)
})

it('a failed document can be retried, by two concurrent calls, and is then whole', async () => {
  const one = await attached()
  one.world.inference.beforeBatch = (batch) => {
    if (batch === 2) throw new KisError('insufficient_quota', 'The wallet is empty.')
  }
  await ingest(one.deps, one.id)
  expect((await getDocument(one.deps, principal.organizationId, one.id)).status).toBe('failed')
  one.world.inference.beforeBatch = () => {}
  const retried = await Promise.all([retryDocument(one.deps, context, one.id), retryDocument(one.deps, context, one.id)])
  expect(retried.map(({ generation, status }) => [generation, status])).toEqual([
    [2, 'queued'],
    [2, 'queued'],
  ])
  await ingest(one.deps, one.id)
  await expectReady(one)
  expect(await index.ordinals(one.collectionId, one.id, 'g1')).toEqual([])
})

it('a document whose collection or file was deleted while it was recorded is deleted automatically', async () => {
  for (const vanished of ['collections', 'files'] as const) {
    const one = await attached()
    const { store } = one.deps
    if (vanished === 'collections') await store.collections.findOneAndDelete({ _id: one.collectionId })
    else await store.files.findOneAndDelete({ _id: one.fileId })
    await ingest(one.deps, one.id).catch(() => undefined)
    expect(await store.documents.findOne({ _id: one.id })).toBeNull()
    await expectNothingStored(one)
  }
})

it('an error caused by an abort is no verdict', async () => {
  const one = await attached()
  const stopping = new AbortController()
  one.world.inference.beforeBatch = () => {
    stopping.abort(new Error('the service stops'))
    throw new KisError('invalid_request', 'The call was cut off.')
  }
  const leased = await claimJob(one.deps.store.documents, one.world.clock, one.id)
  await expect(ingestDocument(one.deps, leased as DocumentRecord, stopping.signal)).rejects.toThrow()
  one.world.inference.beforeBatch = () => {}
  afterLease(one)
  await ingest(one.deps, one.id)
  await expectReady(one)
})

it('works with the embedded stores and the real parser, and is found', async () => {
  await using stack = new AsyncDisposableStack()
  const documents = stack.use(await openSqliteDocumentStore({ file: join(folder, 'documents.sqlite'), log: silentLog }))
  const blobs = stack.use(await openSqliteBlobStore({ file: join(folder, 'blobs.sqlite'), log: silentLog }))
  const parser = stack.use(await openDocumentParser({ log: silentLog }))
  const one = await attached(`# Harbours\n\nThe harbour of Sur was rebuilt.\n\n# Kilns\n\n${paragraphs(3, 'kiln')}`, {
    documents,
    blobs,
    parser,
  } as never)
  await ingest(one.deps, one.id)
  const document = await getDocument(one.deps, principal.organizationId, one.id)
  expect(document).toMatchObject({ status: 'ready', language: 'en', attempts: 1 })
  const search = { collectionId: one.collectionId, query: 'harbour of Sur', limit: 3, mode: 'lexical' as const, filter: null }
  const { hits } = await searchCollection(one.deps, context, search)
  expect(hits[0]!.chunk.text).toContain('harbour of Sur')
}, 60_000)
