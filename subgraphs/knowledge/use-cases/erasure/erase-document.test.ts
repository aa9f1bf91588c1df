import { expect, it } from 'vitest'
import { attach, newCollection, newWorld, openTestIndex, startWork } from '../../../../test/support/data/knowledge-library.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createContext, depsOn, principal } from '../../../../test/support/knowledge.ts'
import type { ErasureTask, Found } from '../../../common/erasure/erasing.ts'
import { systemClock } from '../../../common/process/clock.ts'
import type { Deps } from '../deps.ts'
import { createCollection } from '../documents/collections.ts'
import { createDocument } from '../documents/documents.ts'
import { findEvaluation, startEvaluation } from '../evaluation/evaluations.ts'
import { addGoldQuestions, type GoldQuestionInput } from '../evaluation/gold-questions.ts'
import { eraseFound, findErased } from './erasures.ts'

const context = createContext()
const { organizationId } = principal
const { signal } = new AbortController()
const index = await openTestIndex()

/** Creates a collection with two ingested documents, a question and an evaluation of each, and workers. */
async function world() {
  const { blobs, ...rest } = newWorld({ index, clock: systemClock })
  const deps = depsOn({ blobs, ...rest })
  const working = startWork(deps, true)
  const collectionId = await newCollection(deps)
  const add = async (name: string, text: string) => {
    const { id, fileId } = await attach(deps, collectionId, name, text)
    await eventually(async () => (await deps.store.documents.findOne({ _id: id }))?.status === 'ready')
    return { documentId: id, fileId }
  }
  const salaries = await add('salaries.txt', 'The salary of the pilot is a secret.')
  const lamps = await add('lamps.txt', 'The lighthouse has a lamp of brass.')
  const questions: GoldQuestionInput[] = [
    { query: 'What does the pilot earn?', expected: [{ fileName: 'salaries.txt' }] },
    { query: 'What is brass?', expected: [{ fileName: 'lamps.txt' }] },
  ]
  await addGoldQuestions(deps, context, { collectionId, questions })
  const { _id: evaluationId } = await startEvaluation(deps, context, { collectionId })
  await eventually(async () => (await findEvaluation(deps, context, evaluationId))?.status === 'completed')
  const createTask = (documentId: string, found?: Found): ErasureTask => ({
    ...{ id: 'ers_1', organizationId, kind: 'document', documentId, apiKeyIds: [], requestedAt: new Date() },
    ...{ documentIds: found?.documentIds ?? [], isFound: found !== undefined, notes: found?.notes ?? null },
  })
  return {
    ...{ deps, blobs, collectionId, salaries, lamps, createTask },
    [Symbol.asyncDispose]: () => working[Symbol.asyncDispose](),
  }
}

const erased = (deps: Deps, task: ErasureTask) => eventually(async () => (await eraseFound(deps, task, signal)).isEmpty)

it('finds and erases a document with its file, and the questions and evaluations that name it, and no others', async () => {
  await using testWorld = await world()
  const { deps, blobs, collectionId, salaries, lamps, createTask } = testWorld
  const found = await findErased(deps, createTask(salaries.documentId))
  expect(found).toMatchObject({
    found: { documents: 1, passages: 1, files: 1, web_addresses: 0, gold_questions: 1, evaluations: 1 },
    documentIds: [salaries.documentId],
  })
  expect(found.notes).not.toContain('salaries')
  const task = createTask(salaries.documentId, found)
  await erased(deps, task)
  expect(await eraseFound(deps, task, signal)).toEqual({ isEmpty: true, kept: [] })
  const { documents, files, goldQuestions, evaluations } = deps.store
  expect((await documents.find({}, { limit: 10 })).map(({ _id }) => _id)).toEqual([lamps.documentId])
  expect((await files.find({}, { limit: 10 })).map(({ _id }) => _id)).toEqual([lamps.fileId])
  expect((await goldQuestions.find({ collectionId }, { limit: 10 })).map(({ query }) => query)).toEqual(['What is brass?'])
  expect(await evaluations.find({ collectionId }, { limit: 10 })).toEqual([])
  expect(Buffer.concat([...blobs.keys.values()].map((bytes) => Buffer.from(bytes))).includes('secret')).toBe(false)
})

it('retains a file that another document uses, says so, and finds nothing of another organization', async () => {
  await using testWorld = await world()
  const { deps, salaries, createTask } = testWorld
  const other = await createCollection(deps, context, { code: 'd', name: 'D', embeddingModel: 'embed' })
  await createDocument(deps, context, { collectionId: other._id, fileId: salaries.fileId })
  const found = await findErased(deps, createTask(salaries.documentId))
  const task = createTask(salaries.documentId, found)
  await erased(deps, task)
  expect((await eraseFound(deps, task, signal)).kept).toMatchObject([{ kind: 'files', count: 1 }])
  expect(await deps.store.files.findOne({ _id: salaries.fileId })).not.toBeNull()

  const otherTask = { ...createTask(salaries.documentId), organizationId: 'org_2' }
  expect(await findErased(deps, otherTask)).toMatchObject({ found: { documents: 0, passages: 0, files: 0 } })
})

it('erasure notes of an archive of many files with long names fit into what billing retains', async () => {
  await using testWorld = await world()
  const { deps, salaries, createTask } = testWorld
  const { attachKey: _, job: __, ...parent } = (await deps.store.documents.findOne({ _id: salaries.documentId }))!
  const hex = (i: number) => String(i).padStart(32, '0')
  await deps.store.documents.insertMissing(
    Array.from({ length: 200 }, (_, i) => ({
      ...parent,
      ...{ _id: `doc_${hex(i)}`, parentId: parent._id, fileId: `file_${hex(i)}`, fileName: `${'long/'.repeat(40)}${i}.txt` },
    })),
  )
  const { documentIds, notes } = await findErased(deps, createTask(salaries.documentId))
  expect(documentIds).toHaveLength(201)
  // At 100 characters per document, the notes of 10,000 documents have a million characters.
  expect(notes!.length / 201).toBeLessThan(100)
})
