import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import {
  addDocument,
  balancedWallet,
  type Caller,
  createCaller,
  type Json,
  nano,
  newCollection,
  newOrganization,
} from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full, soaking } from '../../support/soak.ts'

/** A start on a busy machine, and what the run still has to do. */
const ENDED_MS = 60_000

/** Every call of the mock takes 300 ms, so that a kill can hit it. */
const nodesOver = (collectionId: string) => [
  { id: 'find', type: 'search', collection_id: collectionId, query: '{{ inputs.question }}', limit: 2 },
  {
    id: 'ask',
    type: 'chat',
    model: 'mock-chat',
    messages: [{ role: 'user', content: '{{ nodes.find.text }}\n{{ inputs.question }} slow' }],
  },
  { id: 'way', type: 'branch', cases: [{ name: 'greeted', when: { left: '{{ nodes.ask.text }}', op: 'contains', right: 'Hello' } }] },
  {
    ...{ id: 'each', type: 'map', over: { $ref: 'inputs.items' }, at_once: 1, after: ['way.greeted'] },
    node: { type: 'chat', model: 'mock-chat', messages: [{ role: 'user', content: '{{ item }} slow' }] },
  },
  { id: 'end', type: 'template', template: '{{ nodes.find.count }} {{ nodes.ask.text }} {{ nodes.each.items[*].text | join("; ") }}' },
]

