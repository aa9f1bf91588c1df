import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { KisError } from '../../subgraphs/common/errors.ts'
import { LargeBodies } from '../../subgraphs/common/server/admission/large-bodies.ts'
import { Origins } from '../../subgraphs/common/server/origins.ts'
import { eventually } from '../support/eventually.ts'
import { shop } from './support/shop.ts'
import { CONFIG, KEY, OTHER_KEY, startGateway, UNKNOWN_KEY } from './support/start.ts'

describe('POST /graphql', () => {
  it('executes a query over several subgraphs', async () => {
    const { post } = await startGateway()
    const { status, headers, body } = await post({ query: '{ me { name } documents { title(prefix: "my ") } }' })
    expect(status).toBe(200)
    expect(headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
    expect(body).toEqual({ data: { me: { name: 'Author 1' }, documents: ['a', 'b', 'c'].map((id) => ({ title: `my Document ${id}` })) } })
  })

  for (const [what, headers] of [
    ['no key', {}],
    ['a malformed key', { authorization: 'Bearer sk-1' }],
    ['an unknown key', { authorization: `Bearer ${UNKNOWN_KEY}` }],
  ] as const) {
    it(`refuses ${what} with 401 INVALID_API_KEY before it reads the body`, async () => {
      const { post, seen } = await startGateway()
      for (const body of [{ query: '{ ping }' }, { query: '{ __schema { queryType { name } } }' }, '{ not JSON']) {
        const response = await post(body, headers)
        expect(response.status).toBe(401)
        expect(response.headers.get('www-authenticate')).toBe('Bearer')
        expect(response.body.errors[0].extensions).toMatchObject({ code: 'INVALID_API_KEY', shouldRetry: false })
      }
      expect(seen.operations).toEqual([])
    })
  }

  it('refuses in the media type of GraphQL over HTTP if the client accepts it, and in JSON otherwise', async () => {
    const { post } = await startGateway()
    for (const [accept, type] of [
      ['application/graphql-response+json,application/json;q=0.9', 'application/graphql-response+json; charset=utf-8'],
      ['application/json', 'application/json; charset=utf-8'],
      ['*/*', 'application/json; charset=utf-8'],
    ] as const) {
      const { headers, body } = await post({ query: '{ ping }' }, { authorization: `Bearer ${UNKNOWN_KEY}`, accept })
      expect(headers.get('content-type')).toBe(type)
      expect(body.errors[0].extensions.code).toBe('INVALID_API_KEY')
    }
  })

  it('refuses multipart requests, and names the routes that accept files', async () => {
    const { url, seen } = await startGateway()
    for (const key of [KEY, UNKNOWN_KEY]) {
      const body = new FormData()
      body.append('operations', JSON.stringify({ query: '{ ping }', variables: { file: null } }))
      body.append('map', JSON.stringify({ 0: ['variables.file'] }))
      body.append('0', new File(['some text'], 'a.txt'))
      const response = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body })
      const { errors } = (await response.json()) as { errors: { message: string; extensions: object }[] }
      if (key === UNKNOWN_KEY) expect(response.status).toBe(401)
      else {
        expect([response.status, errors[0]!.message]).toEqual([400, expect.stringMatching(/`POST \/v1\/files`.*`\/v1\/uploads\/tus`/)])
        expect(errors[0]!.extensions).toMatchObject({ code: 'UNSUPPORTED_VALUE', param: 'content-type', shouldRetry: false })
      }
    }
    expect(seen.operations).toEqual([])
  })

  it('looks a key up once for many concurrent requests', async () => {
    const { post, lookups } = await startGateway()
    await Promise.all(Array.from({ length: 10 }, () => post({ query: '{ ping }' })))
    expect(lookups).toEqual([KEY])
  })

  for (const [what, body, status, code] of [
    ['text that is not GraphQL', { query: '{ ping' }, 400, 'GRAPHQL_PARSE_FAILED'],
    ['an unknown field', { query: '{ pong }' }, 400, 'GRAPHQL_VALIDATION_FAILED'],
    ['a variable that does not fit', { query: 'query ($n: Int) { ping(n: $n) }', variables: { n: 'x' } }, 400, 'INVALID_VARIABLES'],
    ['an unknown operation name', { query: 'query A { ping }', operationName: 'B' }, 400, 'INVALID_REQUEST'],
    ['no query', { variables: {} }, 400, 'INVALID_REQUEST'],
    ['a batch', [{ query: '{ ping }' }, { query: '{ ping }' }], 400, 'INVALID_REQUEST'],
    ['text that is not JSON', '{"query":', 400, 'INVALID_REQUEST'],
    ['a subscription', { query: 'subscription { ticks(count: 1) { n } }' }, 400, 'INVALID_REQUEST'],
    [
      'a subscription with @include at its root',
      { query: 'subscription ($x: Boolean!) { ticks(count: 1) @include(if: $x) { n } }', variables: { x: true } },
      400,
      'GRAPHQL_VALIDATION_FAILED',
    ],
    ['a body above the limit', { query: `{ ping } # ${'x'.repeat(CONFIG.maxBodyBytes)}` }, 413, 'PAYLOAD_TOO_LARGE'],
    [
      'an unknown persisted query',
      { extensions: { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } } },
      200,
      'PERSISTED_QUERY_NOT_FOUND',
    ],
  ] as const) {
    it(`responds with ${status} ${code} to ${what}`, async () => {
      const { post } = await startGateway()
      const response = await post(body)
      expect(response).toMatchObject({ status, body: { errors: [{ extensions: { code } }] } })
      expect(Object.keys(response.body.errors[0].extensions).sort()).toEqual([
        'code',
        'param',
        'retryAfterMs',
        'shouldRetry',
        'type',
        'vendorCode',
      ])
    })
  }

  it('responds with PART_UNAVAILABLE when a subgraph is unreachable', async () => {
    const { links } = shop()
    const unavailable = new KisError('service_unavailable', 'Inference is unavailable at the moment.', { retryAfterMs: 1_000 })
    const inference = { ...links.inference, execute: () => Promise.reject(unavailable) }
    const { post } = await startGateway({ links: { ...links, inference } })
    expect((await post({ query: '{ ping }' })).body.errors[0].extensions).toMatchObject({
      code: 'PART_UNAVAILABLE',
      retryAfterMs: 1_000,
      shouldRetry: true,
    })
  })

  for (const [what, execute] of [
    ['refuses', () => Promise.reject(new KisError('operation_too_complex', 'Too much.'))],
    ['does not begin', async () => ({ errors: [new KisError('operation_too_complex', 'Too much.') as never] })],
  ] as const) {
    it(`reports at each field that a subgraph ${what} the fetch, and returns the data of the others`, async () => {
      const { links } = shop()
      const { post } = await startGateway({ links: { ...links, knowledge: { ...links.knowledge!, execute } } })
      const { body } = await post({ query: '{ ping\n a: documents { id }\n ...B } fragment B on Query { documents { title } }' })
      expect(body.data).toEqual({ ping: 1, a: null, documents: null })
      const extensions = { code: 'OPERATION_TOO_COMPLEX' }
      expect(body.errors).toMatchObject([
        { path: ['documents'], locations: [{ line: 3, column: 31 }], extensions },
        { path: ['a'], locations: [{ line: 2, column: 2 }], extensions },
      ])
    })
  }

  it('reports at each field that a subgraph returns no entity', async () => {
    const { links } = shop()
    const refusal = Object.assign(new KisError('permission_denied', 'Not yours.'), { path: ['_entities'] })
    const billing = { ...links.billing!, execute: async () => ({ data: null, errors: [refusal as never] }) }
    const { post } = await startGateway({ links: { ...links, billing } })
    const { body } = await post({ query: '{ ping documents { author { called: name } } }' })
    expect(body.data).toEqual({ ping: 1, documents: [0, 1, 2].map(() => ({ author: { called: null } })) })
    expect(body.errors).toMatchObject(
      [0, 1, 2].map((index) => ({ path: ['documents', index, 'author', 'called'], extensions: { code: 'PERMISSION_DENIED' } })),
    )
  })

  it('preserves error paths and hides subgraphs, stacks and internal messages', async () => {
    const { post } = await startGateway()
    const { text, body } = await post({ query: '{ documents { boom } me { broken } }' })
    expect(body.data.documents[1]).toEqual({ boom: null })
    const errors = new Map(body.errors.map((error: { path: unknown[] }) => [error.path.join('.'), error]))
    expect(errors.get('documents.1.boom')).toMatchObject({ message: 'No such page.', extensions: { code: 'NOT_FOUND', param: 'page' } })
    expect(errors.get('me.broken')).toMatchObject({ extensions: { code: 'INTERNAL' } })
    expect(text).not.toMatch(/hunter2|serviceName|stack|http:\/\/|valueCompletion/)
  })
})

