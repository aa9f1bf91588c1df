import { expect, it } from 'vitest'
import { newWorld, openTestIndex, startWork } from '../../../../test/support/data/knowledge-library.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { base64, createContext, depsOn, Life, paragraphs, plainParser, principal } from '../../../../test/support/knowledge.ts'
import { FairJobs } from '../../../common/documents/fair-jobs.ts'
import { claimJob, LEASE_MS, releaseAllLeases, renewLease } from '../../../common/documents/jobs.ts'
import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import type { DocumentParser } from '../../ports/document-parser.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { createCollection, deleteCollection } from '../documents/collections.ts'
import { createDocument, getDocument } from '../documents/documents.ts'
import { eraseOrganization } from '../erasure/erase-organization.ts'
import { uploadFile } from '../files/files.ts'
import { findReembedding, startReembedding } from '../reembedding/reembeddings.ts'
import { createUpload } from '../uploads/uploads.ts'

const context = createContext()
const index = await openTestIndex()

const parts = { index, clock: systemClock }

async function attach(deps: Deps, count: number) {
  const collection = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    const file = await uploadFile(deps, context, { name: `${i}.txt`, contentBase64: base64(paragraphs(1, `about${i}n`)) })
    ids.push((await createDocument(deps, context, { collectionId: collection._id, fileId: file._id })).document._id)
  }
  return { collectionId: collection._id, ids }
}

const engineDown = () => new KisError('engine_unavailable', 'The engine does not answer.')
const findDocument = (deps: Deps, id: string) => getDocument(deps, principal.organizationId, id)
const isSettled = async (deps: Deps, ids: readonly string[]) =>
  (await Promise.all(ids.map((id) => findDocument(deps, id)))).every(({ status }) => status === 'ready' || status === 'failed')

it('a re-embedding waits for its engine, reports why, and resumes', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { collectionId, ids } = await attach(deps, 2)
  await using _workers = startWork(deps)
  await eventually(() => isSettled(deps, ids))
  // More outages than the limit of retries.
  let downs = 8
  let said: unknown
  world.inference.beforeBatch = async () => {
    if (downs-- > 0) throw engineDown()
    said ??= (await findReembedding(deps, context, _id))?.error
  }
  const { _id } = await startReembedding(deps, context, { collectionId, embeddingModel: 'embed-new' })
  await eventually(async () => (await findReembedding(deps, context, _id))?.status === 'completed')
  expect(said).toEqual({ code: 'engine_unavailable', message: 'The engine does not answer.' })
  expect(await findReembedding(deps, context, _id)).toMatchObject({ error: null, hold: null, done: 2 })
})

it('two processes run each job once', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { ids } = await attach(deps, 20)
  {
    await using _first = startWork(depsOn(world))
    await using _second = startWork(depsOn(world))
    await eventually(() => isSettled(deps, ids))
  }
  for (const id of ids) expect(await findDocument(deps, id)).toMatchObject({ status: 'ready', attempts: 1 })
  expect([...world.inference.embedded.values()]).toEqual(ids.map(() => 1))
  expect((await readUsage(deps.store, principal.organizationId)).vectors).toBe(20)
}, 60_000)

it('starts the document of another organization at once, behind any number of long ones', async () => {
  const first = Promise.withResolvers<void>()
  const parser: DocumentParser = {
    ...plainParser,
    async parse(bytes, name, signal) {
      if (
        !Buffer.from(bytes as Uint8Array)
          .toString()
          .includes('another')
      )
        await first.promise
      return plainParser.parse(bytes, name, signal)
    },
  }
  const accounts = { findPrincipal: async (organizationId: string, apiKeyId: string) => ({ ...principal, organizationId, apiKeyId }) }
  const deps = depsOn({ ...newWorld(parts), parser, accounts })
  const { ids } = await attach(deps, 12)
  const other = createContext({ ...principal, organizationId: 'org_2', apiKeyId: 'key_2' })
  const collection = await createCollection(deps, other, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const file = await uploadFile(deps, other, { name: 'a.txt', contentBase64: base64(paragraphs(1, 'another')) })
  const { document } = await createDocument(deps, other, { collectionId: collection._id, fileId: file._id })
  await using _process = startWork(deps)
  try {
    await eventually(async () => (await getDocument(deps, 'org_2', document._id)).status === 'ready')
    const statuses = await Promise.all(ids.map(async (id) => (await findDocument(deps, id)).status))
    expect(statuses.filter((status) => status === 'processing')).toHaveLength(2)
  } finally {
    first.resolve()
  }
  await eventually(() => isSettled(deps, ids))
}, 60_000)

it('releases a lease when it stops, and the next process continues at once', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { ids } = await attach(deps, 1)
  let cutOff = (_error: Error) => {}
  let isEmbedding = false
  world.inference.beforeBatch = () => {
    isEmbedding = true
    return new Promise((_resolve, reject) => {
      cutOff = reject
    })
  }
  const first = startWork(depsOn(world))
  await eventually(() => isEmbedding)
  first.stopping.signal.addEventListener('abort', () => cutOff(new Error('aborted')))
  await first[Symbol.asyncDispose]()
  const { job, status } = await findDocument(deps, ids[0]!)
  expect(job).toMatchObject({ lease: null, starts: 0, failures: 0 })
  expect(job!.dueAt <= systemClock.now()).toBe(true)
  expect(status).toBe('processing')
  world.inference.beforeBatch = () => {}
  await using _second = startWork(deps)
  await eventually(() => isSettled(deps, ids))
  expect((await findDocument(deps, ids[0]!)).status).toBe('ready')
})

