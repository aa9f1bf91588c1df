import { expect, it } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import type { Library } from './library.ts'

/** Gold questions about the library, and evaluations of its search. */
export function evaluation(library: Library): void {
  it('evaluates the search by gold questions, and compares settings', async () => {
    const { caller, collection } = library
    const base = `/v1/collections/${collection.id}`
    const questions = [
      { query: 'كم يوماً الإجازة السنوية؟', expected: [{ phrase: 'ثلاثون يوما' }] },
      { query: 'Which class may I book for a long flight?', expected: [{ file_name: 'travel.md', phrase: 'BUSINESS class' }] },
      { query: 'Where is the lighthouse?', expected: [{ phrase: 'no passage has these words' }] },
    ]
    const added = await caller.rest('POST', `${base}/gold-questions`, { questions })
    expect(added).toMatchObject({ status: 201, body: { data: [{ object: 'gold_question', query: questions[0]!.query }, {}, {}] } })
    const settings = [{ label: '=all', mode: 'hybrid' }, { mode: 'lexical' }]
    const started = await caller.rest('POST', `${base}/evaluations`, { settings })
    expect(started).toMatchObject({ status: 201, body: { object: 'evaluation', collection_id: collection.id, progress: { total: 3 } } })
    const path = `/v1/evaluations/${started.body.id}`
    await eventually(async () => (await caller.rest('GET', path)).body.status !== 'running', 30_000)

    const { body } = await caller.rest('GET', path)
    expect(body).toMatchObject({ status: 'completed', error: null, progress: { done: 3, total: 3 } })
    expect(Number(body.cost_usd)).toBeGreaterThan(0)
    expect(body.settings[0].scores[0]).toMatchObject({ ranking: 'combined', language: null, question_count: 3, recall_at_10: 2 / 3 })
    expect(body.settings[0].scores[1]).toMatchObject({ language: 'ar', question_count: 1, recall_at_1: 1, mrr_at_10: 1 })
    expect(body.questions.map(({ ranks }: { ranks: { combined: number[] }[] }) => ranks[0]!.combined)).toEqual([[1], [1], [null]])

    const table = await caller.rest('GET', `${path}?format=csv`)
    const lines = (table.body as string).trimEnd().split('\r\n')
    expect(lines).toHaveLength(1 + 3 * 2)
    expect(lines[0]).toBe('question_id,query,file_name,page,phrase,settings,rank,rank_by_words,rank_by_meaning')
    expect(lines[3]).toContain(",travel.md,,BUSINESS class,'=all,1,")

    const listed = await caller.rest('GET', `${base}/evaluations`)
    expect(listed.body.data[0]).toMatchObject({ id: started.body.id })
    for (const { id } of added.body.data) expect((await caller.rest('DELETE', `/v1/gold-questions/${id}`)).status).toBe(200)
    expect((await caller.rest('DELETE', path)).status).toBe(200)
    expect((await caller.rest('GET', path)).status).toBe(404)
  })

  it('has a chat model suggest questions, and returns those with words of the chunk', async () => {
    const { caller, collection } = library
    const base = `/v1/collections/${collection.id}/gold-questions`
    const input = { model: 'mock-chat', count: 4, other_language: true }
    const { status, body } = await caller.rest('POST', `${base}/suggestions`, input)
    expect([status, body.object, body.error]).toEqual([200, 'gold_question.suggestions', null])
    expect(body.data.length).toBeGreaterThan(0)
    expect(body.dropped).toBeGreaterThan(0)
    expect(Number(body.cost_usd)).toBeGreaterThan(0)
    for (const { text, expected } of body.data) expect(text.replace(/\s+/g, ' ')).toContain(expected[0].phrase)
    const { query, expected } = body.data[0]
    const added = await caller.rest('POST', base, { questions: [{ query, expected }] })
    expect(added).toMatchObject({ status: 201, body: { data: [{ query, expected }] } })
    expect((await caller.rest('DELETE', `/v1/gold-questions/${added.body.data[0].id}`)).status).toBe(200)
    expect(await caller.rest('POST', `${base}/suggestions`, { ...input, model: 'nothing' })).toMatchObject({
      status: 404,
      body: { error: { param: 'model' } },
    })
  })
}
