import { expect, it } from 'vitest'
import { attach, newWorld, openTestIndex, startWork } from '../../../../test/support/data/knowledge-library.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createContext, depsOn, FakeInference, Life, principal } from '../../../../test/support/knowledge.ts'
import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { systemClock } from '../../../common/process/clock.ts'
import type { Ranks } from '../../domain/evaluation/ranks.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { createCollection, deleteCollection, getCollection } from '../documents/collections.ts'
import { deleteEvaluation, findEvaluation, listEvaluations, startEvaluation } from './evaluations.ts'
import { addGoldQuestions, deleteGoldQuestion, type GoldQuestionInput, listGoldQuestions, MAX_QUESTIONS } from './gold-questions.ts'

const context = createContext()
const otherContext = createContext({ ...principal, organizationId: 'org_2', apiKeyId: 'key_2' })
const code = (expected: string, param: string | null = null) => expect.objectContaining({ code: expected, param })
const index = await openTestIndex()

/** Counts how often each step of an evaluation is requested. */
class PricedInference extends FakeInference {
  readonly paid = new Map<string, number>()
  override async embedQuery(modelId: string, text: string, call?: CallContext) {
    const step = call?.step ?? text
    this.paid.set(step, (this.paid.get(step) ?? 0) + 1)
    return { ...(await super.embedQuery(modelId, text)), cost: 7n }
  }
}

async function world() {
  const inference = new PricedInference()
  const parts = newWorld({ index, inference, clock: systemClock })
  const deps = depsOn(parts)
  const collection = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  await attach(deps, collection._id, 'harbour.txt', 'The harbour of Sur was built in 1931.')
  await attach(deps, collection._id, 'lamp.txt', 'The lighthouse has a lamp of brass.')
  const add = (...questions: GoldQuestionInput[]) => addGoldQuestions(deps, context, { collectionId: collection._id, questions })
  const start = (more: object = {}) => startEvaluation(deps, context, { collectionId: collection._id, ...more })
  const ended = (id: string) => eventually(async () => (await findEvaluation(deps, context, id))?.status !== 'running')
  return { parts, deps, inference, collection, add, start, ended }
}

async function documentsReady(deps: Deps) {
  const open = () => deps.store.documents.find({ 'job.dueAt': { $gte: new Date(0) } }, { sort: { 'job.dueAt': 1 }, limit: 1 })
  await eventually(async () => (await open()).length === 0)
}

const HARBOUR: GoldQuestionInput = { query: 'When was the harbour built?', expected: [{ phrase: 'BUILT in 1931' }] }
const LAMP: GoldQuestionInput = { query: 'What is the lamp made of?', expected: [{ fileName: 'lamp.txt' }, { phrase: 'of gold' }] }

it('runs every question with each of the settings, and stores the ranks', async () => {
  const { deps, collection, add, start, ended, inference } = await world()
  await add(HARBOUR, LAMP)
  await using _working = startWork(deps, true)
  await documentsReady(deps)
  const { _id, total } = await start({ settings: [{}, { mode: 'lexical', label: 'words' }] })
  expect(total).toBe(2)
  await ended(_id)
  const evaluation = (await findEvaluation(deps, context, _id))!
  expect(evaluation).toMatchObject({ status: 'completed', done: 2, cost: '14', error: null })
  expect(evaluation.job).toBeUndefined()
  const [harbour, lamp] = JSON.parse(evaluation.ranks) as Ranks[][]
  expect(harbour![0]!.combined).toEqual([1])
  expect(lamp!.map(({ combined }) => combined)).toEqual([
    [1, null],
    [1, null],
  ])
  expect([...inference.paid.keys()].every((step) => step.startsWith(`${_id}/gq_`))).toBe(true)
  expect((await listEvaluations(deps, collection, {})).edges).toHaveLength(1)
  const again = await start()
  await ended(again._id)
})

it('continues after its process has died, and pays for no question twice', async () => {
  const { parts, deps, inference, add, start, ended } = await world()
  await add(...Array.from({ length: 25 }, (_, i) => ({ ...HARBOUR, query: `When was harbour ${i} built?` })))
  {
    await using _ready = startWork(deps, true)
    await documentsReady(deps)
  }
  const { _id } = await start()
  const life = new Life()
  let searches = 0
  const dying = depsOn({ ...parts, inference }, life)
  const dies: Deps = {
    ...dying,
    inference: {
      ...dying.inference,
      embeddingModel: (id, call) => inference.embeddingModel(id, call),
      embedQuery(modelId, text, call) {
        if (++searches === 15) life.end()
        return inference.embedQuery(modelId, text, call)
      },
    },
  }
  {
    await using _dead = startWork(dies, true)
    await eventually(() => life.isDead)
  }
  const left = (await findEvaluation(deps, context, _id))!
  expect(left).toMatchObject({ status: 'running', done: 10 })
  await using _next = startWork(deps, true)
  await ended(_id)
  expect(await findEvaluation(deps, context, _id)).toMatchObject({ status: 'completed', done: 25, cost: '175' })
  // Steps that were requested twice have the same name, so inference charges them once.
  expect(inference.paid.size).toBe(25)
})

