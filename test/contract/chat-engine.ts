import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { isAbort, KisError } from '../../subgraphs/common/errors.ts'
import type { ChatCall, ChatEngine, ProtocolObject } from '../../subgraphs/inference/ports/engines.ts'
import { VendorCloud } from '../support/engines/vendor-cloud.ts'
import { beginning, DEFAULT_USAGE, failing, type Said, saying, type Wire } from '../support/engines/vendor-wires.ts'

/** One kind of engine, before a vendor's cloud. */
export interface ChatEngineCase {
  readonly name: string
  readonly engineModel: string
  readonly wire: Wire
  open(cloud: VendorCloud): Promise<{ readonly chat: ChatEngine } & AsyncDisposable>
  /** Path, headers and body that the vendor must get for `RICH_REQUEST`. */
  readonly rich: { readonly path: string; readonly headers: Readonly<Record<string, unknown>>; readonly body: unknown }
  /** Fields of `RICH_REQUEST` that the vendor has no counterpart for. */
  readonly dropped: readonly string[]
  /** Part of the body for a request with a JSON schema, and for one with `tool_choice: "required"`. */
  readonly schemaBody: object
  readonly requiredToolBody: object
  /** Ids of tool calls that the vendor itself makes. */
  readonly callIds: readonly [string, string]
  /** How the protocol says that the vendor's filter ended the answer; `error`: the vendor calls it a failure. */
  readonly filtered: 'content_filter' | 'error'
  readonly reportsCached: boolean
  readonly reportsReasoning: boolean
  readonly namesModel: boolean
  readonly namesResponse: boolean
  /** Whether aimock has the vendor's wire, and has it right. */
  readonly mock: { readonly plain: boolean; readonly streamed: boolean; readonly tools: boolean }
}

const IMAGE = 'data:image/png;base64,iVBORw0KGgo='
const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const TOOLS = [
  { type: 'function', function: { name: 'weather', description: 'Weather of a city', parameters: WEATHER } },
  { type: 'function', function: { name: 'clock', description: 'Time of day' } },
]
const MESSAGES = [{ role: 'user', content: 'How long is annual leave?' }]

