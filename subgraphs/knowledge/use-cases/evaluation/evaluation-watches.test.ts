import { expect, it } from 'vitest'
import { newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { base64, createContext, depsOn, FakeInference, principal } from '../../../../test/support/knowledge.ts'
import { eventLogSource } from '../../../common/events/event-log.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { type Clock, systemClock } from '../../../common/process/clock.ts'
import { wakeUp } from '../../../common/process/wake-up.ts'
import type { Comparison } from '../../domain/evaluation/compare.ts'
import { createCollection, deleteCollection, updateCollection } from '../documents/collections.ts'
import { createDocument, deleteDocument } from '../documents/documents.ts'
import { updateDocument } from '../documents/update-document.ts'
import { uploadFile } from '../files/files.ts'
import { work } from '../jobs/work.ts'
import { toFallEvent } from './evaluation-events.ts'
import { deleteWatch, findWatch, setWatch, type WatchInput } from './evaluation-watches.ts'
import { findEvaluation, startEvaluation } from './evaluations.ts'
import { addGoldQuestions } from './gold-questions.ts'
import { checkWatches } from './run-watches.ts'

const context = createContext()
const otherContext = createContext({ ...principal, organizationId: 'org_2', apiKeyId: 'key_2' })
const code = (expected: string, param: string | null = null) => expect.objectContaining({ code: expected, param })
const { signal } = context
const index = await openTestIndex()

/** The system's clock, which a test can advance. */
class ForwardClock implements Clock {
  aheadMs = 0
  now = () => new Date(systemClock.now().getTime() + this.aheadMs)
  sleep = systemClock.sleep
  forward(seconds: number) {
    this.aheadMs += seconds * 1_000
  }
}

async function world() {
  const clock = new ForwardClock()
  const key: { current: Principal } = { current: principal }
  const accounts = { findPrincipal: async () => key.current }
  const inference = new FakeInference()
  const deps = depsOn(newWorld({ index, inference, clock, accounts }))
  const collection = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const collectionId = collection._id
  const attach = async (name: string, text: string) => {
    const file = await uploadFile(deps, context, { name, contentBase64: base64(text) })
    return (await createDocument(deps, context, { collectionId, fileId: file._id, externalId: name, onConflict: 'replace' })).document._id
  }
  /** Lets workers finish all due jobs. */
  const settle = async () => {
    const stop = new AbortController()
    const working = work(deps, wakeUp(), { exclusive: true, backoffMs: 1 }, stop.signal)
    const isOpen = async (records: typeof deps.store.documents | typeof deps.store.evaluations) =>
      (await records.countDocuments({ 'job.dueAt': { $gte: new Date(0) } })) > 0
    await eventually(async () => !(await isOpen(deps.store.documents)) && !(await isOpen(deps.store.evaluations)))
    stop.abort()
    await working
    await deps.events.drain(principal.organizationId)
  }
  const check = () => checkWatches(deps, signal)
  /** Checks the watches, then again after the collection has been quiet. */
  const checkLater = async () => {
    await check()
    clock.forward(11)
    await check()
  }
  const watch = () => findWatch(deps, collection)
  const set = (more: Partial<WatchInput> = {}) => setWatch(deps, context, { collectionId, minIntervalSeconds: 3_600, ...more })
  const evaluations = () => deps.store.evaluations.find({ collectionId }, { sort: { _id: 1 }, limit: 10 })
  const harbour = await attach('harbour.txt', 'The harbour of Sur was built in 1931.')
  await attach('lamp.txt', 'The lighthouse has a lamp of brass.')
  await addGoldQuestions(deps, context, {
    collectionId,
    questions: [
      { query: 'When was the harbour built?', expected: [{ phrase: 'built in 1931' }] },
      { query: 'What is the lamp made of?', expected: [{ phrase: 'lamp of brass' }] },
    ],
  })
  await settle()
  return { clock, key, deps, collectionId, harbour, attach, settle, check, checkLater, watch, set, evaluations }
}

it('reads no watch when there is none', async () => {
  const { check } = await world()
  await check()
})

it('evaluates after changes once the collection is quiet, and compares with the previous evaluation', async () => {
  const { deps, collectionId, harbour, attach, settle, check, checkLater, set, watch, evaluations } = await world()
  const baseline = await startEvaluation(deps, context, { collectionId, settings: [{ label: 'mine' }] })
  await settle()
  await set()
  await checkLater()
  expect(await evaluations()).toHaveLength(1)

  await deleteDocument(deps, context, harbour)
  await attach('lamp.txt', 'The lighthouse has a lamp of brass, and a bell.')
  await attach('bell.txt', 'The bell rings twice.')
  await check()
  await checkLater()
  expect(await evaluations()).toHaveLength(1)
  await settle()
  await checkLater()
  const [, begun] = await evaluations()
  const changes = { added: 1, replaced: 1, deleted: 1, updated: 0, settings: 0 }
  expect(begun).toMatchObject({ status: 'running', apiKeyId: principal.apiKeyId, changes })
  expect(await watch()).toMatchObject({ changes: { added: 0, replaced: 0, deleted: 0 }, error: null })
  expect((await watch())!.starting).toBeUndefined()

  await settle()
  const ended = (await findEvaluation(deps, context, begun!._id))!
  expect(ended.status).toBe('completed')
  const comparison = JSON.parse(ended.comparison!) as Comparison
  expect(comparison).toMatchObject({ baselineId: baseline._id, questionCount: 2 })
  expect(comparison.falls).toContainEqual({ settings: 'hybrid', language: null, measure: 'recall_at_1', before: 1, after: 0.5 })
  const source = eventLogSource(deps.events, toFallEvent)
  const end = (await source.ends([principal.organizationId])).get(principal.organizationId)!
  const { events } = await source.read(principal.organizationId, end - 1)
  expect(events).toMatchObject([
    {
      type: 'evaluation.score_fell',
      subject: begun!._id,
      data: { collection_id: collectionId, baseline_evaluation_id: baseline._id, question_count: 2, falls: comparison.falls },
    },
  ])
})

it('counts changes of metadata and of the reranker, and respects the minimum interval', async () => {
  const { clock, deps, collectionId, harbour, settle, checkLater, set, watch, evaluations } = await world()
  await set({ maxFall: null })
  await updateDocument(deps, context, { id: harbour, metadata: { town: 'Sur' } })
  await settle()
  await checkLater()
  await settle()
  expect(await evaluations()).toMatchObject([{ status: 'completed', changes: { updated: 1 } }])
  expect((await evaluations())[0]).not.toHaveProperty('comparison')

  await updateCollection(deps, context, { id: collectionId, rerankModel: 'rank' })
  await checkLater()
  expect(await evaluations()).toHaveLength(1)
  expect(await watch()).toMatchObject({ changes: { settings: 1, updated: 0 } })
  clock.forward(3_600)
  await checkLater()
  await settle()
  const [first, second] = await evaluations()
  expect(second).toMatchObject({ status: 'completed', changes: { settings: 1 } })
  expect(JSON.parse(second!.comparison!)).toEqual({ baselineId: first!._id, questionCount: 2, falls: [] })
})

it('starts an evaluation once through any crash, and waits for a running one', async () => {
  const { deps, collectionId, settle, check, checkLater, set, attach, watch, evaluations } = await world()
  await set()
  await attach('bell.txt', 'The bell rings twice.')
  await settle()
  const manual = await startEvaluation(deps, context, { collectionId })
  await checkLater()
  expect(await watch()).toMatchObject({ starting: { changes: { added: 1 } }, error: null })
  await settle()
  await check()
  const [, begun] = await evaluations()
  expect(begun).toMatchObject({ changes: { added: 1 } })
  expect(begun!._id).not.toBe(manual._id)
  // The process died after it wrote the evaluation, and before it wrote the watch.
  const starting = { id: begun!._id, changes: { ...begun!.changes! } }
  await deps.store.evaluationWatches.findOneAndUpdate({ _id: collectionId }, { $set: { starting } })
  await check()
  expect((await watch())!.starting).toBeUndefined()
  expect(await evaluations()).toHaveLength(2)
})

it('stops and says so when its key has ended or lost a scope, and resumes when it is set again', async () => {
  const { key, settle, checkLater, set, attach, watch, evaluations } = await world()
  for (const [name, lost, message] of [
    ['ended', { isEnded: true }, 'has ended'],
    ['narrow', { scopes: ['knowledge:read'] }, 'knowledge:write'],
  ] as const satisfies [string, Partial<Principal>, string][]) {
    key.current = principal
    await set()
    await attach(`${name}.txt`, `The bell of ${name} rings twice.`)
    await settle()
    key.current = { ...principal, ...lost }
    await checkLater()
    expect(await watch()).toMatchObject({ error: { code: 'permission_denied', message: expect.stringContaining(message) } })
  }
  expect(await evaluations()).toEqual([])
  key.current = principal
  await set()
  expect(await watch()).toMatchObject({ error: null, changes: { added: 2 } })
  await checkLater()
  expect(await evaluations()).toMatchObject([{ status: 'running', changes: { added: 2 } }])
})

it('evaluates after a day even a collection that is never quiet', async () => {
  const { clock, check, set, attach, evaluations, settle } = await world()
  await set()
  await attach('bell.txt', 'The bell rings twice.')
  await settle()
  await attach('waits.txt', 'A document that waits.')
  await check()
  clock.forward(86_300)
  await check()
  expect(await evaluations()).toEqual([])
  clock.forward(200)
  await check()
  expect(await evaluations()).toHaveLength(1)
})

it('refuses invalid input, callers of other organizations and more than the limit, and is deleted with its collection', async () => {
  const { deps, collectionId, set, settle, watch } = await world()
  await expect(set({ minIntervalSeconds: 3_599 })).rejects.toEqual(code('integer_below_min_value', 'input.minIntervalSeconds'))
  await expect(set({ maxFall: 0 })).rejects.toEqual(code('invalid_request', 'input.maxFall'))
  await expect(set({ settings: [{}, {}, {}, {}, {}] })).rejects.toEqual(code('array_above_max_length', 'input.settings'))
  await expect(setWatch(deps, otherContext, { collectionId })).rejects.toEqual(code('not_found', 'input.collectionId'))
  const reader = createContext({ ...principal, scopes: ['knowledge:read'] })
  await expect(setWatch(deps, reader, { collectionId })).rejects.toEqual(code('permission_denied'))
  const { organizationId } = principal
  const other = (await set())!
  for (let i = 1; i < 100; i++) await deps.store.evaluationWatches.insertOne({ ...other, _id: `col_${i}`, collectionId: `col_${i}` })
  await set({ maxFall: 0.2 })
  expect(await watch()).toMatchObject({ maxFallThousandths: 200, organizationId })
  await expect(deleteWatch(deps, otherContext, collectionId)).rejects.toEqual(code('not_found'))
  await deleteWatch(deps, context, collectionId)
  await expect(deleteWatch(deps, context, collectionId)).rejects.toEqual(code('not_found'))
  await deps.store.evaluationWatches.insertOne({ ...other, _id: 'col_100', collectionId: 'col_100' })
  await expect(set()).rejects.toEqual(code('storage_quota_exceeded'))
  await deps.store.evaluationWatches.findOneAndDelete({ _id: 'col_100' })
  await set()
  await deleteCollection(deps, context, collectionId)
  await settle()
  await eventually(async () => {
    await settle()
    return (await deps.store.evaluationWatches.findOne({ _id: collectionId })) === null
  })
})
