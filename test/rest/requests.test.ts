import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { restConfig } from '../../rest-adapter/config.ts'
import { type ByteRange, type ByteRequest, respondWithBytes } from '../../subgraphs/common/bytes/byte-response.ts'
import { KisError, PermissionDenied } from '../../subgraphs/common/errors.ts'
import { LargeBodies } from '../../subgraphs/common/server/admission/large-bodies.ts'
import { Origins } from '../../subgraphs/common/server/origins.ts'
import { eventually } from '../support/eventually.ts'
import { KEY, readError, SOON, startAdapter } from './support.ts'

const collection = { collection_code: 'hr', collection_name: 'Handbook', embedding_model: 'm' }

interface Refusal {
  readonly name: string
  readonly request: string
  readonly body?: unknown
  readonly code: string
  readonly param: string | null
}

const refusals: readonly Refusal[] = [
  {
    name: 'a missing field',
    request: 'POST /v1/collections',
    body: { collection_code: 'hr', collection_name: 'x' },
    code: 'missing_required_parameter',
    param: 'embedding_model',
  },
  {
    name: 'a field of another type',
    request: 'POST /v1/collections',
    body: { ...collection, collection_name: 7 },
    code: 'invalid_type',
    param: 'collection_name',
  },
  {
    name: 'an empty name',
    request: 'POST /v1/collections',
    body: { ...collection, collection_name: '' },
    code: 'invalid_request',
    param: 'collection_name',
  },
  {
    name: 'a long name',
    request: 'POST /v1/collections',
    body: { ...collection, collection_name: 'x'.repeat(201) },
    code: 'string_above_max_length',
    param: 'collection_name',
  },
  {
    name: 'a code with a space',
    request: 'POST /v1/collections',
    body: { ...collection, collection_code: 'h r' },
    code: 'unsupported_value',
    param: 'collection_code',
  },
  {
    name: 'an unknown field',
    request: 'POST /v1/collections',
    body: { ...collection, colour: 'red' },
    code: 'unknown_parameter',
    param: 'colour',
  },
  { name: 'an empty change', request: 'PATCH /v1/collections/col_1', body: {}, code: 'invalid_request', param: null },
  { name: 'a body that is a list', request: 'POST /v1/collections', body: [], code: 'invalid_type', param: null },
  {
    name: 'metadata with a nested list',
    request: 'POST /v1/collections/col_1/documents',
    body: { file_id: 'f', metadata: { tags: [] } },
    code: 'invalid_type',
    param: 'metadata.tags',
  },
  {
    name: 'a limit of zero',
    request: 'POST /v1/collections/col_1/search',
    body: { query: 'x', limit: 0 },
    code: 'integer_below_min_value',
    param: 'limit',
  },
  {
    name: 'a limit over 50',
    request: 'POST /v1/collections/col_1/search',
    body: { query: 'x', limit: 51 },
    code: 'integer_above_max_value',
    param: 'limit',
  },
  {
    name: 'an unknown mode',
    request: 'POST /v1/collections/col_1/search',
    body: { query: 'x', mode: 'magic' },
    code: 'unsupported_value',
    param: 'mode',
  },
  { name: 'a page of 101', request: 'GET /v1/files?limit=101', code: 'integer_above_max_value', param: 'limit' },
  { name: 'a limit that is not a number', request: 'GET /v1/files?limit=many', code: 'invalid_type', param: 'limit' },
  { name: 'an unknown order', request: 'GET /v1/files?order=random', code: 'unsupported_value', param: 'order' },
  { name: 'an unknown query parameter', request: 'GET /v1/files?page=2', code: 'unknown_parameter', param: 'page' },
  { name: 'a duplicate query parameter', request: 'GET /v1/files?limit=1&limit=2', code: 'invalid_type', param: 'limit' },
  {
    name: 'an unknown scope',
    request: 'POST /v1/keys',
    body: { name: 'k', scopes: ['inference', 'root'] },
    code: 'unsupported_value',
    param: 'scopes[1]',
  },
  {
    name: 'too many models',
    request: 'POST /v1/keys',
    body: { name: 'k', model_allowlist: Array(201).fill('m') },
    code: 'array_above_max_length',
    param: 'model_allowlist',
  },
  {
    name: 'money that is a number',
    request: 'POST /v1/organizations/org_1/top-ups',
    body: { amount_usd: 5, reference: 'r' },
    code: 'invalid_type',
    param: 'amount_usd',
  },
  {
    name: 'embeddings without input',
    request: 'POST /v1/embeddings',
    body: { model: 'm', input: [] },
    code: 'invalid_request',
    param: 'input',
  },
  {
    name: 'embeddings of 2049 texts',
    request: 'POST /v1/embeddings',
    body: { model: 'm', input: Array(2049).fill('x') },
    code: 'array_above_max_length',
    param: 'input',
  },
  {
    name: 'a stream flag that is not a boolean',
    request: 'POST /v1/chat/completions',
    body: { model: 'm', messages: [], stream: 'yes' },
    code: 'invalid_type',
    param: 'stream',
  },
]

