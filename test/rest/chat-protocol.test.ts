import { once } from 'node:events'
import { connect } from 'node:net'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { KisError, ModelNotFound } from '../../subgraphs/common/errors.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { KEY, type RunningAdapter, SOON, startAdapter } from './support.ts'

const messages = [{ role: 'user' as const, content: 'How long is annual leave?' }]
const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1750000000,
  model: 'gpt-of-the-vendor',
  system_fingerprint: 'fp_1',
  choices: [{ index: 0, message: { role: 'assistant', content: '30 days.', refusal: null }, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
}
const chunk = (choices: readonly object[], rest: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices,
  ...rest,
})
const delta = (content: string) => chunk([{ index: 0, delta: { content }, finish_reason: null }])
const last = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])
const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
/** An event of the stream `strm_1`. `cursor`: the number of chunks up to its end. */
const event = (cursor: number, ...chunks: readonly object[]) => ({ chatCompletion: { id: 'strm_1', cursor: String(cursor), chunks } })

const createClient = (adapter: RunningAdapter) => new OpenAI({ baseURL: `${adapter.url}/v1`, apiKey: KEY, maxRetries: 0 })

const dataOf = (line: string) => JSON.parse(line.slice(line.indexOf('data: ') + 'data: '.length))

/** The events of a stream that was asked for with `body`. */
async function readLines(adapter: RunningAdapter, body: object, headers: Record<string, string> = {}): Promise<readonly string[]> {
  const response = await adapter.fetch('/v1/chat/completions', { body: { model: 'm', messages, stream: true, ...body }, headers })
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  return (await response.text()).split('\n\n').filter(Boolean)
}

