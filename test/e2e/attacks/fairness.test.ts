import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, base64, type Caller, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** What a busy machine needs for what takes a second. */
const DONE_MS = 60_000

describe('Fairness between two organizations', () => {
  let mock: MockEngine
  let service: Service
  let greedy: Caller
  let modest: Caller
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: testCatalog(mock.url) })
    const operator = createCaller(service, service.key)
    greedy = await newOrganization(operator, service, { creditUsd: '500' })
    modest = await newOrganization(operator, service)
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })

  async function newWorkflow(caller: Caller, content: string): Promise<string> {
    const nodes = [{ id: 'ask', type: 'chat', model: 'mock-chat', messages: [{ role: 'user', content }] }]
    const definition = { nodes, output: '{{ nodes.ask.text }}' }
    const { body } = await caller.rest('POST', '/v1/workflows', { code: `w${Math.random().toString(36).slice(2)}`, name: 'W', definition })
    return body.id
  }

  it('a run of one starts and ends beside 200 long runs of the other by a key with one request a minute, which can be cancelled', async () => {
    const { body: created, status: createStatus } = await greedy.rest('POST', '/v1/keys', {
      name: 'slow',
      scopes: ['agents'],
      requests_per_minute: 1,
    })
    const slow = createCaller(service, created.key)
    expect([createStatus, created.error]).toEqual([201, undefined])
    const long = await newWorkflow(slow, 'Hello')
    const started = []
    for (let i = 0; i < 200; i++) {
      const { status, body } = await slow.rest('POST', `/v1/workflows/${long}/runs`, {
        inputs: {},
        max_seconds: 21_600,
        max_cost_usd: '0.1',
      })
      expect([status, body.error]).toEqual([200, null])
      started.push(body.id)
    }
    const run = await modest.rest('POST', `/v1/workflows/${await newWorkflow(modest, 'Hello')}/runs`, { inputs: {}, wait: true })
    expect([run.status, run.body.status, run.body.output]).toEqual([200, 'completed', 'Hello from the mock مرحبا'])
    // A busy machine refuses some of so many at once, and says that they may be repeated.
    const cancel = async (id: string) => (await slow.rest('POST', `/v1/workflow-runs/${id}/cancel`)).status === 200
    await Promise.all(started.map((id) => eventually(() => cancel(id), DONE_MS)))
    const getStatus = async (id: string) => (await slow.rest('GET', `/v1/workflow-runs/${id}`)).body.status
    for (const id of started) await eventually(async () => (await getStatus(id)) !== 'running', DONE_MS)
    await eventually(async () => Number((await greedy.rest('GET', '/v1/wallet')).body.held_usd) === 0, DONE_MS)
  }, 240_000)

  it('a document of one is ready before most of the many documents of the other', async () => {
    const many = await newCollection(greedy)
    const text = (i: number) =>
      Array.from({ length: 6 }, (_, p) => `Passage ${p} of file ${i}. ${'The harbour of Sur was built in 1931. '.repeat(25)}`)
    for (let i = 0; i < 40; i++) {
      const file = await greedy.rest('POST', '/v1/files', { file_name: `${i}.md`, content_base64: base64(text(i).join('\n\n')) })
      await greedy.rest('POST', `/v1/collections/${many.id}/documents`, { file_id: file.body.message.id })
    }
    const collection = await newCollection(modest)
    const before = await countReady(greedy, many.id)
    expect(await addDocument(modest, collection.id, 'small.md', 'Parking is free.')).toMatchObject({ status: 'ready' })
    // Two of the first organization's are under way, and a few may have come to their end meanwhile.
    expect((await countReady(greedy, many.id)) - before).toBeLessThan(20)
  }, 300_000)
})

/** By one request: a busy machine refuses some of many at once. */
async function countReady(caller: Caller, collectionId: string): Promise<number> {
  const { status, body } = await caller.rest('GET', `/v1/collections/${collectionId}/documents?limit=100`)
  expect(status).toBe(200)
  return body.data.filter((document: Json) => document.status === 'ready').length
}
