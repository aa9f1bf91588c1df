import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { LLMock } from '@copilotkit/aimock'
import { afterEach, describe, expect, it } from 'vitest'
import { isAbort, KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { ResponseTooLarge, StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { type ChatEngine, NeverSent, type ProtocolObject } from '../../ports/engines.ts'
import { FakeVendor, type Received, respondJson, startStream } from '../../test-support/fake-vendor.ts'
import { TIMEOUTS, type Timeouts } from '../vendor/limits.ts'
import { createOpenAiEngines } from './engines.ts'

const KEY = 'sk-operators-key-1234'
const CALL = { engineModel: 'vendor-model', requestId: 'req_1', maxOutputTokens: null, warn: () => undefined }
const REQUEST = { model: 'our-model', messages: [{ role: 'user', content: 'Hi' }], temperature: 0.5, x_unknown: { deep: [1, null] } }
const NEVER = new AbortController().signal

let opened: AsyncDisposable[] = []
afterEach(async () => {
  for (const resource of opened.reverse()) await resource[Symbol.asyncDispose]()
  opened = []
})

async function engineFor(respond: (response: ServerResponse, received: Received) => void, timeouts: Partial<Timeouts> = {}) {
  const vendor = await FakeVendor.start(respond)
  const engines = createOpenAiEngines({
    name: 'acme',
    baseUrl: vendor.baseUrl,
    apiKey: KEY,
    clock: { ...systemClock, now: () => new Date('2026-11-21T10:00:00Z') },
    timeouts: { ...TIMEOUTS, ...timeouts },
  })
  opened.push(vendor, engines)
  return { vendor, chat: engines.chat }
}

async function catchError(promise: Promise<unknown>): Promise<KisError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(KisError)
  return error as KisError
}

/** Returns all chunks, and the error after them. */
async function readAll(chat: ChatEngine, request: ProtocolObject = REQUEST, signal = NEVER) {
  const chunks: ProtocolObject[] = []
  const items: (readonly ProtocolObject[])[] = []
  try {
    for await (const item of await chat.stream(CALL, request, signal)) {
      items.push(item)
      chunks.push(...item)
    }
    return { chunks, items, error: undefined }
  } catch (error) {
    return { chunks, items, error: error as KisError }
  }
}

function chunk(content: string | null, finishReason: string | null = null, more: object = {}) {
  const delta = content === null ? {} : { content }
  return {
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finishReason }],
    ...more,
  }
}
const usageChunk = { ...chunk(null), choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }
const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