describe('Requests over REST', () => {
  for (const { name, request, body, code, param } of refusals) {
    it(`refuses ${name} with ${code}`, async () => {
      await using adapter = await startAdapter()
      const [method, path] = request.split(' ') as [string, string]
      const error = await readError(await adapter.fetch(path, { method, body }))
      expect(error).toMatchObject({ status: 400, code, param, type: 'invalid_request_error', shouldRetry: 'false' })
      expect(adapter.gateway.received).toEqual([])
    })
  }

  it.each([
    ['/v1/files?limit=101', '`limit` must be <= 100.'],
    ['/v1/usage/summary?group_by=x', /^`group_by` .* \(one or more of `model`, .* separated by commas\)\.$/],
    ['/v1/documents', 'Missing required parameter: `status`.'],
  ])('says what a query parameter must be: %s', async (path, message) => {
    await using adapter = await startAdapter()
    const error = await readError(await adapter.fetch(path))
    expect(error.message).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
  })

  it('reports a missing key before it reads the body', async () => {
    await using adapter = await startAdapter()
    for (const authorization of [undefined, '', 'Basic abc', 'Bearer ']) {
      const response = await fetch(`${adapter.url}/v1/collections`, {
        method: 'POST',
        body: '{',
        headers: { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) },
      })
      expect(await readError(response)).toMatchObject({ status: 401, code: 'invalid_api_key', param: null })
    }
  })

  it('reports a wrong key before a wrong body', async () => {
    await using adapter = await startAdapter()
    const response = await adapter.fetch('/v1/collections', { body: {}, headers: { authorization: 'Bearer kis_live_wrong' } })
    expect(await readError(response)).toMatchObject({ status: 401, code: 'invalid_api_key' })
  })

  it('explains what is wrong with a body that is not JSON', async () => {
    await using adapter = await startAdapter()
    const send = (body: string, headers: Record<string, string>) =>
      fetch(`${adapter.url}/v1/collections`, { method: 'POST', body, headers: { authorization: `Bearer ${KEY}`, ...headers } })
    const malformed = await readError(await send('{"a":', { 'content-type': 'application/json' }))
    expect(malformed).toMatchObject({ status: 400, code: 'invalid_request', param: null })
    expect(malformed.message).toContain('not valid JSON')
    const form = await readError(await send('a=b', { 'content-type': 'application/x-www-form-urlencoded' }))
    expect(form).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(form.message).toContain('application/json')
    const deep = await readError(
      await send(`{"model":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, { 'content-type': 'application/json' }),
    )
    expect(deep).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(deep.message).toContain('128 levels')
    const empty = await readError(await send('', { 'content-type': 'application/json' }))
    expect(empty).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  it('refuses a body above the limit of its path with 413', async () => {
    await using adapter = await startAdapter()
    const body = { ...collection, description: 'x'.repeat(4 * 1024 * 1024) }
    expect(await readError(await adapter.fetch('/v1/collections', { body }))).toMatchObject({ status: 413, code: 'payload_too_large' })
  })

  it.each(['/v1/chat/completions', '/v1/messages', '/v1/collections', '/mcp'])(
    'refuses a body of more values than any request needs with 413 on %s, and looks up only the key',
    async (path) => {
      await using adapter = await startAdapter()
      for (const body of [{ a: Array(700_000).fill([]) }, Object.fromEntries(Array.from({ length: 110_000 }, (_, i) => [i, 0]))])
        expect((await adapter.fetch(path, { body })).status).toBe(413)
      expect(adapter.gateway.received).toEqual([])
    },
  )

  it.each(['/v1/chat/completions', '/v1/files', '/v1/audio/transcriptions'])(
    'ends a body that arrives byte by byte on %s',
    async (path) => {
      await using adapter = await startAdapter()
      const { hostname, port } = new URL(adapter.url)
      const socket = connect(Number(port), hostname)
      socket.on('error', () => undefined)
      const type = path.endsWith('transcriptions') ? 'multipart/form-data; boundary=b' : 'application/json'
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`,
      )
      socket.write('1\r\n \r\n'.repeat(20_000))
      const [response] = await once(socket, 'data')
      expect(String(response).slice(9, 12)).toBe('400')
      socket.destroy()
      expect(adapter.gateway.received).toEqual([])
    },
  )

  it('reads a chunked body whose first chunks are small', async () => {
    await using adapter = await startAdapter({ CreateCollection: () => ({ createCollection: { collection: null } }) })
    const { hostname, port } = new URL(adapter.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST /v1/collections HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    socket.write(`${'1\r\n \r\n'.repeat(4_000)}2\r\n[]\r\n0\r\n\r\n`)
    const [response] = await once(socket, 'data')
    expect(String(response)).toContain('The body must be a JSON object.')
    socket.destroy()
  })

  it('refuses an upload above the concurrency limit of its organization, with a retry delay', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await using adapter = await startAdapter(
      {
        UploadFile: async () => {
          await held
          throw new KisError('storage_quota_exceeded', 'Full.')
        },
      },
      { bodies: new LargeBodies({ largestBytes: 1_500_000, waitMs: 50 }) },
    )
    const upload = (sizeBytes = 2_000_000) =>
      adapter.fetch('/v1/files', { body: { file_name: 'a.txt', content_base64: 'A'.repeat(sizeBytes) } })
    const first = upload()
    await expect.poll(() => adapter.gateway.received.length, SOON).toBe(1)
    const second = await upload()
    expect(second.headers.get('retry-after')).toBe('1')
    expect(second.headers.get('retry-after-ms')).toBe('1000')
    expect(await readError(second)).toMatchObject({ status: 429, code: 'rate_limit_exceeded', shouldRetry: 'true' })
    const small = upload(1_000)
    await expect.poll(() => adapter.gateway.received.length, SOON).toBe(2)
    release()
    expect(await readError(await small)).toMatchObject({ status: 403 })
    expect(await readError(await first)).toMatchObject({ status: 403, code: 'storage_quota_exceeded', shouldRetry: 'false' })
    await expect.poll(async () => (await upload()).status, SOON).toBe(403)
  })

  for (const [what, framing] of [
    ['of known length', { 'content-length': '4000000' }],
    ['of unknown length', { 'transfer-encoding': 'chunked' }],
  ] as const)
    for (const [path, headers] of [
      ['/v1/files', { authorization: 'Bearer kis_live_wrong' }],
      ['/v1/chat/completions', { authorization: 'Bearer kis_live_wrong' }],
      ['/v1/messages', { 'x-api-key': 'kis_live_wrong' }],
      ['/v1/audio/transcriptions', { authorization: 'Bearer kis_live_wrong', 'content-type': 'multipart/form-data; boundary=b' }],
      ['/mcp', { authorization: 'Bearer kis_live_wrong' }],
    ] as const)
      it(`reads no byte of an unauthenticated body ${what} on ${path}`, async () => {
        await using adapter = await startAdapter({}, { bodies: new LargeBodies({ largestBytes: 0, waitMs: 0 }) })
        const { port } = new URL(adapter.url)
        const sent = request({ port, path, method: 'POST', headers: { 'content-type': 'application/json', ...headers, ...framing } })
        sent.on('error', () => undefined)
        // Not even its first byte: whoever waits for it answers nothing.
        sent.flushHeaders()
        const [response] = (await once(sent, 'response')) as [IncomingMessage]
        expect(response.statusCode).toBe(401)
        sent.destroy()
      })

  it('looks up a key once for many large bodies, and not at all for small ones', async () => {
    await using adapter = await startAdapter({ CreateCollection: () => ({ createCollection: { collection: null } }) })
    const owners = vi.spyOn(adapter.gateway, 'execute')
    const ownerLookups = () => owners.mock.calls.filter(([{ query }]) => query === 'query OrganizationOfKey { organization { id } }').length
    const create = (description: string) => adapter.fetch('/v1/collections', { body: { ...collection, description } })
    await create('small')
    expect(ownerLookups()).toBe(0)
    for (let i = 0; i < 3; i++) await create('x'.repeat(20_000))
    expect(ownerLookups()).toBe(1)
  })

  it('responds to unknown paths, other methods and unavailable parts, each by its own code', async () => {
    await using adapter = await startAdapter()
    const errorCode = async (method: string, path: string) => {
      const { status, code } = await readError(await adapter.fetch(path, { method }))
      return `${status} ${code}`
    }
    expect(await errorCode('GET', '/v1/nothing')).toBe('404 unknown_url')
    expect(await errorCode('GET', '/elsewhere')).toBe('404 unknown_url')
    expect(await errorCode('POST', '/v1/audio/translations')).toBe('404 unknown_url')
    expect(await errorCode('GET', '/v1/files/%zz')).toBe('404 unknown_url')
    expect(await errorCode('GET', `/v1/files/${'x'.repeat(400)}`)).toBe('404 unknown_url')
    expect(await errorCode('PUT', '/v1/collections')).toBe('405 method_not_allowed')
    expect(await errorCode('GET', '/v1/chat/completions')).toBe('405 method_not_allowed')
    for (const path of ['/v1/images/generations', '/v1/assistants', '/v1/threads/t/runs', '/v1/fine_tuning/jobs', '/v1/completions'])
      expect(await errorCode('POST', path)).toBe('404 not_offered')
    for (const [path, instead] of [
      ['/v1/vector_stores/vs_1/search', 'POST /v1/collections'],
      ['/v1/moderations', 'POST /v1/chat/completions'],
      ['/v1/batches', 'POST /v1/chat/completions'],
      ['/v1/uploads', '/v1/uploads/tus'],
      ['/v1/uploads/upload_1/parts', 'POST /v1/files'],
    ] as const) {
      expect(await errorCode('POST', path)).toBe('404 not_offered')
      expect(await (await adapter.fetch(path, { method: 'POST' })).text()).toContain(instead)
    }
    const allowed = await adapter.fetch('/v1/files/file_1', { method: 'PUT' })
    expect(allowed.headers.get('allow')).toBe('GET, DELETE, HEAD, OPTIONS')
  })

  it.each([
    ['headers of 1 MB', `GET /v1/models HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(1_000_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['a path of 1 MB', `GET /v1/models?q=${'x'.repeat(1_000_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 431, 'headers_too_large'],
    ['bytes that are not HTTP', 'HELLO\r\n\r\n', 400, 'invalid_request'],
    [
      'two content lengths',
      'POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}',
      400,
      'invalid_request',
    ],
  ])('responds to %s with an error of the protocol', async (_name, text, status, code) => {
    await using adapter = await startAdapter()
    const socket = connect(Number(new URL(adapter.url).port), '127.0.0.1')
    socket.end(text)
    let response = ''
    for await (const piece of socket) response += piece
    const [head = '', body = ''] = response.split('\r\n\r\n')
    expect(head).toContain(`HTTP/1.1 ${status} `)
    expect(head).toMatch(/x-request-id: req_\w+/)
    expect(head).toContain('x-should-retry: false')
    expect(JSON.parse(body)).toEqual({ error: { message: expect.any(String), type: 'invalid_request_error', param: null, code } })
    expect((await adapter.fetch('/v1/nothing')).status).toBe(404)
  })

  it('responds to HEAD without a body, even if its headers are not read', async () => {
    await using adapter = await startAdapter()
    const socket = connect(Number(new URL(adapter.url).port), '127.0.0.1')
    socket.end(`HEAD /v1/models HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(20_000)}\r\n\r\n`)
    let response = ''
    for await (const piece of socket) response += piece
    expect(response).toMatch(/^HTTP\/1\.1 431 /)
    expect(response.split('\r\n\r\n')[1]).toBe('')
  })

  it('responds to a request with an unknown expectation as usual', async () => {
    await using adapter = await startAdapter()
    const socket = connect(Number(new URL(adapter.url).port), '127.0.0.1')
    socket.end('GET /v1/nothing HTTP/1.1\r\nhost: x\r\nexpect: a-miracle\r\nconnection: close\r\n\r\n')
    let response = ''
    for await (const piece of socket) response += piece
    expect(response).toContain('HTTP/1.1 404 ')
    expect(response).toContain('"code":"unknown_url"')
  })

  it('refuses a body of 100 MB with 413, and reads the rest', async () => {
    await using adapter = await startAdapter()
    const body = Buffer.alloc(100 * 1024 * 1024, 'x')
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const response = await fetch(`${adapter.url}/v1/chat/completions`, { method: 'POST', body, headers })
    expect(await readError(response)).toMatchObject({ status: 413, code: 'payload_too_large', shouldRetry: 'false' })
    expect(adapter.gateway.received).toEqual([])
  })

  it('accepts a file as a form, like chat protocol clients send it', async () => {
    const file = { id: 'file_1', name: 'a.txt', mediaType: 'text/plain', status: 'UPLOADED', checksum: 'sha256:0', sizeBytes: 1 }
    await using adapter = await startAdapter({
      UploadFile: ({ input }: { readonly input: Record<string, unknown> }) => {
        expect(input).toEqual({ name: 'a.txt', contentBase64: 'eA==' })
        return { uploadFile: { file: { ...file, createdAt: '2026-01-01T00:00:00.000Z' } } }
      },
    })
    const body = new FormData()
    body.set('purpose', 'assistants')
    body.set('file', new Blob(['x']), 'a.txt')
    const response = await fetch(`${adapter.url}/v1/files`, { method: 'POST', body, headers: { authorization: `Bearer ${KEY}` } })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ id: 'file_1', object: 'file', bytes: 1, filename: 'a.txt', purpose: 'assistants' })
    body.set('file', 'text')
    const refused = await fetch(`${adapter.url}/v1/files`, { method: 'POST', body, headers: { authorization: `Bearer ${KEY}` } })
    expect(await readError(refused)).toMatchObject({ status: 400, code: 'invalid_type', param: 'file' })
  })

  it('ignores a trailing slash', async () => {
    await using adapter = await startAdapter({ Models: () => ({ models: [] }) })
    const response = await fetch(`${adapter.url}/v1/models/?x=1`, { headers: { authorization: `Bearer ${KEY}` } })
    expect(response.status).toBe(200)
    expect(response.url).toBe(`${adapter.url}/v1/models?x=1`)
  })

  it('sets a request ID of its own on every response, and returns that of the client when it is safe for logs', async () => {
    await using adapter = await startAdapter({ Models: () => ({ models: [] }) })
    const ids = new Set<string | null>()
    const readClientId = async (path: string, sent: Record<string, string>) => {
      const { headers } = await adapter.fetch(path, { headers: sent })
      expect(headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
      ids.add(headers.get('x-request-id'))
      return headers.get('x-client-request-id')
    }
    expect(await readClientId('/v1/models', {})).toBeNull()
    expect(await readClientId('/v1/models', { 'x-request-id': 'mine-1' })).toBe('mine-1')
    expect(adapter.gateway.received.at(-1)?.context.requestId).toBe([...ids].at(-1))
    expect(await readClientId('/nowhere', { 'x-client-request-id': 'mine:2.a', 'x-request-id': 'another' })).toBe('mine:2.a')
    expect(await readClientId('/v1/models', { 'x-request-id': 'mine-1' })).toBe('mine-1')
    expect(await readClientId('/v1/models', { 'x-request-id': 'not fit for logs' })).toBeNull()
    expect(await readClientId('/v1/models', { 'x-request-id': 'a'.repeat(129) })).toBeNull()
    expect(ids.size).toBe(6)
  })

  it('responds to HEAD like GET, without the body', async () => {
    await using adapter = await startAdapter({ Models: () => ({ models: [] }) })
    const response = await adapter.fetch('/v1/models', { method: 'HEAD' })
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('')
  })

  it('allows scripts of other origins to call it and read its headers', async () => {
    await using adapter = await startAdapter({ Models: () => ({ models: [] }) })
    const preflight = await fetch(`${adapter.url}/v1/models`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://a.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization,x-stainless-lang',
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, HEAD, OPTIONS')
    expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,x-stainless-lang')
    const refused = await fetch(`${adapter.url}/v1/models`, { headers: { origin: 'https://a.example' } })
    expect(refused.headers.get('access-control-allow-origin')).toBe('*')
    expect(refused.headers.get('access-control-expose-headers')).toContain('x-request-id')
  })

  it('accepts an omitted body if all its fields are optional', async () => {
    await using adapter = await startAdapter({ RunWorkflow: () => ({ runWorkflow: null }) })
    const headers = { 'content-type': 'application/json' }
    for (const init of [{ method: 'POST' }, { method: 'POST', headers }]) await adapter.fetch('/v1/workflows/wfl_1/runs', init)
    expect(adapter.gateway.received.map(({ variables }) => variables)).toEqual(Array(2).fill({ input: { workflowId: 'wfl_1' } }))
    const refused = await adapter.fetch('/v1/agents/agt_1/runs', { method: 'POST' })
    expect(await readError(refused)).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  it('allows scripts of other origins to find out where to get a token for `/mcp`', async () => {
    const oauth = { issuer: 'https://login.example', resource: 'https://kis.example/mcp', keyClaim: 'kis_key' }
    await using adapter = await startAdapter({}, { config: restConfig(undefined, { oauth }) })
    const headers = { origin: 'https://a.example', 'access-control-request-method': 'GET' }
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp']) {
      const preflight = await fetch(adapter.url + path, { method: 'OPTIONS', headers })
      expect(preflight.status).toBe(204)
      expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
      expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, HEAD, OPTIONS')
      const response = await fetch(adapter.url + path, { headers: { origin: 'https://a.example' } })
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
      expect((await fetch(adapter.url + path, { method: 'POST' })).status).toBe(405)
    }
  })

  it('responds to a preflight of an unknown path with 404', async () => {
    await using adapter = await startAdapter()
    const headers = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
    for (const path of ['/session', '/v1/nothing']) {
      const response = await fetch(adapter.url + path, { method: 'OPTIONS', headers })
      expect(response.headers.get('access-control-allow-methods')).toBeNull()
      expect(response.headers.get('x-request-id')).toMatch(/^req_/)
      expect(await readError(response)).toMatchObject({ status: 404, code: 'unknown_url' })
    }
  })

  it('allows only scripts of the configured origins to call it', async () => {
    const config = restConfig(undefined, { origins: new Origins(new Set(['https://a.example'])) })
    await using adapter = await startAdapter({ Models: () => ({ models: [] }) }, { config })
    const readOrigin = async (origin: string) => {
      const { headers } = await adapter.fetch('/v1/models', { headers: { origin } })
      return [headers.get('access-control-allow-origin'), headers.get('vary')?.toLowerCase()]
    }
    expect(await readOrigin('https://a.example')).toEqual(['https://a.example', 'origin'])
    expect(await readOrigin('https://b.example')).toEqual([null, 'origin'])
  })

  it('lists the query parameters of a path when one is unknown', async () => {
    await using adapter = await startAdapter()
    const response = await adapter.fetch('/v1/collections/col_1/documents/doc_1/text?limit=10')
    expect(await readError(response)).toMatchObject({
      status: 400,
      code: 'unknown_parameter',
      param: 'limit',
      message:
        'Unknown parameter: `limit`. The query parameters of this address are `page_start`, `page_end`, `offset`, `length`, `format`.',
    })
  })

  it('names fields in messages by their REST names', async () => {
    await using adapter = await startAdapter({
      DocumentText: () => {
        throw new KisError('integer_below_min_value', '`pageEnd` is at least 3.', { param: 'pageEnd' })
      },
    })
    const response = await adapter.fetch('/v1/collections/col_1/documents/doc_1/text?page_start=3&page_end=2')
    expect(await readError(response)).toMatchObject({ param: 'page_end', message: '`page_end` is at least 3.' })
  })

  it("passes on the gateway's error with its status, its code and whether to retry", async () => {
    await using adapter = await startAdapter({
      Organization: () => {
        throw new PermissionDenied('admin')
      },
      Wallet: () => {
        throw new KisError('rate_limit_exceeded', 'Too fast.', { retryAfterMs: 2500, vendorCode: 'slow_down' })
      },
      Models: () => {
        throw new Error('a defect')
      },
    })
    expect(await readError(await adapter.fetch('/v1/organization'))).toMatchObject({
      status: 403,
      code: 'permission_denied',
      type: 'permission_error',
    })
    const limited = await adapter.fetch('/v1/wallet')
    expect(limited.headers.get('retry-after')).toBe('3')
    expect(limited.headers.get('retry-after-ms')).toBe('2500')
    expect(await limited.json()).toEqual({
      error: { message: 'Too fast.', type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded', vendor_code: 'slow_down' },
    })
    expect(await readError(await adapter.fetch('/v1/models'))).toMatchObject({
      status: 500,
      code: 'internal',
      message: 'The service failed to process the request.',
    })
  })
})

describe('Downloads', () => {
  const bytes = Buffer.from(Array.from({ length: 2_500_000 }, (_, at) => at % 251))
  const FileDownload = () => ({ fileDownload: { path: '/bytes?token=t' } })
  const stored = (read = readPieces) => ({
    FileDownload,
    openBytes: (request: ByteRequest) =>
      respondWithBytes(
        request,
        { organizationId: 'org_a', name: 'تقرير "1".pdf', mediaType: 'application/pdf', sizeBytes: bytes.length, sha256: 'abc', read },
        new AbortController().signal,
      ),
  })
  async function* readPieces({ offset, length }: ByteRange) {
    for (let at = offset; at < offset + length; at += 1_000_000) yield bytes.subarray(at, Math.min(at + 1_000_000, offset + length))
  }

  it('pass on the stored bytes, with their type and their name in any script', async () => {
    await using adapter = await startAdapter(stored())
    const response = await adapter.fetch('/v1/files/file_1/content')
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
    expect(response.headers.get('content-type')).toBe('application/pdf')
    expect(response.headers.get('content-length')).toBe('2500000')
    expect(response.headers.get('content-disposition')).toBe(
      `attachment; filename="_____ _1_.pdf"; filename*=UTF-8''${encodeURIComponent('تقرير "1".pdf')}`,
    )
    expect(adapter.gateway.received.map(({ variables }) => variables)).toEqual([{ id: 'file_1' }])
  })

  it('wait while others of the organization use its slots, and are refused in time, but whole responses are not', async () => {
    const gate = Promise.withResolvers<void>()
    const waiting = async function* (range: ByteRange) {
      for await (const piece of readPieces(range)) {
        yield piece
        await gate.promise
      }
    }
    await using adapter = await startAdapter(
      { ...stored(waiting), Models: () => ({ models: [] }), File: () => ({ file: null }) },
      { bodies: new LargeBodies({ largestBytes: 1_500_000, waitMs: 50 }) },
    )
    const download = () => adapter.fetch('/v1/files/file_1/content')
    const first = await download()
    const second = await download()
    expect(await readError(second)).toMatchObject({ status: 429, code: 'rate_limit_exceeded', shouldRetry: 'true' })
    expect([second.headers.get('retry-after'), second.headers.get('content-disposition')]).toEqual(['1', null])
    expect((await adapter.fetch('/v1/models')).status).toBe(200)
    gate.resolve()
    expect(Buffer.from(await first.arrayBuffer()).equals(bytes)).toBe(true)
    await expect.poll(async () => (await download()).status, SOON).toBe(200)
  })

  it('read nothing for HEAD', async () => {
    const read = vi.fn(readPieces)
    await using adapter = await startAdapter(stored(read))
    const response = await adapter.fetch('/v1/files/file_1/content', { method: 'HEAD' })
    expect([response.headers.get('content-length'), read.mock.calls.length]).toEqual(['2500000', 0])
  })

  it('return the requested range, and nothing to a client that has the bytes', async () => {
    await using adapter = await startAdapter(stored())
    const part = await adapter.fetch('/v1/files/file_1/content', { headers: { range: 'bytes=2400000-' } })
    expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 2400000-2499999/2500000'])
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(2_400_000))).toBe(true)
    const beyond = await adapter.fetch('/v1/files/file_1/content', { headers: { range: 'bytes=2500000-' } })
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */2500000'])
    const known = await adapter.fetch('/v1/files/file_1/content', { headers: { 'if-none-match': part.headers.get('etag')! } })
    expect([known.status, await known.text()]).toEqual([304, ''])
  })

  it('report the error of a path that cannot be opened', async () => {
    await using adapter = await startAdapter({
      FileDownload,
      openBytes: () => Promise.reject(new KisError('service_unavailable', 'Away.')),
    })
    expect(await readError(await adapter.fetch('/v1/files/file_1/content'))).toMatchObject({ status: 503, code: 'service_unavailable' })
  })

  it('break when a later part fails, so that no partial file looks whole', async () => {
    const failing = async function* (range: ByteRange) {
      for await (const piece of readPieces(range)) {
        if (piece.length < 1_000_000) throw new KisError('service_unavailable', 'Gone.')
        yield piece
      }
    }
    await using adapter = await startAdapter(stored(failing))
    const response = await adapter.fetch('/v1/files/file_1/content')
    await expect(response.arrayBuffer()).rejects.toThrow()
  })

  it('stop reading when the client disconnects', async () => {
    let isOver = false
    const endless = async function* () {
      try {
        for (;;) yield bytes
      } finally {
        isOver = true
      }
    }
    await using adapter = await startAdapter(stored(endless))
    const leaving = new AbortController()
    const response = await adapter.fetch('/v1/files/file_1/content', { signal: leaving.signal })
    await response.body!.getReader().read()
    leaving.abort()
    await eventually(() => isOver)
  })
})

it('names all missing fields of a body at once', async () => {
  await using adapter = await startAdapter({})
  const post = async (path: string, body: object) => {
    const response = await adapter.fetch(path, { method: 'POST', body })
    return ((await response.json()) as { error: object }).error
  }
  expect(await post('/v1/collections', {})).toMatchObject({
    code: 'missing_required_parameter',
    param: 'collection_code',
    message: 'Missing required parameters: `collection_code`, `collection_name`, `embedding_model`.',
  })
  expect(await post('/v1/rerank', { model: 'm' })).toMatchObject({
    param: 'query',
    message: 'Missing required parameters: `query`, `documents`.',
  })
  expect(await post('/v1/agents', { code: 'a', name: 'A' })).toMatchObject({ message: 'Missing required parameter: `model`.' })
})