describe('GET /graphql', () => {
  const get = async (url: string, query: string, headers: Record<string, string>) =>
    fetch(`${url}?query=${encodeURIComponent(query)}`, { headers: { authorization: `Bearer ${KEY}`, ...headers } })

  it('executes queries, and never mutations', async () => {
    const { url } = await startGateway()
    expect(await (await get(url, '{ ping }', {})).json()).toEqual({ data: { ping: 1 } })
    expect((await get(url, 'mutation { poke }', {})).status).toBe(405)
  })

  it('refuses requests that a page of another origin could make a browser send', async () => {
    const { url, seen } = await startGateway()
    // Without a key, which no browser sends by itself, nothing is answered.
    expect((await fetch(`${url}?query=${encodeURIComponent('{ ping }')}`)).status).toBe(401)
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'text/plain' }
    const posted = await fetch(url, { method: 'POST', headers, body: '{"query":"mutation { poke }"}' })
    expect(posted.status).toBe(400)
    expect(seen.operations).toEqual([])
  })
})

describe('Cross-origin access to GraphQL', () => {
  const page = { origin: 'https://app.example.com' }
  const preflight = (url: string, headers: Record<string, string>) =>
    fetch(url, {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,content-type' },
    })
  const readCors = ({ headers }: Response | { headers: Headers }) =>
    ['access-control-allow-origin', 'access-control-expose-headers', 'vary'].map((name) => headers.get(name)?.toLowerCase() ?? null)
  const EXPOSED = 'x-request-id, x-client-request-id, retry-after'

  it('is allowed by default, including errors', async () => {
    const { url, post } = await startGateway()
    const preflightResponse = await preflight(url, page)
    expect(preflightResponse.status).toBe(204)
    expect(Object.fromEntries(preflightResponse.headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-allow-headers': 'authorization,content-type',
    })
    expect(readCors(await post({ query: '{ ping }' }, { ...page, authorization: `Bearer ${KEY}` }))).toEqual(['*', EXPOSED, null])
    expect(readCors(await post({ query: '{ ping }' }, page))).toEqual(['*', EXPOSED, null])
  })

  it('is limited to origins that the operator names, by HTTP and by sockets', async () => {
    const config = { ...CONFIG, origins: new Origins(new Set([page.origin])) }
    const { url, wsUrl } = await startGateway({ config })
    expect(readCors(await preflight(url, page))).toEqual([page.origin, EXPOSED, 'origin, access-control-request-headers'])
    expect(readCors(await preflight(url, { origin: 'https://evil.example.com' }))).toEqual([null, null, 'origin'])
    const opened = (options: object) =>
      new Promise<number | 'open'>((resolve) => {
        const socket = new WebSocket(wsUrl, 'graphql-transport-ws', options)
        socket.on('open', () => resolve('open')).on('unexpected-response', (_request, response) => resolve(response.statusCode!))
        socket.on('open', () => socket.terminate()).on('error', () => undefined)
      })
    expect(await opened(page)).toBe('open')
    expect(await opened({})).toBe('open')
    expect(await opened({ origin: 'https://evil.example.com' })).toBe(403)
  })
})

it('reads two concurrent bodies of unknown length per organization, the next after one ends, and others at any time', async () => {
  // Longer than any whole body takes: an unfinished one that comes after it waits for its place, and is not refused.
  const { url, post } = await startGateway({ bodies: new LargeBodies({ largestBytes: CONFIG.maxBodyBytes, waitMs: 1_000 }) })
  const start = (key = KEY) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const begun = request(url, { method: 'POST', headers, agent: false })
    begun.on('error', () => undefined)
    begun.write('{"query":')
    return begun
  }
  const whole = (key = KEY) =>
    new Promise<number | undefined>((resolve) => {
      start(key)
        .on('response', ({ statusCode }) => resolve(statusCode))
        .end('"{ ping }"}')
    })
  expect(await whole()).toBe(200)
  const unfinished = [start(), start()]
  await eventually(async () => (await whole()) === 429)
  expect((await post({ query: '{ ping }' })).status).toBe(200)
  expect(await whole(OTHER_KEY)).toBe(200)
  unfinished[0]!.destroy()
  await eventually(async () => (await whole()) === 200)
  for (const begun of unfinished) begun.destroy()
})
