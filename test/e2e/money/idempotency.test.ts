import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { BillingTap } from '../../support/billing-tap.ts'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, type Json, newOrganization, type RestResponse } from '../../support/client.ts'
import { wav } from '../../support/data/audio.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { MongoProxy } from '../../support/engines/mongodb-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, freePorts, type Service, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

/** 16 input tokens at 1,000 nano-USD, 4 cached ones at 500, 5 of output at 2,000. */
const CHAT_USD = '0.000028'
/** From the start of the next process until a killed call is judged: a few seconds, and what a busy machine takes. */
const JUDGED_MS = 150_000

const request = (text: string) => ({ model: 'mock-chat', messages: [{ role: 'user' as const, content: text }] })

async function post(service: Pick<Service, 'rest'>, caller: Caller, path: string, body: unknown, key?: string): Promise<RestResponse> {
  const headers = {
    authorization: `Bearer ${caller.key}`,
    'content-type': 'application/json',
    ...(key !== undefined && { 'idempotency-key': key }),
  }
  const response = await fetch(`${service.rest}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text.startsWith('{') ? JSON.parse(text) : text }
}

const listUsage = async (caller: Caller): Promise<Json[]> => (await caller.rest('GET', '/v1/usage?limit=100')).body.data
const isReplayed = (headers: Headers) => headers.get('idempotent-replayed') === 'true'

describe('Idempotent repeats', () => {
  let mock: MockEngine
  let service: Service
  let caller: Caller
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: mockCatalog(mock.url) })
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    caller = await newOrganization(createCaller(service, service.key), service)
  })

  it('return the first response of every model call, which is charged once', async () => {
    const options = { headers: { 'Idempotency-Key': 'the-same' } }
    const { openai } = caller
    const file = new File([wav(2)], 'sound.wav')
    const calls: readonly (() => Promise<{ readonly data: unknown; readonly response: Response }>)[] = [
      () => openai.chat.completions.create(request('Good morning'), options).withResponse(),
      () =>
        openai.embeddings.create({ model: 'mock-embed', input: ['a', 'b'] }, { headers: { 'Idempotency-Key': 'embed' } }).withResponse(),
      () => openai.audio.transcriptions.create({ model: 'mock-speech', file }, { headers: { 'Idempotency-Key': 'speech' } }).withResponse(),
      () =>
        openai.responses
          .create({ model: 'mock-chat', input: 'Good evening' }, { headers: { 'Idempotency-Key': 'response' } })
          .withResponse(),
    ]
    for (const call of calls) {
      const first = await call()
      const before = mock.requests.length
      const again = await call()
      expect([isReplayed(first.response.headers), isReplayed(again.response.headers)]).toEqual([false, true])
      if ((first.data as Json).object !== 'response') expect(again.data).toEqual(first.data)
      else expect((again.data as Json).output_text).toBe((first.data as Json).output_text)
      expect(mock.requests.length).toBe(before)
    }
    expect(await listUsage(caller)).toHaveLength(calls.length)
    await balancedWallet(caller)
  })

  it('return the same chunks of a stream', async () => {
    const streamed = async () => {
      const { data, response } = await caller.openai.chat.completions
        .create({ ...request('Good morning'), stream: true }, { headers: { 'Idempotency-Key': 'stream' } })
        .withResponse()
      const chunks: unknown[] = []
      for await (const chunk of data) chunks.push(chunk)
      return { chunks, isReplayed: isReplayed(response.headers) }
    }
    const before = mock.chats
    const first = await streamed()
    expect(first.chunks.length).toBeGreaterThan(5)
    expect(await streamed()).toEqual({ chunks: first.chunks, isReplayed: true })
    expect([mock.chats - before, (await listUsage(caller)).length]).toEqual([1, 1])
  })

  it('are made safe by the official client, which sends a key with every call if configured', async () => {
    class Safe extends OpenAI {
      protected override idempotencyHeader = 'Idempotency-Key'
    }
    const client = new Safe({ baseURL: `${service.rest}/v1`, apiKey: caller.key, maxRetries: 0 })
    const one = await client.chat.completions.create(request('Good morning'), { idempotencyKey: 'mine' })
    const before = mock.chats
    expect(await client.chat.completions.create(request('Good morning'), { idempotencyKey: 'mine' })).toEqual(one)
    expect(mock.chats).toBe(before)
    await client.chat.completions.create(request('Good morning'))
    expect(mock.chats).toBe(before + 1)
  })

  it('return a response of 15 MB as stored bytes, which count like any other response', async () => {
    const body = request('large')
    const first = await post(service, caller, '/v1/chat/completions', body, 'large')
    const before = mock.chats
    const again = await post(service, caller, '/v1/chat/completions', body, 'large')
    expect([again.status, isReplayed(again.headers), again.headers.get('content-encoding')]).toEqual([200, true, 'gzip'])
    expect(again.headers.get('content-type')).toMatch(/^application\/json/)
    expect(again.body).toEqual(first.body)
    const plain = await fetch(`${service.rest}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${caller.key}`,
        'content-type': 'application/json',
        'idempotency-key': 'large',
        'accept-encoding': 'identity',
      },
      body: JSON.stringify(body),
    })
    expect([plain.headers.get('content-encoding'), await plain.json()]).toEqual([null, first.body])
    expect(mock.chats).toBe(before)

    const query = `mutation ($input: ChatCompletionInput!) {
      createChatCompletion(input: $input) { response replayed responseDownload { path } } }`
    const input = { request: body, idempotencyKey: 'large' }
    const refused = await caller.graphql(query, { input })
    expect(refused.errors).toMatchObject([
      { message: expect.stringContaining('replayAsBytes'), extensions: { code: 'IDEMPOTENCY_CONFLICT' } },
    ])
    const { data } = await caller.graphql(query, { input: { ...input, replayAsBytes: true } })
    expect(data.createChatCompletion).toMatchObject({ response: {}, replayed: true })
    const { path } = data.createChatCompletion.responseDownload
    const part = await fetch(new URL(path, service.graphql), { headers: { range: 'bytes=0-9', 'accept-encoding': 'identity' } })
    expect([part.status, await part.text()]).toEqual([206, JSON.stringify(first.body).slice(0, 10)])
    expect(await (await fetch(new URL(path, service.graphql))).json()).toEqual(first.body)
    expect(await listUsage(caller)).toHaveLength(1)

    const { body: limited } = await caller.rest('POST', '/v1/keys', { name: 'limited', requests_per_minute: 2, scopes: ['inference'] })
    const once = { ...caller, key: limited.key }
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await post(service, once, '/v1/chat/completions', body, 'large')).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  it('call the engine once for fifty concurrent calls, and charge once; the others retry and get the response', async () => {
    const before = mock.chats
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => post(service, caller, '/v1/chat/completions', request('be slow'), 'fifty')),
    )
    const refused = responses.filter(({ status }) => status !== 200)
    for (const { status, body, headers } of refused) {
      expect([status, body.error.code, headers.get('x-should-retry')]).toEqual([409, 'idempotency_conflict', 'true'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    const later = await post(service, caller, '/v1/chat/completions', request('be slow'), 'fifty')
    expect([later.status, isReplayed(later.headers), later.body.id]).toEqual([200, true, 'chatcmpl-mock'])
    expect(mock.chats).toBe(before + 1)
    expect(await listUsage(caller)).toMatchObject([{ amount_usd: CHAT_USD }])
    await balancedWallet(caller)
  })

  it('are refused permanently for another request, and run again after a failure without a charge', async () => {
    mock.failWith(500)
    expect((await post(service, caller, '/v1/chat/completions', request('Hello'), 'k')).status).toBe(502)
    mock.failWith(null)
    const first = await post(service, caller, '/v1/chat/completions', request('Hello'), 'k')
    expect([first.status, isReplayed(first.headers)]).toEqual([200, false])
    const other = await post(service, caller, '/v1/chat/completions', request('Goodbye'), 'k')
    expect([other.status, other.headers.get('x-should-retry'), other.body.error]).toEqual([
      409,
      'false',
      { message: expect.any(String), type: 'invalid_request_error', param: 'Idempotency-Key', code: 'idempotency_conflict' },
    ])
  })

  it('find the response of a call whose client disconnected', async () => {
    const leaving = new AbortController()
    const before = mock.chats
    const left = caller.openai.chat.completions.create(request('wait at the gate'), {
      headers: { 'Idempotency-Key': 'left' },
      signal: leaving.signal,
    })
    left.catch(() => undefined)
    await eventually(() => mock.chats === before + 1)
    leaving.abort()
    await expect(left).rejects.toThrow()
    expect((await post(service, caller, '/v1/chat/completions', request('wait at the gate'), 'left')).status).toBe(409)
    mock.openGate()
    await eventually(async () =>
      isReplayed((await post(service, caller, '/v1/chat/completions', request('wait at the gate'), 'left')).headers),
    )
    expect(mock.chats).toBe(before + 1)
    expect(await listUsage(caller)).toMatchObject([{ amount_usd: CHAT_USD, source: 'provider' }])
    await balancedWallet(caller)
  })

  it.each([
    ['with a space', 'a b', 'invalid_request'],
    ['outside ASCII', 'caf\u00e9', 'invalid_request'],
    ['of 256 characters', 'k'.repeat(256), 'string_above_max_length'],
    ['without a character', '', 'invalid_request'],
  ])('with a key %s are refused, and no engine is called', async (_name, key, code) => {
    const before = mock.requests.length
    for (const [path, body] of [
      ['/v1/chat/completions', request('Hello')],
      ['/v1/chat/completions', { ...request('Hello'), stream: true }],
      ['/v1/embeddings', { model: 'mock-embed', input: 'a' }],
      ['/v1/responses', { model: 'mock-chat', input: 'Hello' }],
    ] as const) {
      const { status, body: response } = await post(service, caller, path, body, key)
      expect([path, status, response.error]).toMatchObject([path, 400, { code, param: 'Idempotency-Key' }])
    }
    expect(mock.requests.length).toBe(before)
    const { errors } = await caller.graphql('mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { id } }', {
      input: { request: request('Hello'), idempotencyKey: key },
    })
    expect(errors?.[0]?.extensions).toMatchObject({ code: code.toUpperCase(), param: 'idempotencyKey' })
  })

  it('are distinguishable from first responses in GraphQL', async () => {
    const send = async () => {
      const query = 'mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { id text cost replayed } }'
      return (await caller.graphql(query, { input: { request: request('Hello'), idempotencyKey: 'g' } })).data.createChatCompletion
    }
    const first = await send()
    expect(first).toMatchObject({ cost: CHAT_USD, replayed: false })
    expect(await send()).toEqual({ ...first, replayed: true })
  })
})

// Both wait for leases to run out.
describe.concurrent('Idempotent repeats after the process of the call was killed', () => {
  it('return an existing response; without one, the call runs again; each is charged once', async () => {
    await using stack = new AsyncDisposableStack()
    const mock = stack.use(await startMockEngine())
    const [billingPort, tapPort] = (await freePorts(2)) as [number, number]
    const tap = stack.use(await BillingTap.start(tapPort, `http://127.0.0.1:${billingPort}`))
    const service: DistributedService = await startFiveProcesses({
      catalog: mockCatalog(mock.url),
      ports: { billing: [billingPort] },
      createEnv: (name): Record<string, string> => (name === 'inference-1' ? { KIS_BILLING_URL: tap.url } : {}),
    })
    stack.defer(() => service.close())
    const operator = createCaller(service, service.key)
    const [responded, working] = [await newOrganization(operator, service), await newOrganization(operator, service)]
    const send = {
      answered: () => post(service, responded, '/v1/chat/completions', request('Good morning'), 'answered'),
      working: () => post(service, working, '/v1/chat/completions', request('wait at the gate'), 'working'),
    }
    const killed = [send.working().catch(() => undefined)]
    await eventually(() => mock.chats === 1, JUDGED_MS)
    // The engine has answered, and the charge is on its way.
    const charging = Promise.withResolvers<void>()
    tap.intercept = ({ operation }) => {
      if (operation !== 'settleHold') return 'pass'
      charging.resolve()
      return 'lose'
    }
    killed.push(send.answered().catch(() => undefined))
    await charging.promise
    await service.restart('inference-1', 'SIGKILL')
    tap.intercept = null
    await Promise.all(killed)

    await eventually(async () => (await send.answered()).status === 200, JUDGED_MS)
    const again = await send.answered()
    expect([isReplayed(again.headers), again.body.id, mock.chats]).toEqual([true, 'chatcmpl-mock', 2])
    expect(await listUsage(responded)).toMatchObject([{ amount_usd: CHAT_USD, source: 'provider' }])
    await balancedWallet(responded)

    mock.openGate()
    await eventually(async () => (await send.working()).status === 200, JUDGED_MS)
    const repeated = await send.working()
    expect([isReplayed(repeated.headers), repeated.body.id, mock.chats]).toEqual([true, 'chatcmpl-mock', 3])
    expect(await listUsage(working)).toMatchObject([{ amount_usd: CHAT_USD, source: 'provider' }])
    await balancedWallet(working)
  }, 400_000)
})