describe('Workflows end to end', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-workflows-'))
  let mock: MockEngine
  let service: Service
  let operatorKey: string
  const start = async () => {
    service = await startEmbedded({ folder, catalog: testCatalog(mock.url) })
    operatorKey ??= service.key
  }
  const as = (key: string) => createCaller(service, key)
  beforeAll(async () => {
    mock = await startMockEngine()
    await start()
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  async function newWorkflow(caller: Caller, nodes: readonly Json[], more: Json = {}): Promise<Json> {
    const definition = { nodes, output: '{{ nodes.end.text }}', ...more }
    const { status, body } = await caller.rest('POST', '/v1/workflows', { code: 'flow', name: 'Flow', definition })
    expect([status, body.error]).toEqual([201, undefined])
    return body
  }

  const getRun = async (caller: Caller, id: string): Promise<Json> => (await caller.rest('GET', `/v1/workflow-runs/${id}`)).body
  const ended = async (caller: Caller, id: string): Promise<Json> => {
    await eventually(async () => (await getRun(caller, id)).status !== 'running', ENDED_MS)
    return getRun(caller, id)
  }
  const listPaid = async (caller: Caller, id: string): Promise<string[]> => {
    const { data } = (await caller.rest('GET', '/v1/usage?limit=100')).body
    const lines = data.filter((line: Json) => line.request_id === id && line.amount_usd !== '0')
    return lines.map((line: Json) => `${line.operation} ${line.amount_usd}`).sort()
  }
  const readEvents = async (caller: Caller, path: string): Promise<Json[]> => {
    const response = await fetch(`${service.rest}${path}`, { headers: { authorization: `Bearer ${caller.key}` } })
    const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '))
    return lines.map((line) => JSON.parse(line.slice('data: '.length)))
  }

  it(`killed at ${soaking ? 'every step' : 'three moments'} of five nodes, ${full(10)} times: the same result, each call paid once, and each event reported once`, async () => {
    const { key } = await newOrganization(as(operatorKey), service)
    const collection = await newCollection(as(key), 'mock-embed-slow')
    await addDocument(as(key), collection.id, 'harbours.md', 'The harbour of Sur was built in 1931.')
    const { id: workflowId } = await newWorkflow(as(key), nodesOver(collection.id))
    const input = { inputs: { question: 'When was the harbour built?', items: ['one', 'two'] } }
    const startRun = async () => (await as(key).rest('POST', `/v1/workflows/${workflowId}/runs`, input)).body
    const undisturbed = await ended(as(key), (await startRun()).id)
    expect(undisturbed).toMatchObject({ status: 'completed', error: null, output: expect.stringMatching(/^1 Hello from the mock/) })
    const paid = await listPaid(as(key), undisturbed.id)
    expect(paid).toEqual([
      'chat_completion 0.000028',
      'chat_completion 0.000028',
      'chat_completion 0.000028',
      expect.stringMatching(/^embedding /),
    ])

    for (let round = 0; round < full(10); round++) {
      let before = { chats: mock.chats, embeddings: mock.embeddings }
      const { id } = await startRun()
      const isDone = (nodeId: string) => async () =>
        (await getRun(as(key), id)).nodes.find((node: Json) => node.id === nodeId).state === 'done'
      const embeds = () => mock.embeddings > before.embeddings
      const hasNewChats = () => mock.chats > before.chats
      // What was asked for before the kill is asked for again, and then so many items.
      const hasDone = (calls: number) => () => mock.chats > before.chats + calls
      const everyStep = [embeds, isDone('find'), hasNewChats, isDone('ask'), hasNewChats, hasDone(1), isDone('each')]
      for (const moment of soaking ? everyStep : [embeds, hasNewChats, hasDone(2)]) {
        await eventually(moment, ENDED_MS)
        await service.processes.get('all')!.end('SIGKILL')
        before = { chats: mock.chats, embeddings: mock.embeddings }
        await start()
      }
      const run = await ended(as(key), id)
      expect(run).toMatchObject({ status: 'completed', output: undisturbed.output, cost_usd: undisturbed.cost_usd })
      expect(run.nodes.map(({ cost_usd }: Json) => cost_usd)).toEqual(undisturbed.nodes.map(({ cost_usd }: Json) => cost_usd))
      expect(run.nodes.reduce((sum: bigint, { cost_usd }: Json) => sum + nano(cost_usd), 0n)).toBe(nano(run.cost_usd))
      expect(await listPaid(as(key), id)).toEqual(paid)
      const events = await readEvents(as(key), `/v1/workflow-runs/${id}/events`)
      expect(events.map(({ cursor }) => cursor)).toEqual(events.map((_, i) => String(i + 1)))
      expect(events.filter(({ type }) => type === 'node_ended').map(({ node_id }) => node_id)).toEqual([
        'find',
        'ask',
        'way',
        'each',
        'end',
      ])
      expect(events.filter(({ type }) => type === 'done')).toHaveLength(1)
    }
    await eventually(async () => (await as(key).rest('GET', '/v1/wallet')).body.held_usd === '0', ENDED_MS)
    await balancedWallet(as(key))
  }, 600_000)

  it('run on the embedded models: search in both languages, answer from the results, and stream their progress', async () => {
    const caller = await newOrganization(as(operatorKey), service)
    const collection = await newCollection(caller, 'e5-small-ar-en')
    for (const [name, text] of [
      ['ports.md', 'The harbour of Sur was built in 1931 by the fishermen of the town.'],
      ['موانئ.md', 'بني ميناء صور في عام 1931 على يد صيادي المدينة.'],
    ] as const)
      await addDocument(caller, collection.id, name, text)
    const chatNode = (id: string, question: string) => [
      { id: `find_${id}`, type: 'search', collection_id: collection.id, query: question, limit: 2 },
      { id, type: 'chat', model: 'extractive', messages: [{ role: 'user', content: `{{ nodes.find_${id}.text }}\n\n${question}` }] },
    ]
    const { id } = await newWorkflow(caller, [
      ...chatNode('english', 'When was the harbour of Sur built?'),
      ...chatNode('arabic', 'متى بني ميناء صور؟'),
      { id: 'end', type: 'template', template: '{{ nodes.english.text }}\n{{ nodes.arabic.text }}' },
    ])
    const response = await fetch(`${service.rest}/v1/workflows/${id}/runs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ stream: true }),
    })
    const types = [...(await response.text()).matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
    expect([types[0], types.at(-1), types.filter((type) => type === 'node_ended').length]).toEqual(['run_started', 'done', 5])
    const { body: run } = await caller.rest('POST', `/v1/workflows/${id}/runs`, { wait: true })
    expect(run).toMatchObject({ status: 'completed', error: null })
    expect(run.output).toContain('built in 1931')
    expect(run.output).toContain('في عام 1931')

    const otherTenant = await newOrganization(as(operatorKey), service)
    for (const [method, path] of [
      ['GET', `/v1/workflows/${id}`],
      ['POST', `/v1/workflows/${id}/runs`],
      ['GET', `/v1/workflow-runs/${run.id}`],
      ['GET', `/v1/workflow-runs/${run.id}/events`],
      ['POST', `/v1/workflow-runs/${run.id}/cancel`],
    ] as const)
      expect([
        path,
        (await otherTenant.rest(method, path, method === 'POST' && path.includes('/workflows/') ? {} : undefined)).status,
      ]).toEqual([path, 404])
    expect((await otherTenant.rest('GET', '/v1/workflows')).body.data).toEqual([])
  }, 120_000)

  it('are refused with the path of the error', async () => {
    const caller = await newOrganization(as(operatorKey), service)
    const refused = async (nodes: readonly Json[]) =>
      (await caller.rest('POST', '/v1/workflows', { code: 'x', name: 'X', definition: { nodes, output: 1 } })).body.error
    const text = (id: string, template: string) => ({ id, type: 'template', template })
    expect(await refused([text('a', '{{ nodes.b.text }}'), text('b', '{{ nodes.a.text }}')])).toMatchObject({
      code: 'invalid_request',
      param: 'definition.nodes[1].template',
      message: 'The nodes wait for each other: a waits for b waits for a.',
    })
    expect(await refused([text('a', '{{ nodes.c.text }}')])).toMatchObject({
      code: 'invalid_request',
      param: 'definition.nodes[0].template',
    })
    expect(await refused([{ id: 'a', type: 'search', collection_id: 'col_none', query: 'x' }])).toMatchObject({
      code: 'not_found',
      param: 'definition.nodes[0].collection_id',
    })
  })
})
