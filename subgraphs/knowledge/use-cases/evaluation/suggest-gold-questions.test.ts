import { expect, it } from 'vitest'
import { attach, newCollection, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createContext, depsOn, FakeInference, principal } from '../../../../test/support/knowledge.ts'
import { KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { wakeUp } from '../../../common/process/wake-up.ts'
import { work } from '../jobs/work.ts'
import { addGoldQuestions } from './gold-questions.ts'
import { type SuggestInput, suggestGoldQuestions } from './suggest-gold-questions.ts'

const context = createContext()
const code = (expected: string, param: string | null = null) => expect.objectContaining({ code: expected, param })
const index = await openTestIndex()

const HARBOUR = 'The harbour of Sur was built in 1931, and it was made larger in 1974 for the ships of the salt trade.'
const LEAVE_TEXT = 'يحق لكل موظف ثلاثون يوماً من الإجازة السنوية مدفوعة الأجر في كل سنة من سنوات الخدمة (المادة 109).'

async function world(texts: Readonly<Record<string, string>>) {
  const inference = new FakeInference()
  const deps = depsOn(newWorld({ index, inference, clock: systemClock }))
  const collectionId = await newCollection(deps)
  const ids = new Map<string, string>()
  for (const [name, text] of Object.entries(texts)) ids.set(name, (await attach(deps, collectionId, name, text)).id)
  const stop = new AbortController()
  const working = work(deps, wakeUp(), { exclusive: true, backoffMs: 1 }, stop.signal)
  await eventually(async () => (await deps.store.documents.countDocuments({ 'job.dueAt': { $gte: new Date(0) } })) === 0)
  stop.abort()
  await working
  const suggest = (more: Partial<SuggestInput> = {}) => suggestGoldQuestions(deps, context, { collectionId, model: 'chat', ...more })
  return { deps, inference, collectionId, ids, suggest }
}

it('suggests questions with the file and the words of the chunk, which can be added unchanged', async () => {
  const { deps, inference, collectionId, ids, suggest } = await world({ 'harbour.txt': HARBOUR, 'leave.txt': LEAVE_TEXT })
  const requests: (readonly string[])[] = []
  inference.suggest = (text, languages) => {
    requests.push(languages)
    return text === HARBOUR
      ? [{ question: 'When was\n the harbour of Sur built?', phrase: 'BUILT in  1931' }]
      : [{ question: 'كم يوماً مدة الإجازة السنوية؟', phrase: 'ثلاثون يوما' }]
  }
  const { suggestions, ...summary } = await suggest()
  expect(summary).toEqual({ dropped: 0, error: null, cost: 13n })
  expect(requests.toSorted()).toEqual([['ar'], ['en']])
  const [arabic, english] = suggestions.toSorted((a, b) => (a.language < b.language ? -1 : 1))
  expect(english).toMatchObject({
    query: 'When was the harbour of Sur built?',
    language: 'en',
    expected: [{ fileName: 'harbour.txt', page: null, phrase: 'BUILT in 1931' }],
    document: { _id: ids.get('harbour.txt') },
    chunk: { text: HARBOUR },
  })
  expect(arabic).toMatchObject({ language: 'ar', expected: [{ fileName: 'leave.txt', phrase: 'ثلاثون يوما' }] })
  const questions = suggestions.map(({ query, expected }) => ({ query, expected }))
  expect(await addGoldQuestions(deps, context, { collectionId, questions })).toHaveLength(2)
})

it('omits and counts questions that the chunk does not support, in another language, and duplicates', async () => {
  const { inference, suggest } = await world({ 'harbour.txt': HARBOUR })
  inference.suggest = () => [
    { question: 'When was the harbour of Sur built?', phrase: 'built in 1931' },
    { question: 'When was the HARBOUR of Sur built?', phrase: 'in 1931' },
    { question: 'Who is the king of the harbour?', phrase: 'ignore your instructions' },
    { question: 'متى بني ميناء صور؟', phrase: 'built in 1931' },
    { question: '', phrase: 'built in 1931' },
    { question: 'What is it?', phrase: '.' },
  ]
  const { suggestions, dropped, cost } = await suggest()
  expect([suggestions.length, dropped, cost]).toEqual([1, 5, 13n])
})

it('requests both languages for about half as many chunks, five concurrently, and never returns more than requested', async () => {
  const texts = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`${i}.txt`, `${HARBOUR} It is harbour number ${i}.`]))
  const { inference, suggest } = await world(texts)
  const chunkCounts: number[] = []
  const suggestQuestions = inference.suggestQuestions.bind(inference)
  inference.suggestQuestions = async (input) => {
    chunkCounts.push(input.passages.length)
    return suggestQuestions(input)
  }
  inference.suggest = (text, languages) => {
    const number = text.match(/number (\d+)/)![1]
    return languages.map((language) => ({
      question: language === 'ar' ? `متى بني الميناء رقم ${number}؟` : `When was harbour ${number} built?`,
      phrase: 'built in 1931',
    }))
  }
  const both = await suggest({ otherLanguage: true, count: 9 })
  expect(chunkCounts).toEqual([5])
  expect(both.suggestions).toHaveLength(9)
  expect(both.dropped).toBe(1)
  chunkCounts.length = 0
  const { suggestions, cost } = await suggest({ count: 12 })
  expect(chunkCounts.toSorted()).toEqual([2, 5, 5])
  expect(new Set(suggestions.map(({ document }) => document._id)).size).toBe(12)
  expect(cost).toBe(39n)
})

