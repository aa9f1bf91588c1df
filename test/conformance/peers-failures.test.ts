import type { ServerResponse } from 'node:http'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { restRoutes } from '../../rest-adapter/main.ts'
import { type Caller, createCaller, nano, newOrganization } from '../support/client.ts'
import { type Answering, VendorCloud } from '../support/engines/vendor-cloud.ts'
import { ANTHROPIC_WIRE, GOOGLE_WIRE, saying } from '../support/engines/vendor-wires.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'

/**
 * What other gateways were seen to get wrong, or have open issues of, each as a test of the running service. Speech has
 * its own in `test/e2e/models/transcriptions.test.ts`; who stands in for a failing engine, and never outside allowlist
 * and residency, in `test/e2e/models/fallbacks.test.ts`; money under concurrency, crashes and retries beside the
 * ledger.
 */
const createCatalog = (url: string) => `
engines:
  vendor: { kind: openai, base_url: "${url}/v1", api_key: "sk-vendor", badge: cloud }
  cut: { kind: openai, base_url: "${url}/v1", api_key: "sk-vendor", badge: cloud }
  spare: { kind: openai, base_url: "${url}/spare/v1", api_key: "sk-vendor", badge: cloud }
  anthropic: { kind: anthropic, base_url: "${url}/v1", api_key: "sk-vendor", badge: cloud }
  google: { kind: google, base_url: "${url}/v1beta", api_key: "sk-vendor", badge: cloud }
models:
  - { id: chat, engine: vendor, ${MODEL} }
  - { id: careful, engine: cut, ${MODEL}, fallbacks: [spare] }
  - { id: spare, engine: spare, ${MODEL} }
  - { id: maker/chat, engine: vendor, ${MODEL} }
  - { id: claude, engine: anthropic, ${MODEL} }
  - { id: gemini, engine: google, ${MODEL} }
  - { id: vectors, engine: vendor, kind: embedding, dimensions: 768, context_window: 8192, price: { input: "1" } }
plans:
  metered: { storage_bytes: 1000, vectors: 3, max_file_bytes: 2000, requests_per_minute: 6, tokens_per_minute: 1000000, concurrency: 10 }
`
const MODEL =
  'kind: chat, supports: [vision, tools, response_schema], context_window: 100000, max_output_tokens: 1000, price: { input: "1", output: "10" }'

const HEAD = { id: 'chatcmpl-theirs', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'model-of-the-vendor' }
const USAGE = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 }
const messages = [{ role: 'user' as const, content: 'Hello' }]
const ERROR_KEYS = ['code', 'message', 'param', 'type']

type Chunk = Readonly<Record<string, unknown>>
const delta = (content: object, rest: object = { finish_reason: null }): Chunk => ({
  ...HEAD,
  choices: [{ index: 0, delta: content, ...rest }],
})
const ROLE = delta({ role: 'assistant', content: '', refusal: null })
const END = delta({}, { finish_reason: 'stop' })
const THE_USAGE: Chunk = { ...HEAD, choices: [], usage: USAGE }
const words = (count: number) => Array.from({ length: count }, (_, index) => delta({ content: `w${index} ` }))
const sse = (chunks: readonly Chunk[]) => chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')

/** A stream whose bytes leave as they are; then `then` has the connection. */
const streaming =
  (bytes: string | Buffer, then: (response: ServerResponse) => void = (response) => response.end('data: [DONE]\n\n')): Answering =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(bytes, () => then(response))
  }
