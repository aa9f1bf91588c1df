import { createClient } from 'graphql-ws'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, type ServiceOptions, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const SECRET_TEXT = 'a-name-that-nobody-may-read'

/** The lines of all processes. */
function linesOf({ processes }: Service): readonly Json[] {
  return [...processes.values()].flatMap(({ errors }) =>
    errors
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line)),
  )
}

async function lineOf(service: Service, fits: (line: Json) => boolean): Promise<Json> {
  const find = () => linesOf(service).filter((line) => line.msg === 'request' && fits(line))
  await eventually(() => find().length > 0)
  expect(find()).toHaveLength(1)
  return find()[0]
}

const STARTS: readonly (readonly [string, (options: ServiceOptions) => Promise<Service>])[] = [
  ['one process', startEmbedded],
  ['five processes', startFiveProcesses],
]

describe.each(STARTS)('Access log of %s', (_name, start) => {
  let engine: MeteredEngine
  let service: Service
  let caller: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    service = await start({ catalog: mockCatalog(engine.url), env: { KIS_LOG_LEVEL: 'info', KIS_SLOW_MS: '1' } })
    caller = await newOrganization(createCaller(service, service.key), service)
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
  })

  const chat = (script: Script, more: object) =>
    fetch(`${service.rest}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: JSON.stringify(script) }], ...more }),
    })

  it.each([
    ['unary', {}],
    ['streamed', { stream: true }],
  ])('attributes a %s chat to its caller, with usage and cost', async (kind, more) => {
    const response = await chat({ id: kind, pieces: 5, usage: 'end' }, more)
    const text = await response.text()
    expect(response.status, text).toBe(200)
    const line = await lineOf(service, ({ requestId }) => requestId === response.headers.get('x-request-id'))
    expect(line).toMatchObject({
      organizationId: caller.organizationId,
      apiKeyId: expect.stringMatching(/^key_/),
      method: 'POST',
      route: '/v1/chat/completions',
      operation: expect.stringMatching(/^(mutation|subscription) /),
      status: 200,
      durationMs: expect.any(Number),
      firstByteMs: expect.any(Number),
      inputTokens: METERED_INPUT_TOKENS,
      outputTokens: 5,
      // 30 tokens for 1 USD a million, and 5 for 2 USD.
      costUsd: '0.00004',
    })
    expect(line).not.toHaveProperty('clientLeft')
  })

  it('records that a client disconnected from its stream', async () => {
    const leaving = new AbortController()
    const response = await fetch(`${service.rest}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'mock-chat',
        stream: true,
        messages: [{ role: 'user', content: JSON.stringify({ id: 'left', pieces: 5, usage: 'end', allowed: 1 } satisfies Script) }],
      }),
      signal: leaving.signal,
    })
    await response.body!.getReader().read()
    leaving.abort()
    const line = await lineOf(service, ({ requestId }) => requestId === response.headers.get('x-request-id'))
    expect(line).toMatchObject({ clientLeft: true, status: 200, organizationId: caller.organizationId })
  })

  it('has no warning of clients that disconnect during a query, a mutation or a stream', async () => {
    const query = (kind: string) =>
      `${kind} Left($input: ChatCompletionInput!) { ${kind === 'mutation' ? 'createChatCompletion(input: $input) { id }' : 'chatCompletion(input: $input) { textDelta }'} }`
    const script = (id: string) => ({
      model: 'mock-chat',
      messages: [{ role: 'user', content: JSON.stringify({ id, pieces: 5, usage: 'end', allowed: 0 } satisfies Script) }],
    })
    const warnings = () => linesOf(service).filter(({ level, msg }) => level >= 40 && !/^slow request$|blocked/.test(msg))
    const before = warnings().length
    for (const [id, url, accept, body] of [
      [
        'left-mutation',
        service.graphql,
        'application/json',
        (request: Json) => ({ query: query('mutation'), variables: { input: { request } } }),
      ],
      [
        'left-events',
        service.graphql,
        'text/event-stream',
        (request: Json) => ({ query: query('subscription'), variables: { input: { request } } }),
      ],
      ['left-chat', `${service.rest}/v1/chat/completions`, 'application/json', (request: Json) => request],
      ['left-stream', `${service.rest}/v1/chat/completions`, 'application/json', (request: Json) => ({ ...request, stream: true })],
    ] as const) {
      const leaving = new AbortController()
      const response = fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', accept },
        body: JSON.stringify(body(script(id))),
        signal: leaving.signal,
      }).then((response) => response.text())
      await Promise.race([response, eventually(() => engine.calls.has(id))])
      leaving.abort()
      await expect(response).rejects.toMatchObject({ name: 'AbortError' })
      await eventually(() => typeof engine.calls.get(id)?.closedAt === 'number')
    }
    // What is left of them is over when a later call has its line.
    const { headers } = await caller.rest('GET', '/v1/wallet')
    await lineOf(service, ({ requestId }) => requestId === headers.get('x-request-id'))
    expect(warnings().slice(before)).toEqual([])
  })

  it('has path templates, error codes, and nothing that a caller wrote', async () => {
    const missing = await caller.rest('GET', '/v1/collections/col_0123456789abcdef01234567')
    expect(missing.status).toBe(404)
    const unknown = await caller.rest('GET', `/v1/${SECRET_TEXT}`)
    expect(unknown.status).toBe(404)
    const unauthenticated = await fetch(`${service.rest}/v1/collections?name_contains=${SECRET_TEXT}`, {
      headers: { authorization: 'Bearer kis_live_nonsense' },
    })
    expect(unauthenticated.status).toBe(401)
    const found = await lineOf(service, ({ route, status }) => route === '/v1/collections/:id' && status === 404)
    expect(found).toMatchObject({ error: expect.any(String), organizationId: caller.organizationId })
    await lineOf(service, ({ route, status }) => route === 'none' && status === 404)
    const refused = await lineOf(service, ({ route, status }) => route === '/v1/collections' && status === 401)
    expect(refused).not.toHaveProperty('organizationId')
    expect([...service.processes.values()].map(({ errors }) => errors).join()).not.toContain(SECRET_TEXT)
  })

  it('names GraphQL operations, over HTTP and at their end over sockets', async () => {
    await caller.graphql('query Told { organization { id } }')
    expect(await lineOf(service, ({ operation }) => operation === 'query Told')).toMatchObject({
      route: '/graphql',
      method: 'POST',
      status: 200,
      organizationId: caller.organizationId,
    })
    const client = createClient({
      url: service.graphql.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${caller.key}` },
    })
    for await (const _result of client.iterate({ query: 'query OverASocket { organization { id } }' }));
    await client.dispose()
    expect(await lineOf(service, ({ operation }) => operation === 'query OverASocket')).toMatchObject({
      route: 'socket',
      method: 'WS',
      status: 200,
      organizationId: caller.organizationId,
      apiKeyId: expect.stringMatching(/^key_/),
    })
  })

  it('explains where a slow request spent its time', async () => {
    const response = await chat({ id: 'slow', pieces: 1, usage: 'end' }, {})
    await response.text()
    const requestId = response.headers.get('x-request-id')
    const slow = () => linesOf(service).filter((line) => line.msg === 'slow request' && line.requestId === requestId)
    const outer = () => slow().find(({ route }) => route !== '/graphql')
    await eventually(() => outer() !== undefined)
    expect(outer()).toMatchObject({ level: 40, fetchCount: expect.any(Number) })
    expect(outer()?.fetches.join('\n')).toMatch(/^gateway: \w+ at \d+ ms took \d+ ms$/m)
  })

  it('has no lines of health checks', async () => {
    for (const path of ['/healthz', '/readyz']) await (await fetch(service.rest + path)).text()
    await caller.rest('GET', '/v1/models')
    await lineOf(service, ({ route }) => route === '/v1/models')
    expect(linesOf(service).filter(({ route }) => route === '/healthz' || route === '/readyz' || route === undefined)).toEqual(
      linesOf(service).filter(({ msg }) => msg !== 'request' && msg !== 'slow request'),
    )
  })
})