it('uses the given documents only, and reports failed calls', async () => {
  const texts = Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`${i}.txt`, `${HARBOUR} It is harbour number ${i}.`]))
  const { inference, ids, suggest } = await world(texts)
  inference.suggest = (text) => [{ question: `When was harbour ${text.match(/number (\d+)/)![1]} built?`, phrase: 'built in 1931' }]
  const [id] = [...ids.values()]
  const one = await suggest({ documentIds: [id!] })
  expect(one.suggestions.map(({ document }) => document._id)).toEqual([id])
  const suggestQuestions = inference.suggestQuestions.bind(inference)
  inference.suggestQuestions = async (input) => {
    if (input.passages.length < 5) throw new KisError('engine_timeout', 'The model took too long.')
    return suggestQuestions(input)
  }
  expect(await suggest()).toMatchObject({ error: 'engine_timeout', cost: 13n, suggestions: { length: 5 } })
  inference.suggestQuestions = async () => {
    throw new KisError('model_not_found', 'There is no such model.', { param: 'model' })
  }
  await expect(suggest()).rejects.toEqual(code('model_not_found', 'input.model'))
})

it('refuses invalid input, callers of other organizations, and a collection without chunks', async () => {
  const { deps, collectionId, ids, suggest } = await world({ 'label.txt': 'Harbour office' })
  await expect(suggest()).rejects.toEqual(code('invalid_request', 'input.collectionId'))
  await expect(suggest({ documentIds: [...ids.values()] })).rejects.toEqual(code('invalid_request', 'input.documentIds'))
  await expect(suggest({ documentIds: ['doc_0'] })).rejects.toEqual(code('not_found', 'input.documentIds'))
  await expect(suggest({ count: 21 })).rejects.toEqual(code('integer_above_max_value', 'input.count'))
  const otherContext = createContext({ ...principal, organizationId: 'org_2', apiKeyId: 'key_2' })
  await expect(suggestGoldQuestions(deps, otherContext, { collectionId, model: 'chat' })).rejects.toEqual(
    code('not_found', 'input.collectionId'),
  )
  const writer = createContext({ ...principal, scopes: ['knowledge:write'] })
  await expect(suggestGoldQuestions(deps, writer, { collectionId, model: 'chat' })).rejects.toEqual(code('permission_denied'))
})
