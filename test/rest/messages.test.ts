import { createAnthropic } from '@ai-sdk/anthropic'
import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, it } from 'vitest'
import { restConfig } from '../../rest-adapter/config.ts'
import { ERRORS, type ErrorCode } from '../../schema/errors.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { KEY, type RunningAdapter, startAdapter } from './support.ts'

const createClient = ({ url }: RunningAdapter) => new Anthropic({ baseURL: url, apiKey: KEY, authToken: null, maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'How long is annual leave?' }]
const input = { model: 'm', max_tokens: 100, messages }
const usage = { promptTokens: 20, cachedPromptTokens: 4, cacheWritePromptTokens: 3, completionTokens: 9, totalTokens: 29 }
const answering = (message: object, finish_reason = 'stop', more: object = {}) => ({
  ChatCompletion: () => ({
    createChatCompletion: {
      response: { id: 'answer-1', model: 'of-the-vendor', choices: [{ index: 0, message, finish_reason, ...more }] },
      warnings: [],
      usage,
    },
  }),
})

describe('Anthropic client', () => {
  it('receives a message from the completion', async () => {
    await using adapter = await startAdapter(answering({ role: 'assistant', content: '30 days.' }))
    const { data, request_id } = await createClient(adapter).messages.create(input).withResponse()
    expect(data).toMatchObject({
      id: 'answer-1',
      type: 'message',
      role: 'assistant',
      model: 'of-the-vendor',
      content: [{ type: 'text', text: '30 days.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 13, cache_read_input_tokens: 4, cache_creation_input_tokens: 3, output_tokens: 9 },
    })
    expect(data.content[0]).not.toHaveProperty('citations')
    const [received] = adapter.gateway.received
    expect(received?.variables).toEqual({ input: { request: { model: 'm', messages, max_completion_tokens: 100 } } })
    expect(request_id).toBe(received?.context.requestId)
  })

  it('receives the events of the chunks, one block after the other', async () => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      id: 'answer-1',
      model: 'v',
      choices: [{ index: 0, delta, finish_reason }],
    })
    await using adapter = await startAdapter({
      async *ChatCompletionChunks() {
        yield { chatCompletion: { chunks: [chunk({ role: 'assistant', content: '' })], warnings: ['reasoning_effort_not_honored'] } }
        yield { chatCompletion: { chunks: [chunk({ content: '30' }), chunk({ content: ' days' })] } }
        yield { chatCompletion: { chunks: [chunk({}, 'length')] } }
        yield { chatCompletion: { chunks: [], usage } }
      },
    })
    const { data, response } = await createClient(adapter)
      .messages.create({ ...input, stream: true })
      .withResponse()
    const events: Anthropic.MessageStreamEvent[] = []
    for await (const event of data) events.push(event)
    expect(events.map(({ type }) => type)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'max_tokens' }, usage: { input_tokens: 13, output_tokens: 9 } })
    expect(response.headers.get('x-kis-warning')).toBe('thinking_not_honored')
    expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id'))
  })

  it('is compatible with the AI SDK, which refuses null in unknown fields', async () => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      id: 'a',
      model: 'v',
      choices: [{ index: 0, delta, finish_reason }],
    })
    await using adapter = await startAdapter({
      ...answering({ role: 'assistant', content: '30 days.' }),
      async *ChatCompletionChunks() {
        yield { chatCompletion: { chunks: [chunk({ role: 'assistant', content: '30' }), chunk({ content: ' days.' })], warnings: [] } }
        yield { chatCompletion: { chunks: [chunk({}, 'stop')] } }
        yield { chatCompletion: { chunks: [], usage } }
      },
    })
    const model = createAnthropic({ baseURL: `${adapter.url}/v1`, apiKey: KEY })('m')
    const prompt = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'How long is annual leave?' }] }] }
    expect((await model.doGenerate(prompt)).content).toEqual([{ type: 'text', text: '30 days.' }])
    const { stream } = await model.doStream(prompt)
    const parts = await Array.fromAsync(stream)
    expect(parts.filter(({ type }) => type === 'error')).toEqual([])
    expect(parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('')).toBe('30 days.')
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'stop' } })
  })

  it('may send its key in x-api-key', async () => {
    await using adapter = await startAdapter(answering({ content: 'ok' }))
    const headers = { 'x-api-key': KEY, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
    const response = await fetch(`${adapter.url}/v1/messages?beta=true`, { method: 'POST', headers, body: JSON.stringify(input) })
    expect(response.status).toBe(200)
    const elsewhere = await fetch(`${adapter.url}/v1/models`, { headers })
    expect(elsewhere.status).toBe(401)
    expect(await elsewhere.json()).toMatchObject({ error: { code: 'invalid_api_key' } })
  })

  const errors: readonly [ErrorCode, number, string][] = [
    ['invalid_api_key', 401, 'authentication_error'],
    ['permission_denied', 403, 'permission_error'],
    ['insufficient_quota', 402, 'billing_error'],
    ['rate_limit_exceeded', 429, 'rate_limit_error'],
    ['model_not_found', 404, 'not_found_error'],
    ['unsupported_value', 400, 'invalid_request_error'],
    ['payload_too_large', 413, 'request_too_large'],
    ['engine_error', 502, 'api_error'],
    ['engine_timeout', 504, 'timeout_error'],
    ['engine_unavailable', 529, 'overloaded_error'],
    ['service_unavailable', 529, 'overloaded_error'],
    ['internal', 500, 'api_error'],
  ]
  it('receives each failure with the status and type of its own protocol', async () => {
    let code: ErrorCode = 'internal'
    await using adapter = await startAdapter({
      ChatCompletion() {
        throw new KisError(code, 'as scripted', { param: 'stop' })
      },
    })
    for (const [each, status, type] of errors) {
      code = each
      const failure = await createClient(adapter)
        .messages.create(input)
        .catch((error) => error)
      expect(failure).toMatchObject({ status, type, requestID: adapter.gateway.received.at(-1)?.context.requestId, errorCode: code })
      expect(failure.error).toMatchObject({ type: 'error', request_id: failure.requestID, error: { details: { param: 'stop_sequences' } } })
      expect(failure.headers.get('x-should-retry')).toBe(String(ERRORS[code].retry))
    }
  })

  it('receives the refusal of a thread with the code that the SDK knows', async () => {
    await using adapter = await startAdapter({})
    const failure = await createClient(adapter)
      .messages.create({ ...input, thread: { type: 'create' } } as never)
      .catch((error) => error)
    expect(failure).toMatchObject({ status: 400, errorCode: 'thread_unsupported_request' })
    expect(failure.error.error.details).toEqual({ error_code: 'thread_unsupported_request', param: 'thread' })
  })

  it('receives a failure during a stream as an error event', async () => {
    await using adapter = await startAdapter({
      async *ChatCompletionChunks() {
        yield { chatCompletion: { chunks: [{ id: 'a', model: 'v', choices: [{ index: 0, delta: { content: 'Hello' } }] }] } }
        throw new KisError('engine_error', 'The engine broke off.')
      },
    })
    const seen: string[] = []
    const stream = createClient(adapter)
      .messages.stream(input)
      .on('text', (text) => seen.push(text))
    await expect(stream.finalMessage()).rejects.toMatchObject({ type: 'api_error', apiMessage: 'The engine broke off.' })
    expect(seen).toEqual(['Hello'])
  })

  it('is refused with a body above the limit', async () => {
    await using adapter = await startAdapter({}, { config: { ...restConfig(), chatBodyBytes: 1_000 } })
    const failure = await createClient(adapter)
      .messages.create({ ...input, system: 'x'.repeat(1_000) })
      .catch((error) => error)
    expect(failure).toMatchObject({ status: 413, type: 'request_too_large', errorCode: 'payload_too_large' })
  })

  it('receives errors of its own protocol for an unknown method, invalid JSON, or a missing key', async () => {
    await using adapter = await startAdapter()
    const wrongMethod = await adapter.fetch('/v1/messages', { method: 'GET' })
    expect([wrongMethod.status, await wrongMethod.json()]).toMatchObject([405, { type: 'error', error: { type: 'invalid_request_error' } }])
    const batches = await createClient(adapter)
      .messages.batches.list()
      .catch((error) => error)
    expect(batches).toMatchObject({ status: 404, type: 'not_found_error', errorCode: 'not_offered' })
    const noJson = await adapter.fetch('/v1/messages', { method: 'POST', headers: { 'content-type': 'text/plain' } })
    expect([noJson.status, await noJson.json()]).toMatchObject([400, { type: 'error', request_id: noJson.headers.get('request-id') }])
    const noKey = await fetch(`${adapter.url}/v1/messages`, { method: 'POST' })
    expect([noKey.status, await noKey.json()]).toMatchObject([401, { type: 'error', error: { type: 'authentication_error' } }])
  })
})
