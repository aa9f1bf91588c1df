import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, base64, type Caller, createCaller, type Json, newCollection, newOrganization, settled } from '../../support/client.ts'
import { png } from '../../support/data/images.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'
import {
  type DistributedOptions,
  type DistributedService,
  type Service,
  startEmbedded,
  startFiveProcesses,
} from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

/** Between two calls of a stream: 200 a second in `npm run soak`, 50 otherwise. */
const EVERY_MS = soaking ? 5 : 20
// Together they keep two cores busy; each waits longer for the beliefs of the processes than it computes.
vi.setConfig({ maxConcurrency: soaking ? 2 : 4 })

/** Calls go on for so long after a change: longer than any answer about a key is believed. */
const AFTER_MS = 4_500
/** Calls under way at once, beyond which one of the stream is left out: the machine is slower than the stream. */
const MOST_UNDER_WAY = 50

/** What a change is, the code of calls after it, and how it is made. */
type Change = readonly [what: string, code: string, make: (admin: Caller, key: string) => Promise<{ readonly status: number }>]

const POLICY: Change = [
  'the residency policy',
  'residency_policy_violation',
  (admin) => admin.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' }),
]
const SPEND_LIMIT: Change = [
  "a key's spend limit",
  'insufficient_quota',
  (admin, key) => admin.rest('PATCH', `/v1/keys/${key}`, { spend_limit: { amount_usd: '0', period: 'day' } }),
]
const REVOCATION: Change = ['a key, which is revoked,', 'invalid_api_key', (admin, key) => admin.rest('DELETE', `/v1/keys/${key}`)]
const OTHERS: readonly Change[] = [
  ["a key's allowlist", 'model_not_found', (admin, key) => admin.rest('PATCH', `/v1/keys/${key}`, { model_allowlist: ['extractive'] })],
  ["a key's scopes", 'permission_denied', (admin, key) => admin.rest('PATCH', `/v1/keys/${key}`, { scopes: ['knowledge:read'] })],
  ["a key's secret", 'invalid_api_key', (admin, key) => admin.rest('POST', `/v1/keys/${key}/rotate`)],
]