const answering =
  (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Answering =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

describe('Known failures of other gateways', () => {
  let cloud: VendorCloud
  let service: Service
  let caller: Caller
  let client: OpenAI
  beforeAll(async () => {
    cloud = await VendorCloud.start()
    service = await startEmbedded({ catalog: createCatalog(cloud.url) })
    caller = await newOrganization(createCaller(service, service.key), service)
    client = caller.openai
  })
  afterAll(async () => {
    await service?.close()
    await cloud?.[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    cloud.answering = answering({ error: { message: 'the test says nothing', code: 'untold' } }, 400)
  })
  const chat = (fields: object = {}) => caller.rest('POST', '/v1/chat/completions', { model: 'chat', messages, ...fields })
  /** The data of a stream's events, and each as JSON but for the end mark. */
  async function streamed(fields: object = {}): Promise<{ readonly data: readonly string[]; readonly chunks: readonly Chunk[] }> {
    const { body, status } = await chat({ stream: true, ...fields })
    expect(status).toBe(200)
    const data = (body as string).split('\n\n').flatMap((event) => /^(?:id: \d+\n)?data: (.*)$/s.exec(event)?.[1] ?? [])
    return { data, chunks: data.filter((each) => each !== '[DONE]').map((each) => JSON.parse(each)) }
  }
  const getWallet = async () => (await caller.rest('GET', '/v1/wallet')).body as { balance_usd: string; held_usd: string }
  async function chargedBy(act: () => Promise<unknown>): Promise<bigint> {
    const before = nano((await getWallet()).balance_usd)
    await act()
    await eventually(async () => nano((await getWallet()).held_usd) === 0n)
    return before - nano((await getWallet()).balance_usd)
  }

  describe('in a plain response', () => {
    const message = { role: 'assistant', content: 'Hi', annotations: [{ type: 'url_citation' }] }
    const theirs = {
      ...HEAD,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: USAGE,
      x_vendor: 1,
    }

    it('required keys are dropped: ours has `refusal` and `logprobs` of the vendor, and nothing of its own', async () => {
      cloud.answering = answering(theirs)
      const { body } = await chat()
      expect(body).toEqual({
        ...theirs,
        choices: [{ index: 0, message: { ...message, refusal: null }, logprobs: null, finish_reason: 'stop' }],
      })
    })

    it('a refusal is lost: ours arrives, with `content` null', async () => {
      const refusal = 'I cannot help with that.'
      cloud.answering = answering({ ...theirs, choices: [{ index: 0, message: { role: 'assistant', refusal }, finish_reason: 'stop' }] })
      const { choices } = await client.chat.completions.create({ model: 'chat', messages })
      expect(choices[0]?.message).toMatchObject({ content: null, refusal })
    })

    it('tool calls end with a finish reason of the vendor, so that agents stop: ours end with `tool_calls`', async () => {
      const calls = [{ id: 'abcdefgh1', name: 'weather', arguments: ['{}'] }]
      for (const [model, wire] of [
        ['claude', ANTHROPIC_WIRE],
        ['gemini', GOOGLE_WIRE],
      ] as const) {
        cloud.answering = saying(wire, { calls, ends: 'tools' })
        const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }]
        const plain = await chat({ model, tools })
        expect(plain.body.choices[0].finish_reason).toBe('tool_calls')
        const { chunks } = await streamed({ model, tools })
        const reasons = chunks.flatMap(({ choices }) =>
          (choices as readonly { finish_reason: string | null }[]).map((each) => each.finish_reason),
        )
        expect(reasons.filter((reason) => reason !== null)).toEqual(['tool_calls'])
      }
    })
  })

  describe('in a stream', () => {
    it('`finish_reason` is absent until the end: ours is null', async () => {
      cloud.answering = streaming(sse([ROLE, delta({ content: 'a' }, {}), END, THE_USAGE]))
      const { chunks } = await streamed()
      expect(chunks.map(({ choices }) => (choices as readonly Chunk[])[0]?.finish_reason)).toEqual([null, null, 'stop'])
    })

    it('`finish_reason` never comes, so that agents loop: ours comes', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(2), THE_USAGE]))
      const { chunks } = await streamed()
      expect(chunks.at(-1)).toMatchObject({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
    })

    it('the first delta with the role is dropped: ours begins with it', async () => {
      cloud.answering = streaming(sse([...words(2), END, THE_USAGE]))
      const { chunks } = await streamed()
      expect(chunks[0]).toMatchObject({ choices: [{ index: 0, delta: { role: 'assistant', content: '', refusal: null } }] })
    })

    it('`usage` is absent from the chunks before: ours is null', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(2), END, THE_USAGE]))
      const { chunks } = await streamed({ stream_options: { include_usage: true } })
      expect(chunks.map(({ usage }) => usage)).toEqual([null, null, null, null, USAGE])
    })

    it('the usage chunk has a choice, and a price as a float: ours has no choice and no price', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(2), { ...END, usage: USAGE }]))
      const { chunks } = await streamed({ stream_options: { include_usage: true } })
      expect(chunks.at(-1)).toEqual({ ...HEAD, choices: [], usage: USAGE })
    })

    it('the usage comes twice, and clients sum it: ours comes once', async () => {
      const soFar = (completion_tokens: number) => ({ ...USAGE, completion_tokens, total_tokens: 20 + completion_tokens })
      cloud.answering = streaming(sse([{ ...ROLE, usage: soFar(0) }, { ...END, usage: soFar(9) }, THE_USAGE]))
      const { chunks } = await streamed({ stream_options: { include_usage: true } })
      expect(chunks.filter(({ usage }) => usage).map(({ usage }) => usage)).toEqual([USAGE])
    })

    it('a usage of zero is reported: ours is what was counted and charged', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(3), END]))
      let usage: Chunk = {}
      const charged = await chargedBy(async () => {
        const { chunks } = await streamed({ stream_options: { include_usage: true } })
        usage = chunks.at(-1)!.usage as Chunk
      })
      const { prompt_tokens: prompt, completion_tokens: completion } = usage as { prompt_tokens: number; completion_tokens: number }
      expect([prompt > 0, completion]).toEqual([true, 3])
      expect(charged).toBe(BigInt(prompt) * 1_000n + BigInt(completion) * 10_000n)
    })

    it('the usage is not requested from the vendor: ours always is, and shown to callers who request it', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(2), END, THE_USAGE]))
      const charged = await chargedBy(async () => {
        const { chunks } = await streamed()
        expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
        expect(chunks).toHaveLength(4)
      })
      expect(cloud.last.body.stream_options).toEqual({ include_usage: true })
      expect(charged).toBe(20n * 1_000n + 9n * 10_000n)
    })

    it('`created` differs from that of the vendor, or changes: ours is that of the vendor, with ID and model, in every chunk', async () => {
      cloud.answering = streaming(sse([ROLE, { ...words(1)[0], created: HEAD.created + 5, id: 'chatcmpl-other' }, END, THE_USAGE]))
      const { chunks } = await streamed({ stream_options: { include_usage: true } })
      expect(chunks.map(({ id, created, model }) => ({ id, created, model }))).toEqual(
        Array(4).fill({ id: HEAD.id, created: HEAD.created, model: HEAD.model }),
      )
    })

    it('parallel tool calls all have index 0: ours have their own', async () => {
      const first = (id: string, name: string) =>
        delta({ tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: '' } }] })
      const more = (text: string) => delta({ tool_calls: [{ index: 0, function: { arguments: text } }] })
      const end = delta({}, { finish_reason: 'tool_calls' })
      cloud.answering = streaming(sse([ROLE, first('a', 'weather'), more('{"x":1}'), first('b', 'clock'), more('{"y":2}'), end, THE_USAGE]))
      const { choices } = await client.chat.completions.stream({ model: 'chat', messages }).finalChatCompletion()
      expect(choices[0]?.message.tool_calls).toMatchObject([
        { id: 'a', function: { name: 'weather', arguments: '{"x":1}' } },
        { id: 'b', function: { name: 'clock', arguments: '{"y":2}' } },
      ])
    })

    it('interleaved tool calls, and characters and line ends split between packets, are garbled: ours are whole', async () => {
      const call = (index: number, rest: object) => delta({ tool_calls: [{ index, ...rest }] })
      const text = sse([
        ROLE,
        delta({ content: '🌴 مدفوعة' }),
        call(0, { id: 'a', type: 'function', function: { name: 'weather', arguments: '' } }),
        call(1, { id: 'b', type: 'function', function: { name: 'clock', arguments: '' } }),
        call(1, { function: { arguments: '{"city":"جدة' } }),
        call(0, { function: { arguments: '{"city":"الرياض' } }),
        call(1, { function: { arguments: ' 🕌"}' } }),
        call(0, { function: { arguments: '"}' } }),
        delta({}, { finish_reason: 'tool_calls' }),
        THE_USAGE,
      ]).replaceAll('\n', '\r\n')
      cloud.answering = (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.socket?.setNoDelay(true)
        const bytes = Buffer.from(`${text}data: [DONE]\r\n\r\n`)
        const send = (at: number) => {
          if (at >= bytes.length) response.end()
          else response.write(bytes.subarray(at, at + 7), () => setImmediate(send, at + 7))
        }
        send(0)
      }
      const { choices } = await client.chat.completions.stream({ model: 'chat', messages }).finalChatCompletion()
      expect(choices[0]?.message.content).toBe('🌴 مدفوعة')
      expect(choices[0]?.message.tool_calls).toMatchObject([
        { id: 'a', function: { name: 'weather', arguments: '{"city":"الرياض"}' } },
        { id: 'b', function: { name: 'clock', arguments: '{"city":"جدة 🕌"}' } },
      ])
    })
  })

  describe('when a stream breaks', () => {
    const BROKEN = { type: 'server_error', param: null, code: 'engine_error' }

    it('a break after six chunks looks like a success without them: ours has all six, an error, and no [DONE]', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(5)]), (response) => setImmediate(() => response.destroy()))
      const charged = await chargedBy(async () => {
        const { data, chunks } = await streamed()
        expect(chunks.slice(0, -1)).toEqual([ROLE, ...words(5)])
        expect(chunks.at(-1)).toEqual({ error: { message: expect.stringContaining('broke off'), ...BROKEN } })
        expect(data).not.toContain('[DONE]')
      })
      expect(charged).toBe(0n)
    })

    it('an end without [DONE] looks like an end: ours is an error', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(2)]), (response) => response.end())
      const { chunks } = await streamed()
      expect(chunks.at(-1)).toMatchObject({ error: BROKEN })
    })

    it('one malformed line loses the request, or is passed on: ours ends with an error after the earlier chunks', async () => {
      cloud.answering = streaming(`${sse([ROLE, ...words(2)])}data: {"broken\n\n${sse([END])}`)
      const { data, chunks } = await streamed()
      expect(chunks).toEqual([ROLE, ...words(2), { error: { message: expect.stringContaining('malformed'), ...BROKEN } }])
      expect(data).not.toContain('[DONE]')
    })

    it('the code of a vendor error is lost: ours has it', async () => {
      const error = { message: 'The server is overloaded.', type: 'service_unavailable_error', param: null, code: 'server_is_overloaded' }
      cloud.answering = streaming(sse([ROLE, ...words(2), { error }]))
      const { chunks } = await streamed()
      expect(chunks.at(-1)).toEqual({
        error: { ...BROKEN, message: expect.stringContaining('overloaded'), vendor_code: 'server_is_overloaded' },
      })
    })

    it('an engine that fails before its first chunk has no fallback: ours has, and says so', async () => {
      for (const fail of [
        streaming('data: {"broken\n\n'),
        streaming(sse([{ error: { message: 'overloaded', code: 'overloaded' } }])),
        streaming('', (response) => setImmediate(() => response.destroy())),
      ]) {
        cloud.answering = (response, received) => {
          const reply = received.path.startsWith('/spare') ? streaming(sse([ROLE, ...words(1), END, THE_USAGE])) : fail
          reply(response, received)
        }
        const { status, body, headers } = await chat({ model: 'careful', stream: true })
        expect([status, headers.get('x-kis-warning')]).toEqual([200, 'answered_by:spare'])
        expect(body).toContain('[DONE]')
      }
    })

    it('the vendor continues after the client disconnects: ours is stopped, and its output is charged', async () => {
      cloud.answering = streaming(sse([ROLE, ...words(3)]), () => undefined)
      const charged = await chargedBy(async () => {
        const stream = await client.chat.completions.create({ model: 'chat', messages, stream: true })
        for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'w2 ') break
        await cloud.last.closed
      })
      expect(charged % 10_000n).toBeGreaterThan(0n)
      expect(charged / 10_000n).toBe(3n)
    })
  })

  describe('in an error', () => {
    it('an unknown model is a 400 with the status as its code: ours is 404 `model_not_found`', async () => {
      const refused = await client.chat.completions.create({ model: 'absent', messages }).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(OpenAI.NotFoundError)
      expect(refused).toMatchObject({ code: 'model_not_found', param: 'model', type: 'invalid_request_error' })
    })

    it('a missing model has another shape: ours has the same, and IDs with slashes are found', async () => {
      const { status, body } = await caller.rest('GET', '/v1/models/absent%2Fmodel')
      expect([status, Object.keys(body.error).toSorted(), body.error.code]).toEqual([404, ERROR_KEYS, 'model_not_found'])
    })

    it('a model outside the allowlist of the key is listed, or distinguishable from a missing one: ours is not', async () => {
      const { body: createdKey } = await caller.rest('POST', '/v1/keys', {
        name: 'narrow',
        scopes: ['inference'],
        model_allowlist: ['maker/chat'],
      })
      const narrow = createCaller(service, createdKey.key)
      expect((await narrow.openai.models.list()).data.map(({ id }) => id)).toEqual(['maker/chat'])
      expect(await narrow.openai.models.retrieve('maker/chat')).toMatchObject({ id: 'maker/chat', object: 'model' })
      expect((await narrow.rest('GET', '/v1/models/maker/chat')).body.id).toBe('maker/chat')
      const of = async (id: string) => JSON.stringify((await narrow.rest('GET', `/v1/models/${id}`)).body).replaceAll(id, 'the model')
      expect(await of('chat')).toBe(await of('absent'))
      const outcomeOf = async (model: string) =>
        JSON.stringify((await narrow.rest('POST', '/v1/chat/completions', { model, messages })).body).replaceAll(model, 'the model')
      expect(await outcomeOf('chat')).toBe(await outcomeOf('absent'))
      expect((await narrow.rest('GET', '/v1/models/chat')).status).toBe(404)
    })

    it.each([
      ['an unknown route', 'GET', '/v1/nothing', 404, 'unknown_url'],
      ['another HTTP method', 'GET', '/v1/chat/completions', 405, 'method_not_allowed'],
      ['a route that is not offered', 'POST', '/v1/completions', 404, 'not_offered'],
    ])('%s has another shape: ours has the four keys', async (_name, method, path, status, code) => {
      const response = await caller.rest(method, path, method === 'POST' ? {} : undefined)
      expect([response.status, Object.keys(response.body.error).toSorted(), response.body.error.code]).toEqual([status, ERROR_KEYS, code])
      expect(response.headers.get('x-should-retry')).toBe('false')
    })

    it('a bad key is a 400, or nothing: ours is 401 `invalid_api_key`', async () => {
      const unauthenticated = new OpenAI({ baseURL: `${service.rest}/v1`, apiKey: 'kis_live_wrong', maxRetries: 0 })
      const refused = await unauthenticated.chat.completions.create({ model: 'chat', messages }).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(OpenAI.AuthenticationError)
      expect(refused).toMatchObject({ code: 'invalid_api_key', param: null, type: 'invalid_request_error' })
    })

    it('a malformed body is a 500 without a message: ours is a 400 that says where', async () => {
      const { status, body } = await caller.rest('POST', '/v1/chat/completions', '{"model": "chat", "messages": [')
      expect([status, Object.keys(body.error).toSorted(), body.error.param]).toEqual([400, ERROR_KEYS, null])
      expect(body.error.message).toContain('not valid JSON')
    })

    it('a 500 of the vendor without JSON, or with a number as its code, is passed on: ours has the four keys, as text', async () => {
      for (const response of [
        (response: ServerResponse) => void response.writeHead(500, { 'content-type': 'text/html' }).end('<html>'),
        answering({ error: { message: 'x', type: 'None', param: 'None', code: 500 } }, 500),
      ]) {
        cloud.answering = response
        const { status, body } = await chat()
        expect([status, Object.keys(body.error).toSorted()]).toEqual([502, ERROR_KEYS])
        expect(body.error).toMatchObject({ type: 'server_error', param: null, code: 'engine_error', message: expect.any(String) })
      }
    })

    it.each<[string, object, string]>([
      ['`stream_options` without `stream`', { stream_options: { include_usage: true } }, 'stream_options'],
      ['500 choices', { n: 500 }, 'n'],
      ['a temperature of 9', { temperature: 9 }, 'temperature'],
      ['no messages', { messages: [] }, 'messages'],
      ['`max_tokens` of -1', { max_tokens: -1 }, 'max_tokens'],
      ['`max_tokens` of 1e308', { max_tokens: 1e308 }, 'max_tokens'],
      ['`max_tokens` of 2^63 as text', { max_tokens: '9223372036854775808' }, 'max_tokens'],
      ['a million choices', { n: 1_000_000 }, 'n'],
      ['100,000 stops', { stop: Array(100_000).fill('a') }, 'stop'],
      [
        'an open strict schema',
        { response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: { type: 'object', properties: {} } } } },
        'response_format.json_schema.schema.additionalProperties',
      ],
      ['a JSON format that the messages do not mention', { response_format: { type: 'json_object' } }, 'messages'],
    ])('%s is passed to the vendor: ours is refused, costs nothing and is named', async (_name, fields, param) => {
      const { length } = cloud.received
      const charged = await chargedBy(async () => {
        const { status, body } = await chat(fields)
        expect([status, body.error.param, body.error.type]).toEqual([400, param, 'invalid_request_error'])
      })
      expect([charged, cloud.received.length]).toEqual([0n, length])
    })
  })

  describe('in headers', () => {
    it('`x-request-id` is absent: ours is on every response, and the client has it in its errors', async () => {
      for (const [method, path] of [
        ['GET', '/v1/models'],
        ['GET', '/v1/models/absent'],
        ['GET', '/v1/nothing'],
        ['PUT', '/v1/models'],
        ['POST', '/v1/chat/completions'],
      ] as const) {
        const { headers } = await caller.rest(method, path, method === 'POST' ? '{' : undefined)
        expect(headers.get('x-request-id')).toMatch(/^req_/)
      }
      const refused = await client.models.retrieve('absent').catch((error: unknown) => error)
      expect(refused).toMatchObject({ requestID: expect.stringMatching(/^req_/) })
    })

    it('the retry delay of a vendor is hidden under another name: ours is `retry-after`', async () => {
      cloud.answering = answering({ error: { message: 'slow down', code: 'slow_down' } }, 429, { 'retry-after': '30' })
      const { status, headers, body } = await chat()
      expect([status, body.error.code, body.error.vendor_code]).toEqual([429, 'rate_limit_exceeded', 'slow_down'])
      expect([headers.get('retry-after'), headers.get('retry-after-ms'), headers.get('x-should-retry')]).toEqual(['30', '30000', 'true'])
    })

    it('clients retry with an empty wallet: ours are told not to, and the vendor receives nothing', async () => {
      const poor = await newOrganization(createCaller(service, service.key), service, { creditUsd: '0' })
      const { length } = cloud.received
      const patient = new OpenAI({ baseURL: `${service.rest}/v1`, apiKey: poor.key, maxRetries: 5 })
      for (const stream of [false, true]) {
        const refused = await patient.chat.completions.create({ model: 'chat', messages, stream }).catch((error: unknown) => error)
        expect(refused).toMatchObject({ status: 429, code: 'insufficient_quota', type: 'insufficient_quota' })
      }
      const vectors = await patient.embeddings.create({ model: 'vectors', input: 'a' }).catch((error: unknown) => error)
      expect(vectors).toMatchObject({ status: 429, code: 'insufficient_quota' })
      expect(cloud.received.length).toBe(length)
    })

    it('`x-ratelimit-*` is absent: ours reports limit, rest and reset where the plan has limits', async () => {
      const metered = await newOrganization(createCaller(service, service.key), service, { plan: 'metered' })
      cloud.answering = answering({ ...HEAD, choices: [{ index: 0, message: { content: 'Hi' } }], usage: USAGE })
      const { headers } = await metered.rest('POST', '/v1/chat/completions', { model: 'chat', messages })
      expect(headers.get('x-ratelimit-limit-requests')).toBe('6')
      expect(headers.get('x-ratelimit-remaining-requests')).toBe('5')
      expect(headers.get('x-ratelimit-limit-tokens')).toBe('1000000')
      expect(headers.get('x-ratelimit-reset-requests')).toMatch(/^(\d+h)?(\d+m)?([\d.]+(s|ms))?$/)
    })
  })

  describe('in embeddings', () => {
    /** 768 numbers of length 1 as the vendor has them, and how it writes them. */
    const vector = Float32Array.from({ length: 768 }, (_, index) => Math.sin(index + 1))
    const norm = Math.hypot(...vector)
    const unit = vector.map((component) => component / norm)
    const bytes = Buffer.from(unit.buffer).toString('base64')
    const vendorSays = (embedding: unknown) =>
      answering({
        object: 'list',
        model: 'v',
        data: [{ object: 'embedding', index: 0, embedding }],
        usage: { prompt_tokens: 3, total_tokens: 3 },
      })

    it('768 numbers arrive as 192: ours arrive as 768, equal as base64 and as numbers, in any format of the vendor', async () => {
      for (const embedding of [bytes, [...unit]]) {
        cloud.answering = vendorSays(embedding)
        const byBase64 = (await client.embeddings.create({ model: 'vectors', input: 'leave' })).data[0]!.embedding
        const byNumber = (await client.embeddings.create({ model: 'vectors', input: 'leave', encoding_format: 'float' })).data[0]!.embedding
        expect(byBase64).toHaveLength(768)
        expect([...Float32Array.from(byNumber)]).toEqual([...byBase64])
        for (const [index, component] of byBase64.entries()) expect(component).toBeCloseTo(unit[index]!, 6)
      }
    })

    it.each<[string, unknown]>([
      ['other dimensions', [...unit.slice(0, 192)]],
      ['a value that is not a number', ['a', ...unit.slice(1)]],
      ['a zero vector', Array(768).fill(0)],
    ])('%s is passed on: ours is an error that costs nothing', async (_name, embedding) => {
      cloud.answering = vendorSays(embedding)
      const charged = await chargedBy(async () => {
        const { status, body } = await caller.rest('POST', '/v1/embeddings', { model: 'vectors', input: 'leave' })
        expect([status, body.error.code]).toEqual([502, 'engine_error'])
      })
      expect(charged).toBe(0n)
    })
  })

  it('some routes skip the key: ours all need one, except the API reference', async () => {
    const { length } = cloud.received
    for (const { method, path } of restRoutes.map(({ operation }) => operation)) {
      const response = await fetch(`${service.rest}${path.replaceAll(/\{\w+\}/g, 'x')}`, { method })
      expect([method, path, response.status]).toEqual([method, path, 401])
      await response.body?.cancel()
    }
    expect(cloud.received.length).toBe(length)
  })
})