/** Everything that every vendor has a word for, and some that only some have. */
export const RICH_REQUEST: ProtocolObject = {
  model: 'as-clients-call-it',
  temperature: 0.4,
  frequency_penalty: 0.5,
  presence_penalty: 0.25,
  seed: 7,
  stop: ['END', 'STOP'],
  max_completion_tokens: 500,
  logit_bias: { 1: 2 },
  messages: [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'ما هذا؟' },
        { type: 'image_url', image_url: { url: IMAGE, detail: 'low' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_from_elsewhere_a', type: 'function', function: { name: 'weather', arguments: '{"city":"الرياض"}' } },
        { id: 'call_from_elsewhere_b', type: 'function', function: { name: 'clock', arguments: '' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_from_elsewhere_a', content: '31 °C' },
    { role: 'tool', tool_call_id: 'call_from_elsewhere_b', content: [{ type: 'text', text: 'noon' }] },
    { role: 'user', content: 'Now answer.' },
  ],
  tools: TOOLS,
  tool_choice: 'auto',
}

const NEVER = new AbortController().signal
/** The wait for a request to reach the vendor, on a busy machine. */
const SOON = { timeout: 10_000 }

interface Choice {
  readonly index: number
  readonly message: {
    readonly role: string
    readonly content: string | null
    readonly refusal: string | null
    readonly tool_calls?: readonly ProtocolObject[]
    readonly reasoning_content?: string
    readonly reasoning_details?: readonly ProtocolObject[]
  }
  readonly finish_reason: string
}
export interface Completion {
  readonly id: string
  readonly object: string
  readonly created: number
  readonly model: string
  readonly choices: readonly [Choice]
  readonly usage: Usage
}
interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
  readonly completion_tokens_details: { readonly reasoning_tokens: number }
}
interface Delta {
  readonly role?: string
  readonly content?: string | null
  readonly refusal?: string | null
  readonly reasoning_content?: string
  readonly reasoning_details?: readonly ProtocolObject[]
  readonly tool_calls?: readonly {
    readonly index: number
    readonly id?: string
    readonly function: { readonly name?: string; readonly arguments?: string }
  }[]
}
interface Chunk {
  readonly id: string
  readonly object: string
  readonly created: number
  readonly model: string
  readonly choices: readonly { readonly index: number; readonly delta: Delta; readonly finish_reason: string | null }[]
  readonly usage?: Usage
}

/** What a client makes of the chunks, having checked the protocol's rules for them. */
export function joined(chunks: readonly Chunk[]) {
  const heads = new Set(chunks.map(({ id, object, created, model }) => JSON.stringify([id, object, created, model])))
  expect(heads.size).toBe(1)
  const choices = chunks.flatMap((chunk) => chunk.choices)
  const deltas = choices.map(({ delta }) => delta)
  expect(deltas[0]).toEqual({ role: 'assistant', content: '', refusal: null })
  expect(deltas.slice(1).filter(({ role }) => role)).toEqual([])
  expect(choices.slice(0, -1).every((choice) => choice.finish_reason === null)).toBe(true)
  expect(choices.at(-1)?.delta).toEqual({})
  expect(choices.at(-1)?.finish_reason).toEqual(expect.any(String))
  const usageChunk = chunks.at(-1)!
  if (usageChunk.usage) expect(usageChunk.choices).toEqual([])
  const calls: { id: string; name: string; arguments: string }[] = []
  for (const { index, id, function: call } of deltas.flatMap((delta) => delta.tool_calls ?? [])) {
    if (id !== undefined) {
      expect([index, typeof call.name]).toEqual([calls.length, 'string'])
      calls.push({ id, name: call.name!, arguments: call.arguments! })
    } else {
      expect(call.name).toBeUndefined()
      calls[index]!.arguments += call.arguments!
    }
  }
  return {
    text: deltas.map(({ content }) => content ?? '').join(''),
    refusal: deltas.map(({ refusal }) => refusal ?? '').join(''),
    reasoning: deltas.map((delta) => delta.reasoning_content ?? '').join(''),
    details: deltas.flatMap((delta) => (delta.reasoning_details ? [delta.reasoning_details] : [])).at(-1),
    calls,
    finishReason: choices.at(-1)!.finish_reason,
    usage: usageChunk.usage,
    head: chunks[0]!,
  }
}

export async function catchError(promise: Promise<unknown>): Promise<KisError> {
  const thrown = await promise.then(
    (value) => ({ value }),
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(KisError)
  return thrown as KisError
}

/** The suite of the port `ChatEngine`, over an engine and the wire of its vendor. */
export function chatEngineSuite(engineCase: ChatEngineCase): void {
  const { name, engineModel, wire } = engineCase

  describe(`Chat engine ${name}`, () => {
    let cloud: VendorCloud
    let engines: { readonly chat: ChatEngine } & AsyncDisposable
    let warned: string[]
    let call: ChatCall
    beforeAll(async () => {
      cloud = await VendorCloud.start()
      engines = await engineCase.open(cloud)
    })
    afterAll(async () => {
      await engines[Symbol.asyncDispose]()
      await cloud[Symbol.asyncDispose]()
    })
    beforeEach(() => {
      warned = []
      call = { engineModel, requestId: 'req_1', maxOutputTokens: 4_000, warn: (field) => void warned.push(field) }
      cloud.mock.reset()
      cloud.answering = null
    })

    const say = (said: Said) => {
      cloud.answering = saying(wire, said)
    }
    const complete = async (request: ProtocolObject = {}) =>
      (await engines.chat.complete(call, { model: 'm', messages: MESSAGES, ...request }, NEVER)) as unknown as Completion
    const open = (request: ProtocolObject = {}, signal = NEVER) =>
      engines.chat.stream(call, { model: 'm', messages: MESSAGES, stream: true, ...request }, signal)
    async function streamed(request: ProtocolObject = {}, into: Chunk[] = []): Promise<readonly Chunk[]> {
      for await (const chunks of await open(request)) into.push(...(chunks as unknown as Chunk[]))
      return into
    }
    const usage = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 }

    describe('sends the vendor', () => {
      it('all of a request in its own protocol, with its key and the request ID, and reports what it left out', async () => {
        say({ text: ['Yes.'] })
        await engines.chat.complete(call, RICH_REQUEST, NEVER)
        const { path, headers, body } = cloud.last
        expect(path).toBe(engineCase.rich.path)
        expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-client-request-id': 'req_1', ...engineCase.rich.headers })
        expect(body).toEqual(engineCase.rich.body)
        expect(warned.toSorted()).toEqual(engineCase.dropped.toSorted())
      })

      it('a JSON schema', async () => {
        say({ text: ['{"city":"Riyadh"}'] })
        await complete({ response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema: WEATHER } } })
        expect(cloud.last.body).toMatchObject(engineCase.schemaBody)
      })

      it('a forced tool call', async () => {
        say({ calls: [{ id: engineCase.callIds[0], name: 'clock', arguments: [] }], ends: 'tools' })
        await complete({ tools: TOOLS, tool_choice: 'required' })
        expect(cloud.last.body).toMatchObject(engineCase.requiredToolBody)
      })

      it('an image by its URL, or refuses it where the vendor fetches none', async () => {
        say({ text: ['A cat.'] })
        const content = [{ type: 'image_url', image_url: { url: 'https://images.test/cat.png' } }]
        const response = complete({ messages: [{ role: 'user', content }] })
        if (engines.chat.fetchesImages) {
          await response
          expect(JSON.stringify(cloud.last.body)).toContain('https://images.test/cat.png')
        } else {
          expect(await catchError(response)).toMatchObject({ code: 'unsupported_value', param: 'messages[0].content[0].image_url.url' })
        }
      })
    })

    describe('returns', () => {
      it('a text', async () => {
        say({ text: ['30 days', ' مدفوعة', '.'] })
        const completion = await complete()
        expect(completion).toMatchObject({
          id: engineCase.namesResponse ? 'answer-1' : 'chatcmpl-req_1',
          object: 'chat.completion',
          created: expect.any(Number),
          model: engineCase.namesModel ? 'model-of-the-vendor' : engineModel,
          choices: [
            { index: 0, message: { role: 'assistant', content: '30 days مدفوعة.', refusal: null }, logprobs: null, finish_reason: 'stop' },
          ],
          usage,
        })
        expect(completion.choices).toHaveLength(1)
      })

      it('a streamed text, chunk by chunk', async () => {
        say({ text: ['30 days', ' مدفوعة', '.'] })
        const chunks = await streamed()
        expect(joined(chunks)).toMatchObject({ text: '30 days مدفوعة.', refusal: '', finishReason: 'stop', usage, calls: [] })
        expect(chunks.filter(({ choices }) => choices[0]?.delta.content).length).toBe(3)
        expect(chunks[0]).toMatchObject({
          object: 'chat.completion.chunk',
          model: engineCase.namesModel ? 'model-of-the-vendor' : engineModel,
        })
      })

      const calls = [
        { id: engineCase.callIds[0], name: 'weather', arguments: ['{"city":', '"الرياض"}'] },
        { id: engineCase.callIds[1], name: 'clock', arguments: [] },
      ]

      it('parallel tool calls', async () => {
        say({ calls, ends: 'tools' })
        const [choice] = (await complete({ tools: TOOLS })).choices
        expect(choice).toMatchObject({
          message: {
            content: null,
            tool_calls: [
              { id: calls[0]!.id, type: 'function', function: { name: 'weather' } },
              { id: calls[1]!.id, type: 'function', function: { name: 'clock' } },
            ],
          },
          finish_reason: 'tool_calls',
        })
        const texts = choice.message.tool_calls!.map((each) => (each.function as { arguments: string }).arguments)
        expect(texts.map((text) => JSON.parse(text || '{}'))).toEqual([{ city: 'الرياض' }, {}])
      })

      it('parallel tool calls in a stream, each with its own index', async () => {
        say({ text: ['Let me look.'], calls, ends: 'tools' })
        const response = joined(await streamed({ tools: TOOLS }))
        expect([response.text, response.finishReason]).toEqual(['Let me look.', 'tool_calls'])
        expect(response.calls.map(({ id, name: tool }) => [id, tool])).toEqual(calls.map(({ id, name: tool }) => [id, tool]))
        expect(response.calls.map((each) => JSON.parse(each.arguments || '{}'))).toEqual([{ city: 'الرياض' }, {}])
      })

      it('`length` for a truncated reply', async () => {
        say({ text: ['Once upon'], ends: 'length' })
        expect((await complete()).choices[0].finish_reason).toBe('length')
        expect(joined(await streamed()).finishReason).toBe('length')
      })

      it('what remains after the content filter of the vendor', async () => {
        say({ text: ['I'], ends: 'filter' })
        if (engineCase.filtered === 'error') {
          expect(await catchError(complete())).toMatchObject({ code: 'engine_error' })
          const chunks: Chunk[] = []
          expect(await catchError(streamed({}, chunks))).toMatchObject({ code: 'engine_error' })
          expect(chunks.at(-1)).toMatchObject({ choices: [], usage })
        } else {
          expect((await complete()).choices[0]).toMatchObject({ message: { content: 'I' }, finish_reason: 'content_filter' })
          expect(joined(await streamed())).toMatchObject({ text: 'I', finishReason: 'content_filter' })
        }
      })

      it('the tokens of input, cache, output and reasoning, each in the field of the protocol', async () => {
        say({ text: ['Yes.'], usage: { input: 1_000, cached: 900, output: 300, reasoning: 200 } })
        const expected = {
          prompt_tokens: 1_000,
          completion_tokens: 300,
          total_tokens: 1_300,
          prompt_tokens_details: { cached_tokens: engineCase.reportsCached ? 900 : 0 },
          completion_tokens_details: { reasoning_tokens: engineCase.reportsReasoning ? 200 : 0 },
        }
        expect((await complete()).usage).toEqual(expected)
        expect(joined(await streamed()).usage).toEqual(expected)
      })
    })

    describe('fails', () => {
      const codes = {
        400: 'invalid_request',
        401: 'engine_unavailable',
        402: 'engine_unavailable',
        403: 'engine_unavailable',
        404: 'engine_error',
        410: 'engine_error',
        413: 'invalid_request',
        429: 'rate_limit_exceeded',
        500: 'engine_error',
        503: 'engine_unavailable',
        529: 'engine_unavailable',
      }
      it.each(Object.entries(codes))('on status %s with %s, and never with the key or the address of the vendor', async (status, code) => {
        cloud.answering = failing(wire, Number(status), 'the key secret-of-the-operator at 127.0.0.1 is bad', { 'retry-after': '3' })
        for (const error of [await catchError(complete()), await catchError(open())]) {
          expect(error.code).toBe(code)
          expect(error.vendorCode).toBe(wire.toCode(Number(status)))
          expect(error.message).not.toContain('secret-of-the-operator')
          if (code === 'rate_limit_exceeded') expect(error.retryAfterMs).toBe(3_000)
        }
        expect(cloud.received.length).toBeGreaterThan(0)
      })

      it('as a permanent outage if the vendor reports that the operator is out of credit', async () => {
        for (const message of ['Your credit balance is too low to access the API.', 'Insufficient Balance']) {
          cloud.answering = failing(wire, 400, message)
          for (const error of [await catchError(complete()), await catchError(open())])
            expect(error).toMatchObject({ code: 'engine_unavailable', isRepeatable: false })
        }
      })

      it('with `engine_error`, not as a request error, if the model is retired', async () => {
        for (const message of ['Invalid model: mistral-tiny', 'The provided model identifier is invalid.']) {
          cloud.answering = failing(wire, 400, message)
          for (const error of [await catchError(complete()), await catchError(open())])
            expect(error).toMatchObject({ code: 'engine_error', isRepeatable: false, shouldRetry: false })
        }
      })

      it('with `context_length_exceeded` if the vendor reports an overlong input only in its message', async () => {
        for (const message of ['prompt is too long: 210000 tokens > 200000 maximum', 'Input is too long for requested model.']) {
          cloud.answering = failing(wire, 400, message)
          expect((await catchError(complete())).code).toBe('context_length_exceeded')
        }
      })

      it('on a malformed response', async () => {
        cloud.answering = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('<html>')
        expect(await catchError(complete())).toMatchObject({ code: 'engine_error' })
        cloud.answering = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"hello":1}')
        expect(await catchError(complete())).toMatchObject({ code: 'engine_error' })
      })

      it('on a broken connection without a response, and is not retried: the vendor may bill the call', async () => {
        cloud.answering = (response) => response.destroy()
        expect(await catchError(complete())).toMatchObject({ code: 'engine_unavailable', isRepeatable: false })
        expect(await catchError(open())).toMatchObject({ code: 'engine_unavailable', isRepeatable: false })
      })

      it.each(['broken off', 'ended early'])('during a stream that is %s, after the earlier chunks', async (how) => {
        cloud.answering = beginning(
          wire,
          { text: ['Hel', 'lo', 'again'] },
          wire.events({ text: ['Hel', 'lo', 'again'] }).length - 3,
          (response) => {
            if (how === 'ended early') response.end()
            // Written out first: a reset may overtake what waits.
            else setTimeout(() => response.destroy(), 20)
          },
        )
        const chunks: Chunk[] = []
        expect(await catchError(streamed({}, chunks))).toMatchObject({ code: 'engine_error' })
        expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toMatch(/^Hel/)
      })

      it.skipIf(wire.brokenEvent === null)('with an error inside the stream, after the earlier chunks', async () => {
        const said = { text: ['Hel', 'lo'] }
        cloud.answering = beginning(wire, said, 4, (response) => void response.end(wire.brokenEvent))
        const chunks: Chunk[] = []
        const error = await catchError(streamed({}, chunks))
        expect(['engine_error', 'engine_unavailable', 'rate_limit_exceeded']).toContain(error.code)
        expect(error.vendorCode).not.toBeNull()
        expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toMatch(/^Hel/)
      })
    })

    describe('stops the vendor', () => {
      it('when the reader abandons a stream', async () => {
        cloud.answering = beginning(wire, { text: ['Hel', 'lo'] }, 4, () => undefined)
        const chunks = await open()
        await chunks.next()
        const { closed } = cloud.last
        const leftAt = performance.now()
        await chunks.return!()
        await closed
        expect(performance.now() - leftAt).toBeLessThan(1_000)
        expect(await chunks.next()).toEqual({ done: true, value: undefined })
      })

      it('when the signal aborts before the response, during it, or in advance', async () => {
        for (const answering of [() => undefined, beginning(wire, { text: ['Hel', 'lo'] }, 4, () => undefined)]) {
          cloud.answering = answering
          const before = cloud.received.length
          const controller = new AbortController()
          const reading = (async () => {
            for await (const _ of await open({}, controller.signal));
          })().then(() => true, isAbort)
          await expect.poll(() => cloud.received.length, SOON).toBe(before + 1)
          const { closed } = cloud.last
          controller.abort()
          await closed
          // An abort of an open stream is its end, as `return()` is.
          expect(await reading).toBe(true)
        }
        const count = cloud.received.length
        expect(await engines.chat.complete(call, { messages: MESSAGES }, AbortSignal.abort()).catch(isAbort)).toBe(true)
        expect(cloud.received.length).toBe(count)
      })

      it('when the signal aborts a call that is not streamed', async () => {
        cloud.answering = () => undefined
        const before = cloud.received.length
        const controller = new AbortController()
        const outcome = engines.chat.complete(call, { messages: MESSAGES }, controller.signal).catch((error: unknown) => error)
        await expect.poll(() => cloud.received.length, SOON).toBe(before + 1)
        controller.abort()
        await cloud.last.closed
        expect(isAbort(await outcome)).toBe(true)
      })
    })

    describe('accepts another server of the protocol, aimock:', () => {
      const tokens = { prompt_tokens: DEFAULT_USAGE.input, completion_tokens: DEFAULT_USAGE.output }
      const content = 'Thirty days of annual leave, مدفوعة الأجر.'

      it.skipIf(!engineCase.mock.plain)('a text', async () => {
        cloud.mock.onMessage(/annual leave/, { content, usage: { ...tokens, ...inOtherWords(tokens) } })
        const completion = await complete()
        expect(completion.choices[0]).toMatchObject({ message: { content }, finish_reason: 'stop' })
        expect(completion.usage).toMatchObject(tokens)
      })

      it.skipIf(!engineCase.mock.streamed)('a streamed text', async () => {
        cloud.mock.onMessage(/annual leave/, { content })
        expect(joined(await streamed())).toMatchObject({ text: content, finishReason: 'stop' })
      })

      it.skipIf(!engineCase.mock.tools)('parallel tool calls, plain and streamed, and the reply to their results', async () => {
        const toolCalls = [
          { name: 'weather', arguments: '{"city":"Riyadh"}' },
          { name: 'clock', arguments: '{}' },
        ]
        const expected = [
          ['weather', { city: 'Riyadh' }],
          ['clock', {}],
        ]
        cloud.mock.on({ hasToolResult: true }, { content: 'Warm, at noon.' })
        cloud.mock.onMessage(/annual leave/, { toolCalls })
        const [choice] = (await complete({ tools: TOOLS })).choices
        expect(choice.finish_reason).toBe('tool_calls')
        const returnedCalls = choice.message.tool_calls as readonly { id: string; function: { name: string; arguments: string } }[]
        expect(returnedCalls.map((each) => [each.function.name, JSON.parse(each.function.arguments || '{}')])).toEqual(expected)
        const response = joined(await streamed({ tools: TOOLS }))
        expect(response.finishReason).toBe('tool_calls')
        expect(response.calls.map((each) => [each.name, JSON.parse(each.arguments || '{}')])).toEqual(expected)
        const results = returnedCalls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'fine' }))
        const next = await complete({ tools: TOOLS, messages: [...MESSAGES, choice.message, ...results] })
        expect(next.choices[0].message.content).toBe('Warm, at noon.')
      })

      it.skipIf(!engineCase.mock.plain)('an error', async () => {
        cloud.mock.onMessage(/annual leave/, { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429 })
        expect(await catchError(complete())).toMatchObject({ code: 'rate_limit_exceeded' })
      })
    })
  })
}

/** The mock's own names of usage, vendor by vendor. */
function inOtherWords({ prompt_tokens: input, completion_tokens: output }: { prompt_tokens: number; completion_tokens: number }) {
  return {
    input_tokens: input,
    output_tokens: output,
    promptTokenCount: input,
    candidatesTokenCount: output,
    totalTokenCount: input + output,
    total_tokens: input + output,
  }
}