/** Of processes of which each knows the rules for itself. */
function rulesInForce(
  start: typeof startFiveProcesses,
  replicas: NonNullable<DistributedOptions['replicas']>,
  changes: readonly Change[],
): void {
  let mock: MockEngine
  let service: DistributedService
  let operator: Caller
  let fetches = 0
  const images = createServer((_request, response) => {
    fetches += 1
    response.end(png())
  })
  beforeAll(async () => {
    mock = await startMockEngine()
    await once(images.listen(0, '127.0.0.1'), 'listening')
    const { port } = images.address() as AddressInfo
    const catalog = testCatalog(mock.url)
      .replace('engines:', `engines:\n  near: { kind: openai, base_url: "${mock.url}", badge: local }`)
      .replace(
        'models:',
        'models:\n  - { id: near-eyes, engine: near, kind: chat, supports: [vision], max_output_tokens: 100, price: { input: "1", output: "2" } }',
      )
    service = await start({ catalog, replicas, env: { KIS_EGRESS_ALLOW: `127.0.0.1:${port}` } })
    operator = createCaller(service, service.key)
  }, 400_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    images.closeAllConnections()
    images.close()
  }, 400_000)

  const createKey = async (admin: Caller, fields: object) => {
    const { body } = await admin.rest('POST', '/v1/keys', { name: 'app', scopes: ['inference'], ...fields })
    return { id: body.id as string, caller: createCaller(service, body.key) }
  }

  /**
   * A change under a stream of calls: how each ended, and how many reached the engine after the change was answered.
   */
  async function changed(caller: Caller, change: () => Promise<{ readonly status: number }>) {
    const messages = [{ role: 'user', content: `Hello from ${randomUUID()}` }]
    const outcomes = new Map<string, number>()
    let isOver = false
    let underWay = 0
    let sent = 0
    const note = (outcome: string) => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    const calls: Promise<void>[] = []
    const sending = (async () => {
      for (const beganAt = performance.now(); !isOver; await new Promise((resolve) => setTimeout(resolve, EVERY_MS)))
        while (!isOver && sent < (performance.now() - beganAt) / EVERY_MS) {
          sent++
          if (underWay >= MOST_UNDER_WAY) continue
          underWay++
          calls.push(
            caller
              .rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages })
              .then(({ status, body }) => note(status === 200 ? 'answered' : body.error.code))
              .finally(() => underWay--),
          )
        }
    })()
    await eventually(() => (outcomes.get('answered') ?? 0) > 50, 60_000)
    // The machine may be too busy for the first.
    await eventually(async () => (await change()).status === 200, 30_000)
    const respondedAt = performance.now()
    await new Promise((resolve) => setTimeout(resolve, AFTER_MS))
    isOver = true
    await sending
    await Promise.all(calls)
    // Nor is what a busy machine refuses, and says that it may be repeated.
    outcomes.delete('service_unavailable')
    return { outcomes: Object.fromEntries(outcomes), late: arrivedAfter(mock, respondedAt, messages).length }
  }

  it.concurrent.each(changes)(
    'no call reaches the engine by the former rules once a change of %s is acknowledged',
    async (_what, code, change) => {
      const admin = await newOrganization(operator, service)
      const { id, caller } = await createKey(admin, {})
      const { outcomes, late } = await changed(caller, () => change(admin, id))
      expect(late).toBe(0)
      expect(Object.keys(outcomes).sort()).toEqual(['answered', code].sort())
    },
    120_000,
  )

  it.concurrent('no image is fetched once a change to local_only is acknowledged, even for a local model', async () => {
    const admin = await newOrganization(operator, service)
    const { caller } = await createKey(admin, {})
    const url = `http://127.0.0.1:${(images.address() as AddressInfo).port}/a.png`
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
    // As many as make each gateway remember the key.
    const send = () =>
      Promise.all(Array.from({ length: 8 }, () => caller.rest('POST', '/v1/chat/completions', { model: 'near-eyes', messages })))
    // The machine may be too busy for the first.
    await eventually(async () => (await send()).every(({ status }) => status === 200), 30_000)
    expect((await admin.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })).status).toBe(200)
    const before = fetches
    for (const { body } of await send()) expect(['residency_policy_violation', 'service_unavailable']).toContain(body.error?.code)
    expect([before > 0, fetches]).toEqual([true, before])
  }, 120_000)

  it.concurrent('no call of a key reaches the engine once the revocation of its parent is acknowledged', async () => {
    const admin = await newOrganization(operator, service)
    const parent = await createKey(admin, { scopes: ['admin'] })
    const { caller } = await createKey(parent.caller, {})
    const { outcomes, late } = await changed(caller, () => admin.rest('DELETE', `/v1/keys/${parent.id}`))
    expect(late).toBe(0)
    expect(Object.keys(outcomes).sort()).toEqual(['answered', 'invalid_api_key'])
  }, 120_000)

  it.concurrent('a change that permits what every call needs fails none of them', async () => {
    const admin = await newOrganization(operator, service)
    const { id, caller } = await createKey(admin, {})
    const { outcomes } = await changed(caller, () => admin.rest('PATCH', `/v1/keys/${id}`, { model_allowlist: ['mock-chat'] }))
    expect(Object.keys(outcomes)).toEqual(['answered'])
  }, 60_000)

  it.concurrent('a stream of a revoked key is notified and ended within 5 s, and its output is charged', async () => {
    const admin = await newOrganization(operator, service)
    const { id, caller } = await createKey(admin, {})
    const { abandoned } = mock
    let response!: Response
    // The machine may be too busy for the first. The status comes with the first piece.
    await eventually(async () => {
      response = await fetch(`${service.rest}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'mock-chat', stream: true, messages: [{ role: 'user', content: 'hang' }] }),
      })
      return response.status === 200
    }, 30_000)
    const text = response.text()
    await eventually(async () => (await admin.rest('DELETE', `/v1/keys/${id}`)).status === 200, 30_000)
    expect(await text).toContain('"code":"invalid_api_key"')
    await eventually(() => mock.abandoned === abandoned + 1)
    await eventually(async () => (await admin.rest('GET', '/v1/usage')).body.data?.length === 1, 10_000)
  }, 60_000)

  it.concurrent('accepted work of a revoked key is finished by its former rules', async () => {
    const admin = await newOrganization(operator, service)
    const collection = await newCollection(admin, 'mock-embed-slow')
    const { id, caller } = await createKey(admin, { scopes: ['knowledge:read', 'knowledge:write'] })
    const file = (await caller.rest('POST', '/v1/files', { file_name: 'long.md', content_base64: base64(longText()) })).body
    const attached = (await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: file.message.id })).body
    expect((await admin.rest('DELETE', `/v1/keys/${id}`)).status).toBe(200)
    expect(await settled(admin, collection.id, attached.id)).toMatchObject({ status: 'ready' })
    expect(await addDocument(admin, collection.id, 'b.txt', 'Another.')).toMatchObject({ status: 'ready' })
  }, 120_000)
}

describe('Rules of an organization', () =>
  rulesInForce(startFiveProcesses, { inference: 2, gateway: 2 }, [POLICY, SPEND_LIMIT, REVOCATION, ...OTHERS]))

await onBothEngines('Rules of an organization over two replicas of billing', (start) => {
  describe('Rules of an organization over two replicas of billing', () =>
    rulesInForce(start, { billing: 2, inference: 2, gateway: 2 }, [POLICY, SPEND_LIMIT, REVOCATION]))
})

describe('Runs and documents in flight', () => {
  let mock: MockEngine
  let service: Service
  let operator: Caller
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: testCatalog(mock.url) })
    operator = createCaller(service, service.key)
  }, 180_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  }, 60_000)
  const createKey = async (admin: Caller, fields: object) => {
    const { body } = await admin.rest('POST', '/v1/keys', { name: 'app', ...fields })
    return { id: body.id as string, caller: createCaller(service, body.key) }
  }

  /** A workflow whose second prompt waits until the first is answered, which takes 300 ms. */
  const chain = (nodes: number) => ({
    name: 'Chain',
    definition: {
      nodes: Array.from({ length: nodes }, (_, i) => ({
        id: `n${i}`,
        type: 'chat',
        model: 'mock-chat',
        messages: [{ role: 'user', content: `${i === 0 ? '' : `{{ nodes.n${i - 1}.text }} `}slow` }],
      })),
      output: `{{ nodes.n${nodes - 1}.text }}`,
    },
  })

  const started = async (caller: Caller, workflow: Json): Promise<Json> => {
    const { status, body } = await caller.rest('POST', `/v1/workflows/${workflow.id}/runs`, {})
    expect([status, body.error]).toEqual([200, null])
    return body
  }
  const created = async (caller: Caller): Promise<Json> => {
    const { status, body } = await caller.rest('POST', '/v1/workflows', { code: 'chain', ...chain(40) })
    expect([status, body.error]).toEqual([201, undefined])
    return body
  }

  it('stop at their next call when the organization becomes local_only: a workflow and a document', async () => {
    const admin = await newOrganization(operator, service)
    const workflow = await created(admin)
    const run = await started(admin, workflow)
    const collection = await newCollection(admin, 'mock-embed-slow')
    const file = (await admin.rest('POST', '/v1/files', { file_name: 'long.md', content_base64: base64(longText(400)) })).body
    const attached = (await admin.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: file.message.id })).body
    const runNow = async () => (await admin.rest('GET', `/v1/workflow-runs/${run.id}`)).body as Json
    const before = mock.requests.length
    await eventually(() => mock.requests.slice(before).filter(({ input }) => input !== undefined).length > 1, 60_000)
    await eventually(async () => (await runNow()).nodes.some(({ state }: Json) => state === 'done'), 60_000)

    expect((await admin.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })).status).toBe(200)
    const respondedAt = performance.now()
    await eventually(async () => (await runNow()).status === 'failed', 60_000)
    expect((await runNow()).error.code).toBe('residency_policy_violation')
    expect(await settled(admin, collection.id, attached.id)).toMatchObject({
      status: 'failed',
      error: { code: 'residency_policy_violation' },
    })
    expect(arrivedAfter(mock, respondedAt)).toEqual([])
  }, 120_000)

  it('end at their next call when their key is revoked, or may run nothing any more', async () => {
    const admin = await newOrganization(operator, service)
    const workflow = await created(admin)
    for (const [code, change] of [
      ['invalid_api_key', (id: string) => admin.rest('DELETE', `/v1/keys/${id}`)],
      ['permission_denied', (id: string) => admin.rest('PATCH', `/v1/keys/${id}`, { scopes: ['inference'] })],
    ] as const) {
      const { id, caller } = await createKey(admin, { scopes: ['agents'] })
      const before = mock.chats
      const run = await started(caller, workflow)
      await eventually(() => mock.chats > before, 30_000)
      expect((await change(id)).status).toBe(200)
      const respondedAt = performance.now()
      const runNow = async () => (await admin.rest('GET', `/v1/workflow-runs/${run.id}`)).body as Json
      await eventually(async () => (await runNow()).status === 'failed', 30_000)
      expect((await runNow()).error.code).toBe(code)
      expect(arrivedAfter(mock, respondedAt)).toEqual([])
    }
  }, 120_000)
})

/** What the engine was sent after a moment; with `messages`, what has exactly these. */
function arrivedAfter({ arrivals }: MockEngine, momentMs: number, messages?: unknown) {
  const late = arrivals.filter(({ atMs }) => atMs > momentMs).map(({ body }) => body)
  return messages ? late.filter((body) => isDeepStrictEqual(body.messages, messages)) : late
}

/** Some 100 passages, unless told otherwise, which are embedded 16 at a time. */
function longText(parts = 100): string {
  return Array.from({ length: parts }, (_, i) => `# Part ${i}\n\n${`It speaks of matter ${i}. `.repeat(30)}`).join('\n\n')
}