describe('OpenAI client', () => {
  it('receives the completion of the engine, and sends unknown fields', async () => {
    await using adapter = await startAdapter({ ChatCompletion: () => ({ createChatCompletion: { response: completion } }) })
    const request = { model: 'm', messages, vendor_extra: { a: [1] } }
    const { data, response, request_id } = await createClient(adapter).chat.completions.create(request).withResponse()
    expect(data).toMatchObject(completion)
    expect(adapter.gateway.received[0]?.variables).toEqual({ input: { request, replayAsBytes: true } })
    expect(adapter.gateway.received[0]?.context.caller).toBe(KEY)
    expect(request_id).toBe(adapter.gateway.received[0]?.context.requestId)
    expect(response.headers.get('openai-version')).toBe('2020-10-01')
    expect(response.headers.get('openai-processing-ms')).toMatch(/^\d+$/)
  })

  it('reads unsupported parameters in a header, plain and streamed', async () => {
    const warnings = ['seed_not_honored', 'response_format_not_honored']
    await using adapter = await startAdapter({
      ChatCompletion: () => ({ createChatCompletion: { response: completion, warnings } }),
      async *ChatCompletionChunks() {
        yield { chatCompletion: { ...event(1, delta('a')).chatCompletion, warnings } }
        yield { chatCompletion: { ...event(2, last).chatCompletion, warnings: null } }
      },
    })
    for (const stream of [false, true]) {
      const { headers } = await adapter.fetch('/v1/chat/completions', { body: { model: 'm', messages, stream } })
      expect(headers.get('x-kis-warning')).toBe('seed_not_honored, response_format_not_honored')
    }
  })

  it('lists and reads models whose IDs contain slashes', async () => {
    const model = {
      ...{ id: 'meta/llama', kind: 'CHAT', vendor: 'groq', residency: 'CLOUD', supportsVision: false, supportsTools: true },
      ...{
        supportsResponseSchema: false,
        supportsReasoning: true,
        contextWindow: null,
        price: null,
        createdAt: '2026-01-31T12:00:00.000Z',
      },
    }
    await using adapter = await startAdapter({
      Models: () => ({ models: [model] }),
      Model: ({ id }: { id: string }) => ({ model: id === model.id ? model : null }),
    })
    const client = createClient(adapter)
    const ids: string[] = []
    for await (const { id } of client.models.list()) ids.push(id)
    expect(ids).toEqual(['meta/llama'])
    expect(await client.models.retrieve('meta/llama')).toMatchObject({ id: 'meta/llama', owned_by: 'groq', object: 'model' })
    const absent = await client.models.retrieve('other').catch((error: unknown) => error)
    expect(absent).toBeInstanceOf(OpenAI.NotFoundError)
    expect(absent).toMatchObject({ code: 'model_not_found', param: 'model' })
  })

  it('receives embeddings, in base64 by default', async () => {
    const vector = Float32Array.from([0.6, -0.8])
    const base64 = Buffer.from(vector.buffer).toString('base64')
    await using adapter = await startAdapter({
      Embeddings: ({ input }: { input: { encodingFormat: string } }) => ({
        createEmbeddings: {
          model: { id: 'e5' },
          promptTokens: 4,
          data: [{ index: 0, embedding: input.encodingFormat === 'BASE64' ? base64 : [0.6, -0.8] }],
        },
      }),
    })
    const client = createClient(adapter)
    const decoded = await client.embeddings.create({ model: 'e5', input: 'leave' })
    expect(decoded.data[0]?.embedding).toEqual([...vector])
    expect(adapter.gateway.received[0]?.variables).toEqual({ input: { model: 'e5', input: 'leave', encodingFormat: 'BASE64' } })
    const floats = await client.embeddings.create({ model: 'e5', input: ['leave'], encoding_format: 'float', dimensions: 2 })
    expect(floats).toMatchObject({
      object: 'list',
      model: 'e5',
      data: [{ object: 'embedding', index: 0, embedding: [0.6, -0.8] }],
      usage: { prompt_tokens: 4, total_tokens: 4 },
    })
  })

  it('streams a completion', async () => {
    await using adapter = await startAdapter({
      async *ChatCompletionChunks() {
        yield event(2, delta('30 '), delta('days'))
        yield event(4, last, chunk([], { usage }))
      },
    })
    let text = ''
    const stream = await createClient(adapter).chat.completions.create({ model: 'm', messages, stream: true })
    for await (const { choices } of stream) text += choices[0]!.delta.content ?? ''
    expect(text).toBe('30 days')
  })

  it('maps each failure to the class of its status, and does not retry permanent errors', async () => {
    const failures = [
      { error: new ModelNotFound('m'), as: OpenAI.NotFoundError },
      { error: new KisError('insufficient_quota', 'No money.'), as: OpenAI.RateLimitError },
      { error: new KisError('residency_policy_violation', 'Cloud.'), as: OpenAI.PermissionDeniedError },
      { error: new KisError('invalid_type', 'No.', { param: 'input.request.messages[0].content' }), as: OpenAI.BadRequestError },
    ]
    for (const { error, as } of failures) {
      for (const stream of [false, true]) {
        const fail = () => {
          throw error
        }
        await using adapter = await startAdapter({ ChatCompletion: fail, ChatCompletionChunks: fail })
        const client = new OpenAI({ baseURL: `${adapter.url}/v1`, apiKey: KEY, maxRetries: 2 })
        const thrown = await client.chat.completions.create({ model: 'm', messages, stream }).catch((reason: unknown) => reason)
        expect(thrown).toBeInstanceOf(as)
        expect(thrown).toMatchObject({ code: error.code, param: error.param?.replace('input.request.', '') ?? null })
        expect((thrown as InstanceType<typeof OpenAI.APIError>).requestID).toBe(adapter.gateway.received[0]?.context.requestId)
        expect(adapter.gateway.received.length).toBe(1)
      }
    }
  })

  it('retries temporary errors', async () => {
    let calls = 0
    await using adapter = await startAdapter({
      ChatCompletion() {
        if (calls++ === 0) throw new KisError('engine_unavailable', 'Busy.', { retryAfterMs: 1 })
        return { createChatCompletion: { response: completion } }
      },
    })
    const client = new OpenAI({ baseURL: `${adapter.url}/v1`, apiKey: KEY, maxRetries: 1 })
    expect((await client.chat.completions.create({ model: 'm', messages })).id).toBe('chatcmpl-1')
  })

  it('ends the subscription when it aborts a stream', async () => {
    await using adapter = await startAdapter({
      async *ChatCompletionChunks() {
        yield event(1, delta('one'))
        await new Promise(() => {})
      },
    })
    const stream = await createClient(adapter).chat.completions.create({ model: 'm', messages, stream: true })
    for await (const _ of stream) break
    await expect.poll(() => adapter.gateway.ended, SOON).toBe(1)
  })

  it('ends the operation when it disconnects before the response, plain and streamed', async () => {
    const never = () => new Promise<never>(() => {})
    await using adapter = await startAdapter({
      ChatCompletion: never,
      async *ChatCompletionChunks() {
        yield await never()
      },
    })
    for (const stream of [false, true]) {
      const controller = new AbortController()
      const request = createClient(adapter).chat.completions.create({ model: 'm', messages, stream }, { signal: controller.signal })
      const before = adapter.gateway.received.length
      const gone = expect(request).rejects.toThrow()
      await expect.poll(() => adapter.gateway.received.length, SOON).toBe(before + 1)
      controller.abort()
      await gone
      await expect.poll(() => adapter.gateway.received.at(-1)?.context.signal.aborted, SOON).toBe(true)
    }
    expect(adapter.gateway.ended).toBe(1)
  })
})