await onEngine('KIS_TEST_MONGODB_URL', 'Loss of the inference store', (url) => {
  describe.concurrent('Loss of the inference store', () => {
    it('refuses idempotent calls with a retry delay, and nothing else', async () => {
      await using stack = new AsyncDisposableStack()
      const mock = stack.use(await startMockEngine())
      const database = newDatabaseName()
      stack.defer(() => dropDatabases(url, `${database}_inference`))
      const proxy = stack.use(await MongoProxy.start(url))
      const [port] = (await freePorts(1)) as [number]
      const service = await startFiveProcesses({
        catalog: mockCatalog(mock.url),
        ports: { inference: [port] },
        createEnv: (name): Record<string, string> =>
          name === 'inference-1' ? { KIS_MONGODB_URL: withDatabase(proxy.through(url), database) } : {},
      })
      stack.defer(() => service.close())
      const caller = await newOrganization(createCaller(service, service.key), service)
      const keyed = () => post(service, caller, '/v1/chat/completions', request('Good morning'), 'k')
      const first = await keyed()
      await proxy.stop()
      const readiness = () => fetch(`http://127.0.0.1:${port}/readyz`)
      await eventually(async () => (await readiness()).status === 503, 30_000)
      expect(await (await readiness()).json()).toMatchObject({ problems: ['document store'] })
      expect((await post(service, caller, '/v1/chat/completions', request('Good morning'))).status).toBe(200)
      const refused = await keyed()
      expect([refused.status, refused.body.error.code, refused.headers.get('x-should-retry')]).toEqual([503, 'service_unavailable', 'true'])
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(mock.chats).toBe(2)
      await proxy.resume()
      await eventually(async () => (await keyed()).status === 200, 90_000)
      const again = await keyed()
      expect([isReplayed(again.headers), again.body]).toEqual([true, first.body])
      await balancedWallet(caller)
    }, 300_000)
  })
})