it('waits while a subgraph is unavailable, and fails when a retry cannot help', async () => {
  const { deps, inference, add, start, ended } = await world()
  await add(HARBOUR)
  let away = 3
  const broken = new KisError('insufficient_quota', 'The wallet is empty.')
  const embedQuery = inference.embedQuery.bind(inference)
  inference.embedQuery = async (...args) => {
    if (away-- > 0) throw new ServiceUnavailable('Inference')
    return embedQuery(...args)
  }
  await using _working = startWork(deps, true)
  const first = await start()
  await ended(first._id)
  expect(await findEvaluation(deps, context, first._id)).toMatchObject({ status: 'completed', cost: '7' })
  inference.embedQuery = async () => {
    throw broken
  }
  const second = await start()
  await ended(second._id)
  const failed = { status: 'failed', done: 0, cost: '0', error: { code: 'insufficient_quota', message: 'The wallet is empty.' } }
  expect(await findEvaluation(deps, context, second._id)).toMatchObject(failed)
})

it('fails when a rerank model does, since the scores would be those of other settings', async () => {
  const { deps, inference, add, start, ended } = await world()
  await add(HARBOUR)
  inference.rerankPassages = async () => {
    throw new KisError('engine_error', 'Away.')
  }
  await using _working = startWork(deps, true)
  await documentsReady(deps)
  const { _id } = await start({ settings: [{ rerankModel: 'rank' }] })
  await ended(_id)
  expect(await findEvaluation(deps, context, _id)).toMatchObject({ status: 'failed', error: { code: 'engine_error' } })
})

it('allows one evaluation of a collection at a time, until it is deleted', async () => {
  const { deps, add, start } = await world()
  await expect(start()).rejects.toEqual(code('invalid_request', 'input.collectionId'))
  await add(HARBOUR)
  const { _id } = await start()
  await expect(start()).rejects.toEqual(code('in_use', 'input.collectionId'))
  await expect(deleteEvaluation(deps, otherContext, _id)).rejects.toEqual(code('not_found'))
  expect(await findEvaluation(deps, otherContext, _id)).toBeNull()
  await deleteEvaluation(deps, context, _id)
  await start()
})

it('retains the newest 50 of a collection', async () => {
  const { deps, collection, add, start } = await world()
  await add(HARBOUR)
  const first = await start()
  const end = (id: string) => deps.store.evaluations.findOneAndUpdate({ _id: id }, { $unset: { openKey: '', job: '' } })
  await end(first._id)
  for (let i = 0; i < 50; i++) await end((await start())._id)
  expect(await findEvaluation(deps, context, first._id)).toBeNull()
  expect((await listEvaluations(deps, collection, { first: 100 })).edges).toHaveLength(50)
})

it('checks, lists and deletes questions, and deletes them with their collection', async () => {
  const { deps, collection, add, start } = await world()
  const [added] = await add(HARBOUR, LAMP)
  expect((await listGoldQuestions(deps, collection, { order: 'asc' })).edges.map(({ node }) => node.query)).toEqual([
    HARBOUR.query,
    LAMP.query,
  ])
  await expect(deleteGoldQuestion(deps, otherContext, added!._id)).rejects.toEqual(code('not_found'))
  await deleteGoldQuestion(deps, context, added!._id)
  await expect(deleteGoldQuestion(deps, context, added!._id)).rejects.toEqual(code('not_found'))
  await start()
  await deleteCollection(deps, context, collection._id)
  {
    await using _working = startWork(deps, true)
    await eventually(async () => (await getCollection(deps, principal.organizationId, collection._id).catch(() => null)) === null)
    await eventually(async () => (await deps.store.collections.findOne({ _id: collection._id })) === null)
  }
  const { _id: collectionId } = collection
  expect(await deps.store.goldQuestions.countDocuments({ collectionId })).toBe(0)
  expect(await deps.store.evaluations.countDocuments({ collectionId })).toBe(0)
})

for (const [what, question, param] of [
  ['an empty query', { ...HARBOUR, query: ' ' }, '.query'],
  ['a query that is too long', { ...HARBOUR, query: 'x'.repeat(1_001) }, '.query'],
  ['no expected chunk', { ...HARBOUR, expected: [] }, '.expected'],
  ['a page without a file', { ...HARBOUR, expected: [{ page: 1 }] }, '.expected[0]'],
  ['a page below 1', { ...HARBOUR, expected: [{ fileName: 'a', page: 0 }] }, '.expected[0].page'],
  ['an empty phrase', { ...HARBOUR, expected: [{ phrase: '' }] }, '.expected[0].phrase'],
] as const)
  it(`refuses ${what}, and adds nothing`, async () => {
    const { deps, collection, add } = await world()
    await expect(add(HARBOUR, question)).rejects.toMatchObject({ param: `input.questions[1]${param}` })
    expect((await listGoldQuestions(deps, collection, {})).edges).toEqual([])
  })

it('refuses questions and settings above the limits, and callers without the scopes', async () => {
  const { deps, collection, add, start } = await world()
  for (let i = 0; i < MAX_QUESTIONS / 100; i++) await add(...Array.from({ length: 100 }, () => HARBOUR))
  await expect(add(HARBOUR)).rejects.toEqual(code('storage_quota_exceeded'))
  await expect(start({ settings: [{}, {}, {}, {}, {}] })).rejects.toEqual(code('array_above_max_length', 'input.settings'))
  await expect(start({ settings: [{ filter: { nothing: 1 } }] })).rejects.toEqual(
    code('unsupported_value', 'input.settings[0].filter.nothing'),
  )
  const input = { collectionId: collection._id }
  for (const scopes of [['knowledge:read'], ['knowledge:write']] as const satisfies Principal['scopes'][])
    await expect(startEvaluation(deps, createContext({ ...principal, scopes }), input)).rejects.toEqual(code('permission_denied'))
  await expect(startEvaluation(deps, otherContext, input)).rejects.toEqual(code('not_found', 'input.collectionId'))
})