it('isolates the poison document by a run of its own, and blames none that died beside it', async () => {
  const world = newWorld(parts)
  const { ids } = await attach(depsOn(world), 3)
  let besides = 0
  const diedBeside: number[] = []
  world.inference.beforeBatch = async () => {
    besides++
    await new Promise((resolve) => setTimeout(resolve, 30))
    besides--
  }
  for (let deaths = 0; deaths < 20; deaths++) {
    const life = new Life()
    const parser: DocumentParser = {
      ...plainParser,
      async parse(...args) {
        const parsed = await plainParser.parse(...args)
        if (!parsed.text.startsWith('about0')) return parsed
        await new Promise((resolve) => setTimeout(resolve, 10))
        diedBeside.push(besides)
        return life.end()
      },
    }
    await using _process = startWork(depsOn({ ...world, parser }, life), true)
    await eventually(async () => life.isDead || (await isSettled(depsOn(world), ids)))
    if (!life.isDead) break
  }
  const [fatal, ...others] = await Promise.all(ids.map((id) => findDocument(depsOn(world), id)))
  expect(fatal).toMatchObject({ status: 'failed', error: { code: 'poison' } })
  expect(others).toMatchObject([{ status: 'ready' }, { status: 'ready' }])
  expect(diedBeside).toHaveLength(5)
  expect(diedBeside.slice(2)).toEqual([0, 0, 0])
})

it('stops even when the signal comes during a claim', async () => {
  const world = newWorld(parts)
  const { ids } = await attach(depsOn(world), 1)
  const life = new Life()
  const deps = depsOn(world, life)
  const running = { stop: () => {} }
  life.onCall = (_call, name) => {
    if (name === 'documents.findOneAndUpdate') running.stop()
  }
  const process = startWork(deps)
  running.stop = () => process.stopping.abort(new Error('the service stops'))
  await process[Symbol.asyncDispose]()
  expect(world.inference.batches).toBe(0)
  expect((await findDocument(depsOn(world), ids[0]!)).job).toMatchObject({ lease: null })
})

it('retries a transient failure six times, and then the document fails', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { ids } = await attach(deps, 1)
  world.inference.beforeBatch = () => {
    throw engineDown()
  }
  await using _process = startWork(deps)
  await eventually(() => isSettled(deps, ids))
  expect(world.inference.batches).toBe(7)
  expect(await findDocument(deps, ids[0]!)).toMatchObject({
    status: 'failed',
    attempts: 7,
    error: { code: 'embedding_failed' },
    chunkCount: 0,
  })
  expect([...world.inference.holds.values()].every(({ state, charged }) => state === 'settled' && charged === 0)).toBe(true)
  expect(await readUsage(deps.store, principal.organizationId)).toMatchObject({ vectors: 0, marks: {} })
})

it('a transient failure that ends leaves no trace', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { ids } = await attach(deps, 1)
  world.inference.beforeBatch = (batch) => {
    if (batch <= 6) throw engineDown()
  }
  await using _process = startWork(deps)
  await eventually(() => isSettled(deps, ids))
  expect(await findDocument(deps, ids[0]!)).toMatchObject({ status: 'ready', error: null, attempts: 7 })
})

it('waits for an unavailable subgraph without counting failures', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { ids } = await attach(deps, 1)
  world.inference.beforeBatch = (batch) => {
    if (batch <= 8) throw new ServiceUnavailable('Billing')
    if (batch <= 14) throw engineDown()
  }
  await using _process = startWork(deps)
  await eventually(() => isSettled(deps, ids))
  expect(await findDocument(deps, ids[0]!)).toMatchObject({ status: 'ready', error: null, attempts: 15 })
})

it('a document of a suspended organization waits until it is resumed, without counting failures', async () => {
  const world = newWorld(parts)
  let embedCalls = 0
  let isSuspended = true
  const accounts = {
    findPrincipal: async () => {
      embedCalls++
      return { ...principal, isSuspended }
    },
  }
  const deps = depsOn({ ...world, accounts })
  const { ids } = await attach(deps, 1)
  await using _process = startWork(deps)
  await eventually(() => embedCalls > 8)
  expect(await findDocument(deps, ids[0]!)).toMatchObject({ status: 'processing', error: null, job: { failures: 0 } })
  isSuspended = false
  await eventually(() => isSettled(deps, ids))
  expect(await findDocument(deps, ids[0]!)).toMatchObject({ status: 'ready', error: null })
})