describe('Chat completion over HTTP', () => {
  const completion = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'vendor-model-2026',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Hello', refusal: null, x_extra: 1 }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    x_vendor: { kept: true },
  }

  it('sends the whole request with the engine model and returns the whole response', async () => {
    const { vendor, chat } = await engineFor((response) => respondJson(response, 200, completion))
    expect(await chat.complete(CALL, REQUEST, NEVER)).toEqual(completion)
    const { request, body } = vendor.received[0]!
    expect(body).toEqual({ ...REQUEST, model: 'vendor-model' })
    expect(request.url).toBe('/v1/chat/completions')
    expect(request.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'accept-encoding': 'identity', 'x-client-request-id': 'req_1' })
  })

  it('reuses its connections', async () => {
    const { vendor, chat } = await engineFor((response) => respondJson(response, 200, completion))
    for (let index = 0; index < 6; index += 1) await chat.complete(CALL, REQUEST, NEVER)
    // A call in the same tick as the end of the last one opens a second connection.
    expect(new Set(vendor.received.map(({ request }) => request.socket)).size).toBeLessThanOrEqual(2)
  })

  it('adds the query of the base URL to every path', async () => {
    const { vendor } = await engineFor((response) => respondJson(response, 200, completion))
    await using engines = createOpenAiEngines({
      name: 'azure',
      baseUrl: `${vendor.baseUrl}/?api-version=1`,
      apiKey: null,
      clock: systemClock,
    })
    await engines.chat.complete(CALL, REQUEST, NEVER)
    expect(vendor.received[0]!.request.url).toBe('/v1/chat/completions?api-version=1')
    expect(vendor.received[0]!.request.headers.authorization).toBeUndefined()
  })

  for (const { name, respond } of [
    { name: 'not JSON', respond: (response: ServerResponse) => void response.end('<html>') },
    { name: 'not an object', respond: (response: ServerResponse) => respondJson(response, 200, [1]) },
    { name: 'without choices', respond: (response: ServerResponse) => respondJson(response, 200, { ok: true }) },
    { name: 'an empty list of choices', respond: (response: ServerResponse) => respondJson(response, 200, { choices: [], usage: {} }) },
    { name: 'a malformed choice', respond: (response: ServerResponse) => respondJson(response, 200, { choices: [null] }) },
    { name: 'an error with status 200', respond: (response: ServerResponse) => respondJson(response, 200, { error: { message: 'no' } }) },
    { name: 'a redirect', respond: (response: ServerResponse) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end() },
    {
      name: 'cut',
      respond: (response: ServerResponse) => void response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy()),
    },
  ]) {
    it(`fails with engine_error for a response that is ${name}`, async () => {
      const { chat } = await engineFor(respond)
      expect(await catchError(chat.complete(CALL, REQUEST, NEVER))).toMatchObject({ code: 'engine_error' })
    })
  }

  it('fails with engine_error for a response above the size limit of the service', async () => {
    const { chat } = await engineFor((response) => void response.end(Buffer.alloc(21 * 2 ** 20, ' ')))
    const error = await catchError(chat.complete(CALL, REQUEST, NEVER))
    expect(error).toBeInstanceOf(ResponseTooLarge)
    expect(error).toMatchObject({ code: 'engine_error', shouldRetry: false })
  })
})

