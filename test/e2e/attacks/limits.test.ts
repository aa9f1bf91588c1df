import OpenAI, { RateLimitError } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const PLANS =
  '  narrow: { storage_bytes: 1000, vectors: 3, max_file_bytes: 2000, requests_per_minute: 100, tokens_per_minute: null, concurrency: 2 }\n'
const hello = (content = 'Hello') => ({ model: 'mock-chat', messages: [{ role: 'user' as const, content }], max_completion_tokens: 100 })
/** As Go writes durations, the form of the reset headers. */
const DURATION = /^(\d+h)?(\d+m)?\d+(\.\d+)?m?s$/

function readLimits(headers: Headers) {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('x-ratelimit-')))
}

describe('Rate limits of a key, by the official client', () => {
  let mock: MockEngine
  let service: Service
  let admin: Caller
  let narrow: Caller
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: mockCatalog(mock.url) + PLANS })
    const operator = createCaller(service, service.key)
    admin = await newOrganization(operator, service)
    narrow = await newOrganization(operator, service, { plan: 'narrow' })
  })
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })
  async function keyWith(fields: object): Promise<Caller> {
    const { status, body } = await admin.rest('POST', '/v1/keys', { name: 'limited', ...fields })
    expect([status, body]).toMatchObject([201, fields])
    return createCaller(service, body.key)
  }
  const catchRefusal = (call: PromiseLike<unknown>): Promise<RateLimitError> =>
    Promise.resolve(call).then(
      () => Promise.reject(new Error('it was answered')),
      (error) => error,
    )

  it('allow the configured requests per minute, report the rest, and refuse the next', async () => {
    const { openai } = await keyWith({ requests_per_minute: 5 })
    for (const remaining of ['4', '3', '2', '1', '0']) {
      const { response } = await openai.chat.completions.create(hello()).withResponse()
      expect(readLimits(response.headers)).toEqual({
        'x-ratelimit-limit-requests': '5',
        'x-ratelimit-remaining-requests': remaining,
        'x-ratelimit-reset-requests': expect.stringMatching(DURATION),
      })
    }
    const { chats } = mock
    const refusal = await catchRefusal(openai.chat.completions.create(hello()))
    expect(refusal).toBeInstanceOf(RateLimitError)
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' })
    const headers = refusal.headers!
    expect(readLimits(headers)).toMatchObject({
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': expect.stringMatching(DURATION),
    })
    const retryMs = Number(headers.get('retry-after-ms'))
    expect(retryMs > 0 && retryMs <= 12_000).toBe(true)
    expect(headers.get('retry-after')).toBe(String(Math.ceil(retryMs / 1_000)))
    expect(headers.get('x-should-retry')).toBe('true')
    expect(mock.chats).toBe(chats)
  })

  it('make the client wait and retry', async () => {
    const { key, openai } = await keyWith({ requests_per_minute: 60 })
    await Promise.all(Array.from({ length: 60 }, () => openai.embeddings.create({ model: 'mock-embed', input: 'a' })))
    const statuses: number[] = []
    const patient = new OpenAI({
      baseURL: `${service.rest}/v1`,
      apiKey: key,
      maxRetries: 3,
      async fetch(url, init) {
        const response = await fetch(url, init)
        statuses.push(response.status)
        return response
      },
    })
    expect((await patient.chat.completions.create(hello())).usage?.total_tokens).toBe(25)
    expect(statuses.at(-1)).toBe(200)
    expect(statuses.slice(0, -1).every((status) => status === 429)).toBe(true)
  })

  it('report tokens with every operation, and with the first event of a stream', async () => {
    const { openai, graphql } = await keyWith({ tokens_per_minute: 300 })
    const facts = ['limit', 'remaining', 'reset'].map((fact) => `x-ratelimit-${fact}-tokens`)
    const responses = [
      openai.chat.completions.create(hello()).asResponse(),
      openai.embeddings.create({ model: 'mock-embed', input: 'a' }).asResponse(),
      openai.chat.completions.create({ ...hello(), stream: true }).asResponse(),
    ]
    for (const { headers } of await Promise.all(responses)) {
      expect(Object.keys(readLimits(headers)).sort()).toEqual([...facts].sort())
      expect(headers.get(facts[0]!)).toBe('300')
      expect(Number(headers.get(facts[1]!))).toBeLessThan(300)
      expect(headers.get('access-control-expose-headers')).toContain(facts[2])
    }
    const rateLimits = 'rateLimits { requests { limit } tokens { limit remaining resetMs } }'
    const result = await graphql(`mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { ${rateLimits} } }`, {
      input: { request: hello() },
    })
    expect(result).toEqual({
      data: {
        createChatCompletion: {
          rateLimits: { requests: null, tokens: { limit: 300, remaining: expect.any(Number), resetMs: expect.any(Number) } },
        },
      },
    })
  })

  it.each([
    { path: '/v1/messages', body: { model: 'mock-chat', max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] } },
    { path: '/v1/responses', body: { model: 'mock-chat', max_output_tokens: 50, input: 'Hello' } },
  ])('apply to $path, plain and streamed', async ({ path, body }) => {
    const { rest } = await keyWith({ requests_per_minute: 2 })
    for (const stream of [false, true]) {
      const { status, headers } = await rest('POST', path, { ...body, stream })
      expect([status, headers.get('x-ratelimit-remaining-requests')]).toEqual([200, stream ? '0' : '1'])
    }
    const { status, headers } = await rest('POST', path, body)
    expect([status, headers.get('x-ratelimit-remaining-requests'), headers.get('x-should-retry')]).toEqual([429, '0', 'true'])
    expect(Number(headers.get('retry-after-ms'))).toBeGreaterThan(0)
  })

  it('count an idempotent replay as a request, and do not count a conflict', async () => {
    const { key } = await keyWith({ requests_per_minute: 2 })
    const send = (request: object = hello()) =>
      fetch(`${service.rest}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': 'once' },
        body: JSON.stringify(request),
      })
    const responses = [await send(), await send(), await send(hello('Another')), await send()]
    expect(responses.map(({ status, headers }) => [status, headers.get('idempotent-replayed'), readLimits(headers)])).toMatchObject([
      [200, null, { 'x-ratelimit-remaining-requests': '1' }],
      [200, 'true', { 'x-ratelimit-remaining-requests': '0' }],
      [409, null, { 'x-ratelimit-remaining-requests': '0' }],
      [429, null, { 'x-ratelimit-remaining-requests': '0' }],
    ])
    expect(Number(responses[3]!.headers.get('retry-after-ms'))).toBeGreaterThan(0)
  })

  describe('count as a request', () => {
    const SCOPES = { scopes: ['inference', 'knowledge:read', 'billing:read'] }
    const TWICE = { ...SCOPES, requests_per_minute: 2 }
    const file = Buffer.from('a line of text\n'.repeat(150_000))
    const tokens = { model: 'mock-chat', messages: hello().messages }
    const piece = (id: string, offset: number) => `{ fileContent(id: "${id}", offset: ${offset}, length: 1024) { length } }`
    const remaining = async (caller: Caller) =>
      (await caller.graphql('{ rateLimits { requests { remaining } } }')).data.rateLimits.requests.remaining
    async function upload(): Promise<string> {
      const form = new FormData()
      form.set('file', new File([file], 'lines.txt'))
      return (await admin.rest('POST', '/v1/files', form)).body.message.id
    }

    it.each([
      { name: 'a quote', send: (caller: Caller) => caller.rest('POST', '/v1/chat/completions/quote', hello()) },
      { name: 'count_tokens', send: (caller: Caller) => caller.rest('POST', '/v1/messages/count_tokens', tokens) },
      { name: 'an export of usage', send: (caller: Caller) => caller.rest('GET', '/v1/usage?format=csv') },
      { name: 'the download of a file', send: (caller: Caller, id: string) => caller.rest('GET', `/v1/files/${id}/content`) },
    ])('$name, of any size', async ({ send }) => {
      const [caller, id] = [await keyWith(TWICE), await upload()]
      const responses = [await send(caller, id), await send(caller, id), await send(caller, id)]
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(responses[2]!.headers.get('x-ratelimit-remaining-requests')).toBe('0')
      expect(Number(responses[2]!.headers.get('retry-after-ms'))).toBeGreaterThan(0)
    })

    it('each part of a file in GraphQL', async () => {
      const [caller, id] = [await keyWith(TWICE), await upload()]
      const codeOf = async (offset: number) => (await caller.graphql(piece(id, offset))).errors?.[0]?.extensions.code ?? null
      expect([await codeOf(0), await codeOf(1024), await codeOf(2048)]).toEqual([null, null, 'RATE_LIMIT_EXCEEDED'])
    })

    it('the path of a download, which serves 16 times', async () => {
      const [caller, id] = [await keyWith(TWICE), await upload()]
      const sign = async () => caller.graphql(`{ fileDownload(id: "${id}") { path } }`)
      const { path } = (await sign()).data.fileDownload
      const codes: number[] = []
      for (let time = 0; time < 17; time++) {
        // Neither of these makes it another path.
        const sent = time % 2 ? `${path}&time=${time}` : path.replace(/(?=.$)/, '%20'.repeat(time))
        const response = await fetch(new URL(sent, service.graphql))
        await response.arrayBuffer()
        codes.push(response.status)
      }
      expect(codes).toEqual([...Array(16).fill(200), 429])
      expect([(await sign()).errors, (await sign()).errors?.[0]?.extensions.code]).toEqual([undefined, 'RATE_LIMIT_EXCEEDED'])
    })

    it.each([
      { name: 'malformed, by REST', path: '/v1/chat/completions', body: `{"model": "${'a'.repeat(100_000)}`, status: 400 },
      { name: 'longer than the window', path: '/v1/chat/completions', body: JSON.stringify(hello('word '.repeat(1_500_000))), status: 400 },
      {
        name: 'of wrong variables',
        path: '/graphql',
        body: JSON.stringify({ query: 'query($a: ID!) { file(id: $a) { id } }', variables: { b: 'a'.repeat(100_000) } }),
        status: 400,
      },
      { name: 'malformed, by GraphQL', path: '/graphql', body: `{"query": "${'a'.repeat(100_000)}`, status: 400 },
    ])('a refused body above 64 KiB, $name: the next is not read until a request is free', async ({ path, body, status }) => {
      const caller = await keyWith({ requests_per_minute: 1 })
      const post = async () => {
        const address = path === '/graphql' ? service.graphql : service.rest + path
        const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' }
        const response = await fetch(address, { method: 'POST', headers, body })
        await response.text()
        return response
      }
      expect((await post()).status).toBe(status)
      await eventually(async () => (await remaining(caller)) === 0)
      const refused = await post()
      expect(refused.status).toBe(429)
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    })

    const LONG = 'word '.repeat(30_000)
    const CHAT = 'mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { id } }'
    it.each([
      { path: '/v1/chat/completions', body: hello(LONG) },
      { path: '/graphql', body: { query: CHAT, variables: { input: { request: hello(LONG) } } } },
    ])('a body above 64 KiB that its limits refuse after it was read, at $path', async ({ path, body }) => {
      const caller = await keyWith({ requests_per_minute: 2, tokens_per_minute: 1_000 })
      const address = path === '/graphql' ? service.graphql : service.rest + path
      const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' }
      const post = async () => (await fetch(address, { method: 'POST', headers, body: JSON.stringify(body) })).text()
      expect(await post()).toContain('A later request of this size fails')
      await eventually(async () => (await remaining(caller)) === 1)
      await post()
      await eventually(async () => (await remaining(caller)) === 0)
      // It is not read.
      expect(await post()).toContain('the key may make 2 requests a minute')
      expect(await remaining(caller)).toBe(0)
    })

    it('a refused body above 64 KiB whose client accepts events', async () => {
      const caller = await keyWith({ requests_per_minute: 2 })
      const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', accept: 'text/event-stream' }
      const body = JSON.stringify({ query: '{ nothing }', variables: { a: LONG } })
      const response = await fetch(service.graphql, { method: 'POST', headers, body })
      expect(await response.text()).toContain('nothing')
      await eventually(async () => (await remaining(caller)) === 1)
    })

    const createRequest = (query: string, variables: object) => ({ path: '/graphql', body: { query, variables } })
    const chat = { request: hello(LONG) }
    const form = () => {
      const body = new FormData()
      body.set('file', new File([file], 'lines.txt'))
      return body
    }
    it.each<{ name: string; path: string; body: object | (() => FormData); accept?: string; requests?: number }>([
      { name: 'an operation that calls no model', ...createRequest('{ __typename }', { a: LONG }) },
      {
        name: 'an operation that skips its call',
        ...createRequest(
          'mutation ($input: ChatCompletionInput!) { __typename createChatCompletion(input: $input) @skip(if: true) { id } }',
          {
            input: chat,
          },
        ),
      },
      { name: 'an operation whose client accepts events', accept: 'text/event-stream', ...createRequest('{ __typename }', { a: LONG }) },
      { name: 'a file as JSON', path: '/v1/files', body: { file_name: 'long.txt', content_base64: btoa(LONG) } },
      { name: 'a chat by GraphQL', ...createRequest(CHAT, { input: chat }) },
      { name: 'a chat by REST', path: '/v1/chat/completions', body: hello(LONG) },
      { name: 'a stream', path: '/v1/chat/completions', body: { ...hello(LONG), stream: true } },
      { name: 'a quote', path: '/v1/chat/completions/quote', body: hello(LONG) },
      { name: 'a file as a form', path: '/v1/files', body: form, requests: 0 },
    ])('a successful body above 64 KiB, if nothing else counts it: $name', async ({ path, body, accept, requests = 1 }) => {
      const caller = await keyWith({ scopes: ['inference', 'knowledge:read', 'knowledge:write'], requests_per_minute: 10 })
      const isForm = typeof body === 'function'
      const response = await fetch(path === '/graphql' ? service.graphql : service.rest + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${caller.key}`,
          ...(!isForm && { 'content-type': 'application/json' }),
          ...(accept && { accept }),
        },
        body: isForm ? body() : JSON.stringify(body),
      })
      const text = await response.text()
      expect([response.ok, text]).toEqual([true, expect.not.stringContaining('"errors"')])
      await eventually(async () => (await remaining(caller)) === 10 - requests)
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(await remaining(caller)).toBe(10 - requests)
    })

    it.each(['/graphql', '/v1/files'])('each of many concurrent large bodies, at %s: those that wait are not read', async (path) => {
      const caller = await keyWith({ scopes: ['inference', 'knowledge:write'], requests_per_minute: 1 })
      const text = 'x'.repeat(12_000_000)
      const body = JSON.stringify(
        path === '/graphql' ? { query: '{ __typename }', variables: { text } } : { file_name: 'x.txt', content_base64: text },
      )
      const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' }
      const post = async () => {
        const response = await fetch(path === '/graphql' ? service.graphql : service.rest + path, { method: 'POST', headers, body })
        await response.text()
        return response.status
      }
      const codes = await Promise.all(Array.from({ length: 16 }, post))
      // Five fit at once.
      expect(codes.filter((code) => code !== 429).length).toBeLessThanOrEqual(7)
    })

    it('a body above 64 KiB whose client disconnects', async () => {
      const caller = await keyWith({ requests_per_minute: 10 })
      const gone = new AbortController()
      const slow = fetch(`${service.rest}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(hello(LONG)),
        signal: gone.signal,
      })
      setTimeout(() => gone.abort(), 20)
      await slow.catch(() => undefined)
      await eventually(async () => (await remaining(caller)) < 10)
    })

    it('no refused smaller body, and nothing cheap', async () => {
      const caller = await keyWith({ ...SCOPES, requests_per_minute: 1 })
      for (let time = 0; time < 3; time++) {
        expect((await caller.rest('POST', '/v1/chat/completions', '{"model": ')).status).toBe(400)
        expect((await caller.rest('GET', '/v1/models')).status).toBe(200)
        expect((await caller.rest('GET', '/v1/usage')).status).toBe(200)
      }
      expect((await caller.graphql('{ rateLimits { requests { limit remaining } } }')).data).toEqual({
        rateLimits: { requests: { limit: 1, remaining: 1 } },
      })
    })
  })

  it('are not reported to a key without limits', async () => {
    const { response } = await admin.openai.chat.completions.create(hello()).withResponse()
    expect(readLimits(response.headers)).toEqual({})
  })

  it('refuse permanently what never fits, in REST and GraphQL, and take nothing for it', async () => {
    const caller = await keyWith({ tokens_per_minute: 90 })
    const refusal = await catchRefusal(caller.openai.chat.completions.create(hello()))
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
    expect(refusal.headers!.get('x-should-retry')).toBe('false')
    expect(refusal.headers!.get('retry-after')).toBeNull()
    expect(readLimits(refusal.headers!)).toMatchObject({ 'x-ratelimit-remaining-tokens': '90', 'x-ratelimit-reset-tokens': '0s' })
    const { errors } = await caller.graphql(`mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { id } }`, {
      input: { request: hello() },
    })
    expect(errors).toMatchObject([
      {
        extensions: {
          code: 'RATE_LIMIT_EXCEEDED',
          shouldRetry: false,
          rateLimits: { requests: null, tokens: { limit: 90, remaining: 90, resetMs: 0 } },
        },
      },
    ])
  })

  it('free the slot of a stream that its client aborts, at the concurrency limit of the plan', async () => {
    const stops = [new AbortController(), new AbortController()]
    for (const { signal } of stops) {
      const stream = await narrow.openai.chat.completions.create({ ...hello('Please hang'), stream: true }, { signal })
      expect((await stream[Symbol.asyncIterator]().next()).done).toBe(false)
    }
    const refusal = await catchRefusal(narrow.openai.chat.completions.create(hello()))
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
    expect(refusal.message).toContain('2 calls in progress')
    expect(refusal.headers!.get('retry-after-ms')).toBe('1000')
    expect(readLimits(refusal.headers!)).toMatchObject({ 'x-ratelimit-limit-requests': '100' })
    for (const stop of stops) stop.abort()
    await eventually(async () => (await narrow.rest('POST', '/v1/chat/completions', hello())).status === 200)
    await eventually(async () => (await narrow.rest('GET', '/v1/wallet')).body.held_usd === '0')
  })
})