describe('Chat stream over SSE', () => {
  const streamEvents = async function* () {
    yield event(1, chunk([], { prompt_filter_results: [], usage: null }))
    yield event(2, delta('30'))
    yield event(4, last, chunk([], { usage }))
  }

  it('omits the usage by default', async () => {
    await using adapter = await startAdapter({ ChatCompletionChunks: streamEvents })
    expect(await readLines(adapter, {})).toEqual([
      `data: ${JSON.stringify(chunk([], { prompt_filter_results: [] }))}`,
      `data: ${JSON.stringify(delta('30'))}`,
      `data: ${JSON.stringify(last)}`,
      'data: [DONE]',
    ])
  })

  it('has the position of each chunk as ID only if the caller requests resumption', async () => {
    await using adapter = await startAdapter({ ChatCompletionChunks: streamEvents })
    const lines = await readLines(adapter, {}, { 'x-kis-resumable': 'true' })
    expect(lines.map((line) => /^id: (.*)$/m.exec(line)?.[1])).toEqual(['1', '2', '3', undefined])
  })

  it('has `usage: null` in every chunk before the requested usage', async () => {
    await using adapter = await startAdapter({ ChatCompletionChunks: streamEvents })
    const lines = await readLines(adapter, { stream_options: { include_usage: true } })
    const usages = lines.slice(0, -1).map((line) => dataOf(line).usage)
    expect(usages).toEqual([null, null, null, usage])
    expect(lines.at(-1)).toBe('data: [DONE]')
  })

  it('ends after a failure with one error and no [DONE]', async () => {
    await using adapter = await startAdapter({
      async *ChatCompletionChunks() {
        yield event(1, delta('30'))
        throw new KisError('engine_error', 'The vendor cut the line.', { vendorCode: 'overloaded' })
      },
    })
    const lines = await readLines(adapter, {})
    expect(lines.length).toBe(2)
    expect(dataOf(lines[1]!)).toEqual({
      error: { message: 'The vendor cut the line.', type: 'server_error', param: null, code: 'engine_error', vendor_code: 'overloaded' },
    })
  })

  it('is an error with a status when it ends without a chunk', async () => {
    await using adapter = await startAdapter({ async *ChatCompletionChunks() {} })
    const response = await adapter.fetch('/v1/chat/completions', { body: { model: 'm', messages, stream: true } })
    expect(response.status).toBe(502)
  })

  it('has the request ID and the headers of the protocol', async () => {
    await using adapter = await startAdapter({ ChatCompletionChunks: streamEvents })
    const response = await adapter.fetch('/v1/chat/completions', {
      body: { model: 'm', messages, stream: true },
      headers: { 'x-request-id': 'mine' },
    })
    await response.text()
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-request-id': expect.stringMatching(/^req_/),
      'x-client-request-id': 'mine',
      'openai-version': '2020-10-01',
      'access-control-allow-origin': '*',
      'cache-control': 'no-cache',
    })
  })

  it('is read from the gateway at the speed of its client', async () => {
    let produced = 0
    const text = 'x'.repeat(64 * 1024)
    await using adapter = await startAdapter({
      async *ChatCompletionChunks() {
        // 64 MiB: more than all buffers of a local connection hold.
        for (; produced < 1024; produced++) yield event(produced + 1, delta(text))
      },
    })
    const body = JSON.stringify({ model: 'm', messages, stream: true })
    const socket = connect(Number(new URL(adapter.url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.pause()
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    let before = -1
    await expect
      .poll(
        () => {
          const isStill = produced > 0 && produced === before
          before = produced
          return isStill
        },
        { interval: 300, timeout: 20_000 },
      )
      .toBe(true)
    expect(produced).toBeLessThan(1024)
    socket.destroy()
    await expect.poll(() => adapter.gateway.ended, SOON).toBe(1)
  })

  it('keeps an idle connection alive with a comment every 15 s', async () => {
    const clock = new HandClock()
    await using adapter = await startAdapter(
      {
        async *ChatCompletionChunks() {
          yield event(1, delta('one'))
          await new Promise(() => {})
        },
      },
      { clock },
    )
    const response = await adapter.fetch('/v1/chat/completions', { body: { model: 'm', messages, stream: true } })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader.read()).value).toContain('"one"')
    await clock.advance(15_000)
    expect((await reader.read()).value).toBe(': keep-alive\n\n')
    await clock.advance(15_000)
    expect((await reader.read()).value).toBe(': keep-alive\n\n')
    await reader.cancel()
    await expect.poll(() => adapter.gateway.ended, SOON).toBe(1)
  })

  it('is ended for a client that reads nothing for 30 s', async () => {
    const clock = new HandClock()
    const text = 'x'.repeat(1024 * 1024)
    await using adapter = await startAdapter(
      {
        async *ChatCompletionChunks() {
          for (let at = 0; at < 64; at++) yield event(at + 1, delta(text))
        },
      },
      { clock },
    )
    const response = await adapter.fetch('/v1/chat/completions', { body: { model: 'm', messages, stream: true } })
    await expect.poll(() => clock.waits(30_000), SOON).toBe(true)
    await expect
      .poll(async () => {
        await clock.advance(30_000)
        return adapter.gateway.ended
      }, SOON)
      .toBe(1)
    await expect(response.text()).rejects.toThrow()
  })
})

/** A clock that the test moves. */
class HandClock implements Clock {
  #nowMs = 1_769_860_800_000
  readonly #sleepers = new Set<{ readonly ms: number; readonly atMs: number; readonly wake: () => void }>()

  now(): Date {
    return new Date(this.#nowMs)
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { ms, atMs: this.#nowMs + ms, wake: resolve }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', () => {
        this.#sleepers.delete(sleeper)
        reject(signal.reason)
      })
    })
  }

  /** Whether anything sleeps for so long. */
  waits(ms: number): boolean {
    return [...this.#sleepers].some((sleeper) => sleeper.ms === ms)
  }

  async advance(ms: number): Promise<void> {
    this.#nowMs += ms
    for (const sleeper of this.#sleepers) {
      if (sleeper.atMs > this.#nowMs) continue
      this.#sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
}