describe('Vendor errors', () => {
  const refusals = [
    {
      status: 400,
      body: { error: { message: 'too long', type: 'x', param: 'messages', code: 'context_length_exceeded' } },
      expected: { code: 'context_length_exceeded', param: 'messages', vendorCode: null, message: 'too long' },
    },
    {
      status: 400,
      body: { error: { message: 'no such field here', param: 'top_k', code: 'unsupported_parameter' } },
      expected: { code: 'unsupported_parameter', param: 'top_k', vendorCode: null },
    },
    {
      status: 400,
      body: { error: { message: 'flagged', param: 'prompt', code: 'content_filter' } },
      expected: { code: 'content_policy_violation', vendorCode: 'content_filter' },
    },
    {
      status: 400,
      body: { error: { message: 'flagged', code: 'content_policy_violation' } },
      expected: { code: 'content_policy_violation', vendorCode: null },
    },
    {
      status: 422,
      body: { error: { message: 'bad', param: null, code: 'strange_code' } },
      expected: { code: 'invalid_request', vendorCode: 'strange_code', param: null },
    },
    {
      status: 404,
      body: { error: { message: 'no such model', code: 'model_not_found' } },
      expected: { code: 'engine_error', vendorCode: 'model_not_found', shouldRetry: false },
    },
    { status: 413, body: 'too large', expected: { code: 'invalid_request' } },
    {
      status: 400,
      body: { object: 'error', message: 'vLLM says no', param: null, code: 400 },
      expected: { code: 'invalid_request', message: 'vLLM says no', vendorCode: null },
    },
    {
      status: 413,
      body: { error: 'batch size 64 > 32', error_type: 'Validation' },
      expected: { code: 'invalid_request', message: 'batch size 64 > 32' },
    },
    {
      status: 401,
      body: { error: { message: `Incorrect API key: ${KEY}`, code: 'invalid_api_key' } },
      expected: { code: 'engine_unavailable', vendorCode: 'invalid_api_key', isRepeatable: false },
    },
    { status: 402, body: { error: { message: 'Insufficient Balance' } }, expected: { code: 'engine_unavailable' } },
    { status: 403, body: { error: { message: 'no' } }, expected: { code: 'engine_unavailable' } },
    {
      status: 429,
      headers: { 'retry-after': '7' },
      body: { error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' } },
      expected: { code: 'engine_unavailable', isRepeatable: false, retryAfterMs: null },
    },
    {
      status: 400,
      body: { error: { message: 'The model has been decommissioned', code: 'model_decommissioned' } },
      expected: { code: 'engine_error', isRepeatable: false },
    },
    {
      status: 429,
      headers: { 'retry-after': '7' },
      body: { error: { code: 'slow_down' } },
      expected: { code: 'rate_limit_exceeded', retryAfterMs: 7_000, vendorCode: 'slow_down' },
    },
    {
      status: 429,
      headers: { 'retry-after': '7', 'retry-after-ms': '250' },
      body: {},
      expected: { code: 'rate_limit_exceeded', retryAfterMs: 250 },
    },
    {
      status: 429,
      headers: { 'retry-after': 'Sat, 21 Nov 2026 10:00:30 GMT' },
      body: {},
      expected: { code: 'rate_limit_exceeded', retryAfterMs: 30_000 },
    },
    { status: 429, headers: { 'retry-after': 'soon' }, body: {}, expected: { code: 'rate_limit_exceeded', retryAfterMs: null } },
    { status: 500, body: { error: { message: `boom at ${KEY}` } }, expected: { code: 'engine_error' } },
    { status: 502, body: 'bad gateway', expected: { code: 'engine_error' } },
    { status: 503, headers: { 'retry-after': '2' }, body: {}, expected: { code: 'engine_unavailable', retryAfterMs: 2_000 } },
    { status: 504, body: {}, expected: { code: 'engine_timeout' } },
  ]
  for (const { status, body, headers, expected } of refusals) {
    it(`with status ${status} and ${JSON.stringify(body).slice(0, 60)} become ${expected.code}, plain and streamed`, async () => {
      const { chat } = await engineFor((response) => respondJson(response, status, body, headers))
      const plain = await catchError(chat.complete(CALL, REQUEST, NEVER))
      const streamed = await catchError(chat.stream(CALL, REQUEST, NEVER))
      for (const error of [plain, streamed]) {
        expect(error).toMatchObject(expected)
        expect(error.message).not.toContain(KEY)
      }
    })
  }

  it("never show the operator's key or address", async () => {
    const { vendor, chat } = await engineFor((response) =>
      respondJson(response, 400, { error: { message: `key ${KEY} of org-abcdefgh at ${vendor.baseUrl}`, param: vendor.baseUrl } }),
    )
    const error = await catchError(chat.complete(CALL, REQUEST, NEVER))
    expect(JSON.stringify([error.message, error.extensions])).not.toMatch(/127\.0\.0\.1|operators-key|abcdefgh/)
  })

  it('become engine_unavailable when nothing listens, without the address', async () => {
    const { vendor, chat } = await engineFor(() => undefined)
    await vendor[Symbol.asyncDispose]()
    opened = opened.filter((resource) => resource !== vendor)
    for (const promise of [chat.complete(CALL, REQUEST, NEVER), chat.stream(CALL, REQUEST, NEVER)]) {
      const error = await catchError(promise)
      expect(error).toMatchObject({ code: 'engine_unavailable', isRepeatable: true })
      expect(error.message).not.toContain('127.0.0.1')
    }
  })

  it('become engine_timeout when the vendor does not respond', async () => {
    const { vendor, chat } = await engineFor(() => undefined, { headersMs: 50, streamHeadersMs: 50 })
    for (const call of ['complete', 'stream'] as const) {
      const error = await catchError(chat[call](CALL, REQUEST, NEVER))
      expect(error).toBeInstanceOf(StoppedByLimit)
      expect(error.code).toBe('engine_timeout')
    }
    await vendor.received[0]!.closed
  })
})

describe('Chat stream over HTTP', () => {
  it('requests usage, preserves other stream options, and passes on whole chunks', async () => {
    const chunks = [chunk('Hel', null, { x_vendor: [1] }), chunk('lo', 'stop'), usageChunk]
    const { vendor, chat } = await engineFor((response) => {
      startStream(response)
      response.end(`${chunks.map(event).join('')}data: [DONE]\n\n`)
    })
    const read = await readAll(chat, { ...REQUEST, stream_options: { include_obfuscation: false } })
    expect(read.error).toBeUndefined()
    expect(read.chunks).toEqual(chunks)
    expect(vendor.received[0]!.body).toEqual({
      ...REQUEST,
      model: 'vendor-model',
      stream: true,
      stream_options: { include_obfuscation: false, include_usage: true },
    })
  })

  it('yields chunks that arrived together as one item, without delay', async () => {
    let release: (() => void) | undefined
    const { chat } = await engineFor((response) => {
      startStream(response)
      response.write(event(chunk('a')) + event(chunk('b')))
      release = () => response.end(`${event(chunk('c', 'stop'))}data: [DONE]\n\n`)
    })
    const iterator = await chat.stream(CALL, REQUEST, NEVER)
    expect((await iterator.next()).value).toEqual([chunk('a'), chunk('b')])
    release!()
    expect((await iterator.next()).value).toEqual([chunk('c', 'stop')])
    expect((await iterator.next()).done).toBe(true)
  })

  it('decodes characters and line ends that are split between packets', async () => {
    const chunks = [chunk('سلام 🌙 é'), chunk('ok', 'stop')]
    const bytes = Buffer.from(`: ping\r\n\r\n${chunks.map(event).join('').replaceAll('\n', '\r\n')}data: [DONE]\r\n\r\n`)
    const { chat } = await engineFor((response) => {
      response.socket!.setNoDelay(true)
      startStream(response)
      let index = 0
      const next = () => {
        response.write(bytes.subarray(index, index + 7))
        index += 7
        if (index < bytes.length) setImmediate(next)
        else response.end()
      }
      next()
    })
    expect(await readAll(chat)).toMatchObject({ chunks, error: undefined })
  })

  for (const { name, rest } of [
    { name: 'a malformed line', rest: 'data: {"broken\n\ndata: [DONE]\n\n' },
    { name: 'a chunk that is not an object', rest: 'data: 5\n\ndata: [DONE]\n\n' },
    { name: 'the end before the end mark', rest: '' },
    { name: 'the end in the middle of a line', rest: 'data: {"id":' },
    { name: 'the end without usage', rest: event(chunk(null, 'stop')) },
    { name: 'the end without a finish reason', rest: event(usageChunk) },
  ]) {
    it(`fails with engine_error for ${name}, after the chunks before it`, async () => {
      const { chat } = await engineFor((response) => {
        startStream(response)
        response.end(event(chunk('before')) + rest)
      })
      const { chunks, error } = await readAll(chat)
      expect(chunks[0]).toEqual(chunk('before'))
      expect(error).toMatchObject({ name: 'KisError', code: 'engine_error' })
    })
  }

  for (const [where, failed] of [
    ['at the top level', { error: { message: `bad ${KEY}`, code: KEY, type: KEY, param: KEY } }],
    ['in a choice', { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { message: `bad ${KEY}`, code: KEY } }] }],
  ] as const)
    it(`with an error ${where}, after the first chunk or in place of a response, never shows the operator's key`, async () => {
      const { chat } = await engineFor((response, { body }) => {
        if ((body as { stream?: boolean }).stream !== true) return respondJson(response, 200, failed)
        startStream(response)
        return response.end(event(chunk('before')) + event(failed))
      })
      const { chunks, error } = await readAll(chat)
      expect(chunks).toEqual([chunk('before')])
      for (const each of [error!, await catchError(chat.complete(CALL, REQUEST, NEVER))]) {
        expect(each).toMatchObject({ code: 'engine_error', vendorCode: null })
        expect(JSON.stringify([each.message, each.extensions])).not.toContain('operators-key')
      }
    })

  it('accepts a clean end without the end mark when nothing is missing', async () => {
    const { chat } = await engineFor((response) => {
      startStream(response)
      response.end(event(chunk('a', 'stop')) + event(usageChunk))
    })
    expect(await readAll(chat)).toMatchObject({ chunks: [chunk('a', 'stop'), usageChunk], error: undefined })
    const { error } = await readAll(chat, { ...REQUEST, n: 2 })
    expect(error).toMatchObject({ code: 'engine_error' })
  })

  it('fails with engine_error when the connection breaks', async () => {
    const { chat } = await engineFor((response) => {
      startStream(response)
      response.write(event(chunk('a')), () => response.destroy())
    })
    expect(await readAll(chat)).toMatchObject({ chunks: [chunk('a')], error: { code: 'engine_error' } })
  })

  it("passes on an error in the stream with the vendor's code", async () => {
    const { chat } = await engineFor((response) => {
      startStream(response)
      response.end(event(chunk('a')) + event({ error: { message: 'overloaded', type: 'server_error', code: 'server_is_overloaded' } }))
    })
    expect(await readAll(chat)).toMatchObject({ chunks: [chunk('a')], error: { code: 'engine_error', vendorCode: 'server_is_overloaded' } })
  })

  it('reports an error of the vendor about the request as a request error', async () => {
    const { chat } = await engineFor((response) => {
      startStream(response)
      response.end(event({ error: { message: 'too long', param: 'messages', code: 'context_length_exceeded' } }))
    })
    expect(await readAll(chat)).toMatchObject({ error: { code: 'context_length_exceeded', param: 'messages', vendorCode: null } })
  })

  it('rejects before the first event when the vendor responds with JSON', async () => {
    const { chat } = await engineFor((response) => respondJson(response, 200, { error: { message: 'no', code: 'odd' } }))
    expect(await catchError(chat.stream(CALL, REQUEST, NEVER))).toMatchObject({ code: 'engine_error', vendorCode: 'odd' })
  })

  it('fails with engine_timeout and closes the connection when the vendor stops sending', async () => {
    const { vendor, chat } = await engineFor(
      (response) => {
        startStream(response)
        response.write(event(chunk('a')))
      },
      { bodyIdleMs: 50 },
    )
    expect(await readAll(chat)).toMatchObject({ chunks: [chunk('a')], error: { code: 'engine_timeout' } })
    await vendor.received[0]!.closed
  })

  it('reuses its connections once they were read to the end', async () => {
    const { vendor, chat } = await engineFor((response) => {
      startStream(response)
      response.end(`${event(chunk('a', 'stop'))}data: [DONE]\n\n`)
    })
    for (let index = 0; index < 6; index += 1) await readAll(chat)
    // A call in the same tick as the end of the last one opens a second connection.
    expect(new Set(vendor.received.map(({ request }) => request.socket)).size).toBeLessThanOrEqual(2)
  })

  it('yields a chunk of 3 MiB whole', async () => {
    const long = chunk('م'.repeat(1_500_000), 'stop')
    const { chat } = await engineFor((response) => {
      startStream(response)
      response.end(`${event(chunk('a'))}${event(long)}data: [DONE]\n\n`)
    })
    expect(await readAll(chat)).toMatchObject({ chunks: [chunk('a'), long], error: undefined })
  })

  it('reads 64 MiB that arrive in one piece', async () => {
    const one = chunk('x'.repeat(1_000_000))
    const { chat } = await engineFor((response) => {
      startStream(response)
      response.end(`${event(one).repeat(64)}data: [DONE]\n\n`)
    })
    let count = 0
    for await (const item of await chat.stream(CALL, REQUEST, NEVER)) count += item.length
    expect(count).toBe(64)
  })

  it.each([
    ['a line that does not end', () => 'x'.repeat(2 ** 16)],
    ['an event that does not end', () => `data: ${'x'.repeat(2 ** 16)}\n`],
  ])('fails with engine_error for %s, and closes the connection', async (_name, piece) => {
    const { vendor, chat } = await engineFor((response) => {
      startStream(response)
      response.write(`${event(chunk('a'))}data: `)
      const more = () => {
        while (!response.destroyed && response.write(piece()));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    })
    const { chunks, error } = await readAll(chat)
    expect([chunks, error?.code]).toEqual([[chunk('a')], 'engine_error'])
    expect(error).toBeInstanceOf(StoppedByLimit)
    await vendor.received[0]!.closed
  })

  it.each([
    ['comments', ': still thinking\n\n'],
    ['single bytes of a line', ' '],
    ['events without data', 'event: ping\n\n'],
  ])('fails with engine_timeout when only %s arrive for too long, and closes the connection', async (_name, piece) => {
    const { vendor, chat } = await engineFor(
      (response) => {
        startStream(response)
        response.write(event(chunk('a')))
        const dripping = setInterval(() => response.write(piece), 20)
        response.once('close', () => clearInterval(dripping))
      },
      { bodyIdleMs: 300 },
    )
    expect(await readAll(chat)).toMatchObject({ chunks: [chunk('a')], error: { code: 'engine_timeout' } })
    await vendor.received[0]!.closed
  })

  it('does not mistake a slow reader for a silent vendor', async () => {
    const { chat } = await engineFor(
      (response) => {
        startStream(response)
        response.write(event(chunk('a')))
        response.end(`${event(chunk('b', 'stop'))}data: [DONE]\n\n`)
      },
      { bodyIdleMs: 50 },
    )
    const iterator = await chat.stream(CALL, REQUEST, NEVER)
    await iterator.next()
    await systemClock.sleep(150)
    expect((await iterator.next()).done ?? false).toBe(true)
  })

  it('fails with engine_error for a compressed response, plain and streamed', async () => {
    const { chat } = await engineFor((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      response.end(gzipSync(Buffer.alloc(2 ** 20)))
    })
    for (const error of [await catchError(chat.stream(CALL, REQUEST, NEVER)), await catchError(chat.complete(CALL, REQUEST, NEVER))])
      expect(error).toMatchObject({ code: 'engine_error', message: expect.stringContaining('compressed') })
  })

  it('fails with engine_error for oversized headers, without a retry', async () => {
    const { chat } = await engineFor((response) => {
      for (let index = 0; index < 40; index++) response.setHeader(`x-${index}`, 'x'.repeat(1_000))
      respondJson(response, 200, {})
    })
    for (const error of [await catchError(chat.stream(CALL, REQUEST, NEVER)), await catchError(chat.complete(CALL, REQUEST, NEVER))])
      expect(error).toMatchObject({ code: 'engine_error' })
  })

  it('delivers every chunk of a long reply to a slow reader', async () => {
    const chunks = Array.from({ length: 4_000 }, (_, index) => chunk(`${index} ${'x'.repeat(1_000)}`))
    const { chat } = await engineFor((response) => {
      startStream(response)
      for (const one of chunks) response.write(event(one))
      response.end('data: [DONE]\n\n')
    })
    const read: ProtocolObject[] = []
    for await (const item of await chat.stream(CALL, REQUEST, NEVER)) {
      read.push(...item)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(read).toEqual(chunks)
  })
})

describe('Disconnect of the caller', () => {
  it('closes the connection of a plain call, which rejects with the reason of the caller', async () => {
    const controller = new AbortController()
    const { vendor, chat } = await engineFor(() => controller.abort())
    const error = await chat.complete(CALL, REQUEST, controller.signal).catch((thrown: unknown) => thrown)
    expect(isAbort(error)).toBe(true)
    await vendor.received[0]!.closed
  })

  it('before the call sends nothing', async () => {
    const { vendor, chat } = await engineFor(() => undefined)
    await expect(chat.complete(CALL, REQUEST, AbortSignal.abort())).rejects.toThrow(NeverSent)
    await expect(chat.stream(CALL, REQUEST, AbortSignal.abort())).rejects.toThrow(NeverSent)
    expect(vendor.received).toHaveLength(0)
  })

  it.each(['complete', 'stream'] as const)('before the connection exists sends nothing, and is reported so: %s', async (method) => {
    const { vendor, chat } = await engineFor(() => undefined)
    const leaving = new AbortController()
    const outcome = chat[method](CALL, REQUEST, leaving.signal).catch((thrown: unknown) => thrown)
    leaving.abort()
    const error = await outcome
    expect(error).toBeInstanceOf(NeverSent)
    expect((error as NeverSent).cause).toBe(leaving.signal.reason)
    expect(vendor.received).toHaveLength(0)
  })

  for (const { name, disconnect } of [
    { name: 'return()', disconnect: (_: AbortController, iterator: AsyncIterableIterator<unknown>) => void iterator.return!() },
    { name: 'an abort', disconnect: (controller: AbortController) => controller.abort() },
  ]) {
    it(`closes the connection of a stream by ${name}, even while next() is pending`, async () => {
      const controller = new AbortController()
      const { vendor, chat } = await engineFor((response) => {
        startStream(response)
        response.write(event(chunk('a')))
      })
      const iterator = await chat.stream(CALL, REQUEST, controller.signal)
      await iterator.next()
      const pending = iterator.next()
      disconnect(controller, iterator)
      expect(await pending).toEqual({ done: true, value: undefined })
      await vendor.received[0]!.closed
    })
  }

  it('closes the connection of a stream before its headers arrive', async () => {
    const controller = new AbortController()
    const { vendor, chat } = await engineFor(() => controller.abort())
    expect(isAbort(await chat.stream(CALL, REQUEST, controller.signal).catch((thrown: unknown) => thrown))).toBe(true)
    await vendor.received[0]!.closed
  })
})

describe('With aimock', () => {
  async function mocked() {
    const mock = new LLMock({ port: 0 })
    mock.onMessage('hello', { content: 'Hi there! How can I help?' })
    mock.onMessage('weather', { toolCalls: [{ name: 'get_weather', arguments: '{"city":"Riyadh"}' }] })
    await mock.start()
    const engines = createOpenAiEngines({ name: 'aimock', baseUrl: `${mock.url}/v1`, apiKey: 'mock', clock: systemClock })
    opened.push({ [Symbol.asyncDispose]: () => mock.stop() }, engines)
    return engines.chat
  }
  const createBody = (content: string) => ({ model: 'x', messages: [{ role: 'user', content }] })

  it('completes a plain chat', async () => {
    const chat = await mocked()
    const completion = await chat.complete({ ...CALL, engineModel: 'gpt-4o-mini' }, createBody('hello'), NEVER)
    expect(completion).toMatchObject({ object: 'chat.completion', choices: [{ message: { content: 'Hi there! How can I help?' } }] })
  })

  it('streams a chat to the same text', async () => {
    const { chunks, error } = await readAll(await mocked(), createBody('hello'))
    expect(error).toBeUndefined()
    const texts = chunks.map((one) => (one.choices as { delta?: { content?: string } }[])[0]?.delta?.content ?? '')
    expect(texts.join('')).toBe('Hi there! How can I help?')
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })
  })

  it('returns tool calls, plain and streamed', async () => {
    const chat = await mocked()
    const completion = await chat.complete(CALL, createBody('weather'), NEVER)
    expect(completion.choices).toMatchObject([
      { finish_reason: 'tool_calls', message: { tool_calls: [{ function: { name: 'get_weather', arguments: '{"city":"Riyadh"}' } }] } },
    ])
    const { chunks } = await readAll(chat, createBody('weather'))
    type Delta = { delta?: { tool_calls?: { function?: { arguments?: string } }[] } }
    const pieces = chunks.flatMap((one) => (one.choices as Delta[])[0]?.delta?.tool_calls ?? [])
    expect(pieces.map((piece) => piece.function?.arguments ?? '').join('')).toBe('{"city":"Riyadh"}')
  })
})