it('erases a deleted organization to the last record and byte, and nothing of another', async () => {
  const world = newWorld(parts)
  const accounts = { findPrincipal: async (organizationId: string, apiKeyId: string) => ({ ...principal, organizationId, apiKeyId }) }
  const deps = depsOn({ ...world, accounts })
  const { ids } = await attach(deps, 3)
  const other = createContext({ ...principal, organizationId: 'org_2', apiKeyId: 'key_2' })
  const collection = await createCollection(deps, other, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const file = await uploadFile(deps, other, { name: 'a.txt', contentBase64: base64(paragraphs(1, 'another')) })
  const { document } = await createDocument(deps, other, { collectionId: collection._id, fileId: file._id })
  await createUpload(deps, context, { name: 'later.txt', sizeBytes: 10 })
  await using _process = startWork(deps)
  await eventually(() => isSettled(deps, ids))
  await eventually(async () => (await getDocument(deps, 'org_2', document._id)).status === 'ready')
  const { signal } = new AbortController()
  await eventually(() => eraseOrganization(deps, principal.organizationId, signal))
  const { collections, documents, files, uploads, blobs, events } = deps.store
  const { organizationId } = principal
  for (const records of [collections, files, uploads, events]) expect(await records.findOne({ organizationId })).toBeNull()
  for (const id of ids) expect(await documents.findOne({ _id: id })).toBeNull()
  expect((await blobs.find({}, { limit: 10 })).map((blob) => blob.organizationId)).toEqual(['org_2'])
  const { bytesKey } = (await blobs.find({}, { limit: 1 }))[0]!
  expect([...world.blobs.keys.keys()].filter((key) => !key.startsWith(document._id))).toEqual([bytesKey])
  expect(await getDocument(deps, 'org_2', document._id)).toMatchObject({ status: 'ready' })
})

it('a collection of many documents is hidden at once and deleted completely, by the request and the workers', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { collectionId, ids } = await attach(deps, 150)
  await deleteCollection(deps, context, collectionId)
  await expect(findDocument(deps, ids.at(-1)!)).rejects.toMatchObject({ code: 'not_found' })
  await using _process = startWork(deps)
  await eventually(async () => (await deps.store.collections.findOne({ _id: collectionId })) === null)
  expect(await deps.store.documents.findOne({ collectionId })).toBeNull()
  expect(await readUsage(deps.store, principal.organizationId)).toMatchObject({ vectors: 0, chunks: {}, marks: {} })
})

it('makes the leases of an earlier process due, and leaves scheduled jobs', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { ids } = await attach(deps, 45)
  const later = new Date(systemClock.now().getTime() + LEASE_MS)
  const waiting = ids.at(-1)!
  await deps.store.documents.findOneAndUpdate({ _id: waiting }, { $set: { 'job.dueAt': later } })
  for (const id of ids.slice(0, -1)) expect(await claimJob(deps.store.documents, systemClock, id)).not.toBeNull()
  for (const id of ids) expect(await claimJob(deps.store.documents, systemClock, id)).toBeNull()
  await releaseAllLeases(deps.store.documents, systemClock)
  for (const id of ids.slice(0, -1)) expect((await findDocument(deps, id)).job).toMatchObject({ lease: null })
  expect((await findDocument(deps, waiting)).job!.dueAt).toEqual(later)
})

it('a job is claimed by one of many, and renewed by its holder only', async () => {
  const deps = depsOn(newWorld(parts))
  const { ids } = await attach(deps, 3)
  const processes = Array.from({ length: 10 }, () => new FairJobs(deps.store.documents, new FairSemaphore(4), systemClock))
  const claims = await Promise.all(processes.map((jobs) => jobs.claim()))
  const claimed = claims.flatMap((claim) => (claim ? [claim.record] : []))
  expect(claimed.map(({ _id }) => _id).sort()).toEqual(ids.toSorted())
  expect(await renewLease(deps.store.documents, systemClock, claimed[0]!)).toBe(true)
  const { job } = claimed[1]!
  expect(await renewLease(deps.store.documents, systemClock, { ...claimed[0]!, job: job! })).toBe(false)
})

it('isolates a job only until it makes progress', async () => {
  const world = newWorld(parts)
  const deps = depsOn(world)
  const { collectionId, ids } = await attach(deps, 2)
  const file = await uploadFile(deps, context, { name: 'long.txt', contentBase64: base64(paragraphs(40, 'long')) })
  const poison = (await createDocument(deps, context, { collectionId, fileId: file._id })).document._id
  await deps.store.documents.findOneAndUpdate({ _id: poison }, { $set: { 'job.starts': 2, 'job.dueAt': new Date(0) } })
  const held = Promise.withResolvers<void>()
  let poisonBatches = 0
  const { inference } = world
  const embed = inference.embedPassages.bind(inference)
  inference.embedPassages = async (input) => {
    if (input.texts.some((text) => text.includes('long')) && ++poisonBatches === 2) await held.promise
    return embed(input)
  }
  await using _working = startWork(deps)
  await eventually(async () => poisonBatches === 2 && (await isSettled(deps, ids)))
  expect((await findDocument(deps, poison)).status).toBe('processing')
  held.resolve()
  await eventually(() => isSettled(deps, [poison]))
  expect((await findDocument(deps, poison)).status).toBe('ready')
})
