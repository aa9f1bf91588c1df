import OpenAI from 'openai'
import type { ResponseCreateParams, ResponseInput, ResponseStreamEvent, Tool } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import {
  ANTHROPIC_WIRE,
  BEDROCK_WIRE,
  beginning,
  COHERE_WIRE,
  failing,
  GOOGLE_WIRE,
  MISTRAL_WIRE,
  OPENAI_WIRE,
  type Said,
  saying,
  type Wire,
} from '../../support/engines/vendor-wires.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { assembleResponse } from '../../support/response-events.ts'

const WIRES: Readonly<Record<string, Wire>> = { openai: OPENAI_WIRE, anthropic: ANTHROPIC_WIRE, google: GOOGLE_WIRE }
const VENDORS = Object.keys(WIRES)
/** Those whose chats differ in nothing that a response shows. */
const OTHER_WIRES: Readonly<Record<string, Wire>> = {
  azure: OPENAI_WIRE,
  bedrock: BEDROCK_WIRE,
  mistral: MISTRAL_WIRE,
  cohere: COHERE_WIRE,
}

const createSettings = (vendor: string, cloud: string) => {
  if (vendor === 'bedrock') return `region: eu-west-1, access_key_id: AKIA0, secret_access_key: a-secret, base_url: "${cloud}"`
  return `api_key: "key", base_url: "${cloud}${vendor === 'openai' ? '/v1' : ''}"`
}

const ALL = [...VENDORS, ...Object.keys(OTHER_WIRES)]

/** Every vendor's cloud is this one; a model of each, at 1, 0.1 and 10 USD per million tokens. */
const createCatalog = (cloud: string, mock: string) => `
engines:
  mock: { kind: openai, base_url: "${mock}", badge: local }
${ALL.map((vendor) => `  ${vendor}: { kind: ${vendor}, ${createSettings(vendor, cloud)}, badge: cloud }`).join('\n')}
models:
  - { id: mock-chat, engine: mock, kind: chat, context_window: 100000, max_output_tokens: 1000, price: { input: "1", output: "10" } }
${ALL.map(
  (vendor) => `  - id: ${vendor}-chat
    engine: ${vendor}
    engine_model: ${vendor === 'anthropic' ? 'claude-sonnet-4-6' : 'a-model'}
    kind: chat
    supports: [vision, tools, response_schema]
    context_window: 100000
    max_output_tokens: 1000
    price: { input: "1", cached_input: "0.1", output: "10" }`,
).join('\n')}
`

/** 16 uncached tokens at 1,000 nano-USD, 4 cached at 100, 9 out at 10,000. */
const PRICE = 106_400n
const question = 'What is the weather in الرياض?'
const tools: Tool[] = ['weather', 'clock'].map((name) => ({
  type: 'function',
  name,
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}))
const calls = [
  { id: 'abcdefgh1', name: 'weather', arguments: ['{"city":', '"الرياض"}'] },
  { id: 'abcdefgh2', name: 'clock', arguments: ['{"city":"Jeddah"}'] },
]
const PIXEL = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe('Responses API, by the official client', () => {
  let cloud: VendorCloud
  let mock: MockEngine
  let service: Service
  let caller: Caller
  let spent: bigint
  beforeAll(async () => {
    cloud = await VendorCloud.start()
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: createCatalog(cloud.url, mock.url) })
    caller = await newOrganization(createCaller(service, service.key), service)
  })
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    await cloud?.[Symbol.asyncDispose]()
  })
  const balance = async () => nano((await balancedWallet(caller)).balance_usd)
  beforeEach(async () => {
    spent = await balance()
  })
  /** Waits until nothing is held any more; gives what was charged since the test began. */
  async function charged(): Promise<bigint> {
    await eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n)
    return spent - (await balance())
  }
  const lastAmount = async () => nano((await caller.rest('GET', '/v1/usage?limit=1')).body.data[0].amount_usd)
  const say = (vendor: string, said: Said) => {
    cloud.answering = saying(WIRES[vendor]!, said)
  }
  /** All events of a stream that ends by itself. */
  async function readEvents(request: Omit<ResponseCreateParams, 'stream'>): Promise<ResponseStreamEvent[]> {
    const events: ResponseStreamEvent[] = []
    for await (const event of await caller.openai.responses.create({ ...request, stream: true })) events.push(event)
    return events
  }

  it('replies with an engine of the chat protocol, with usage and charge of a chat', async () => {
    const response = await caller.openai.responses.create({ model: 'mock-chat', instructions: 'Be short.', input: question })
    expect(response).toMatchObject({ object: 'response', status: 'completed', model: 'mock-chat', store: false, instructions: 'Be short.' })
    expect(response.output_text).toBe('Hello from the mock مرحبا')
    expect(response.usage).toMatchObject({
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 5,
      total_tokens: 25,
    })
    expect(mock.requests.at(-1)).toMatchObject({ messages: [{ role: 'system' }, { role: 'user', content: question }] })
    const { body } = await caller.rest('GET', '/v1/usage?limit=1')
    expect(body.data[0]).toMatchObject({ model: 'mock-chat', operation: 'chat_completion', source: 'provider', output_tokens: 5 })
    expect(await charged()).toBe(await lastAmount())
  })

  it('streams; when the client disconnects, the engine stops and the client pays for what was produced', async () => {
    const whole = assembleResponse(await readEvents({ model: 'mock-chat', input: question }))
    expect(whole).toMatchObject({ status: 'completed', usage: { total_tokens: 25 } })
    const before = await charged()
    const { abandoned } = mock
    const stream = await caller.openai.responses.create({ model: 'mock-chat', input: 'now hang', stream: true })
    for await (const { type } of stream) if (type === 'response.output_text.delta') break
    await eventually(() => mock.abandoned === abandoned + 1)
    await eventually(async () => (await charged()) > before)
    const { body } = await caller.rest('GET', '/v1/usage?limit=1')
    expect(body.data[0]).toMatchObject({ model: 'mock-chat', source: 'counted', output_tokens: 1 })
  })

  it('fails a broken stream with what arrived, at no cost', async () => {
    const response = assembleResponse(await readEvents({ model: 'mock-chat', input: 'now cut' }))
    expect(response).toMatchObject({ status: 'failed', error: { code: 'engine_error' }, usage: { total_tokens: 0 } })
    expect(response.output).toMatchObject([{ type: 'message', status: 'incomplete', content: [{ type: 'output_text', text: 'Hello' }] }])
    expect(await charged()).toBe(0n)
  })

  it('is the same for a repeated idempotency key, plain and streamed, and charged once', async () => {
    const { chats } = mock
    const request = { model: 'mock-chat', input: question }
    const once = { headers: { 'Idempotency-Key': 'the-same-response' } }
    const [first, second] = [await caller.openai.responses.create(request, once), await caller.openai.responses.create(request, once)]
    expect({ ...second, completed_at: null }).toEqual({ ...first, completed_at: null })
    const again = { headers: { 'Idempotency-Key': 'the-same-stream' } }
    const streams = []
    for (let i = 0; i < 2; i++) streams.push(await caller.openai.responses.stream(request, again).finalResponse())
    expect({ ...streams[1], completed_at: null }).toEqual({ ...streams[0], completed_at: null })
    expect(streams[0]!.id).not.toBe(first!.id)
    expect(mock.chats).toBe(chats + 2)
    expect(await charged()).toBe(2n * (await lastAmount()))
  })

  it('counts the input without an engine call, at no cost', async () => {
    const { chats } = mock
    const { inputTokens } = caller.openai.responses
    const short = await inputTokens.count({ model: 'mock-chat', input: question })
    const long = await inputTokens.count({
      model: 'mock-chat',
      instructions: 'Answer in one sentence.',
      input: [{ role: 'user', content: question }],
    })
    expect(short).toEqual({ object: 'response.input_tokens', input_tokens: expect.any(Number) })
    expect(short.input_tokens).toBeGreaterThan(5)
    expect(long.input_tokens).toBeGreaterThan(short.input_tokens)
    await expect(inputTokens.count({ model: 'none', input: question })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    })
    expect(mock.chats).toBe(chats)
    expect(await charged()).toBe(0n)
  })

  it('is served by @copilotkit/aimock like by a vendor', async () => {
    cloud.answering = null
    cloud.mock.onMessage(/aimock/, { content: 'As a vendor says it.' })
    const request = { model: 'openai-chat', input: 'hello aimock' }
    expect((await caller.openai.responses.create(request)).output_text).toBe('As a vendor says it.')
    const streamed = await caller.openai.responses.stream(request).finalResponse()
    expect(streamed.output_text).toBe('As a vendor says it.')
  })

  describe.each(VENDORS)('with %s', (vendor) => {
    const model = `${vendor}-chat`

    it('replies, plain and streamed, at the usage of the vendor', async () => {
      say(vendor, { text: ['31 °C', ' مشمس'], usage: { input: 20, cached: 4, output: 9, reasoning: 2 } })
      const plain = await caller.openai.responses.create({ model, input: question })
      const streamed = assembleResponse(await readEvents({ model, input: [{ role: 'user', content: question }] }))
      for (const { output, usage } of [plain, streamed]) {
        expect(output).toMatchObject([{ type: 'message', status: 'completed', content: [{ type: 'output_text', text: '31 °C مشمس' }] }])
        expect(usage).toEqual({
          input_tokens: 20,
          input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
          output_tokens: 9,
          output_tokens_details: { reasoning_tokens: 2 },
          total_tokens: 29,
        })
      }
      expect(await charged()).toBe(2n * PRICE)
    })

    it('makes parallel tool calls, accepts their outputs and replies', async () => {
      say(vendor, { text: ['One moment.'], calls, ends: 'tools' })
      const first = await caller.openai.responses.stream({ model, input: question, tools, parallel_tool_calls: true }).finalResponse()
      const plain = await caller.openai.responses.create({ model, input: question, tools })
      const functionCalls = first.output.filter((item) => item.type === 'function_call')
      expect(functionCalls.map(({ call_id, name, arguments: text }) => [call_id, name, JSON.parse(text)])).toEqual([
        ['abcdefgh1', 'weather', { city: 'الرياض' }],
        ['abcdefgh2', 'clock', { city: 'Jeddah' }],
      ])
      expect(plain.output.map(({ type }) => type)).toEqual(first.output.map(({ type }) => type))

      say(vendor, { text: ['Warm', ' at noon.'] })
      const outputs = functionCalls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: `it is ${call_id}` }))
      const input = [{ role: 'user', content: question }, ...first.output, ...outputs] as ResponseInput
      const final = await caller.openai.responses.stream({ model, tools, input }).finalResponse()
      expect(final.output_text).toBe('Warm at noon.')
      const sent = JSON.stringify(cloud.last.body)
      const positions = ['One moment.', 'abcdefgh1', 'abcdefgh2', 'it is abcdefgh1', 'it is abcdefgh2'].map((text) => sent.indexOf(text))
      expect(positions).toEqual(positions.toSorted((a, b) => a - b))
      expect(positions).not.toContain(-1)
      expect(await charged()).toBe(3n * PRICE)
    })

    it('passes on images, and requests the schema', async () => {
      say(vendor, { text: ['{"city":', '"Riyadh"}'] })
      const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false }
      const response = await caller.openai.responses.parse({
        model,
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'Where is this?' },
              { type: 'input_image', image_url: PIXEL, detail: 'low' },
            ],
          },
        ],
        text: { format: { type: 'json_schema', name: 'place', schema, strict: true } },
      })
      expect(response.output_parsed).toEqual({ city: 'Riyadh' })
      const sent = JSON.stringify(cloud.last.body)
      expect(sent).toContain(PIXEL.slice(-20))
      expect(sent).toContain('"additionalProperties":false')
    })

    it('is incomplete at the token limit', async () => {
      say(vendor, { text: ['It is', ' warm'], ends: 'length' })
      const request = { model, input: question, max_output_tokens: 16 }
      for (const response of [await caller.openai.responses.create(request), assembleResponse(await readEvents(request))]) {
        expect(response).toMatchObject({
          status: 'incomplete',
          incomplete_details: { reason: 'max_output_tokens' },
          usage: { output_tokens: 9 },
        })
        expect(response.output).toMatchObject([{ status: 'incomplete', content: [{ text: 'It is warm' }] }])
      }
      expect(JSON.stringify(cloud.last.body)).toMatch(/(?:max_completion_tokens|max_tokens|maxOutputTokens)":16/)
    })

    it('fails by a status before the first event, and by an event after it, at no cost', async () => {
      cloud.answering = failing(WIRES[vendor]!, 400, 'that parameter is wrong')
      for (const stream of [false, true])
        await expect(caller.openai.responses.create({ model, input: question, stream })).rejects.toMatchObject({
          status: 400,
          code: 'invalid_request',
        })
      const said = { text: ['Hel', 'lo', 'again'] }
      cloud.answering = beginning(WIRES[vendor]!, said, WIRES[vendor]!.events(said).length - 3, (response) => response.end())
      const response = assembleResponse(await readEvents({ model, input: question }))
      expect(response).toMatchObject({ status: 'failed', error: { code: 'engine_error' }, usage: { total_tokens: 0 } })
      expect(JSON.stringify(response.output)).toContain('Hel')
      expect(await charged()).toBe(0n)
    })

    it('stops when the client disconnects, who pays for what was produced', async () => {
      cloud.answering = beginning(WIRES[vendor]!, { text: ['Hel', 'lo'] }, 4, () => undefined)
      const stream = await caller.openai.responses.create({ model, input: question, stream: true })
      for await (const { type } of stream) if (type === 'response.output_text.delta') break
      await cloud.last.closed
      expect(await charged()).toBeGreaterThan(10_000n)
    })
  })

  it.each(Object.entries(OTHER_WIRES))('replies and calls tools with %s as well', async (vendor, wire) => {
    const request = { model: `${vendor}-chat`, input: question, tools }
    cloud.answering = saying(wire, { text: ['31 °C', ' مشمس'] })
    for (const { output } of [await caller.openai.responses.create(request), assembleResponse(await readEvents(request))])
      expect(output).toMatchObject([{ type: 'message', content: [{ type: 'output_text', text: '31 °C مشمس' }] }])
    cloud.answering = saying(wire, { calls, ends: 'tools' })
    for (const { output } of [await caller.openai.responses.create(request), assembleResponse(await readEvents(request))])
      expect(output).toMatchObject(calls.map(({ id, name }) => ({ type: 'function_call', call_id: id, name, status: 'completed' })))
    expect(await charged()).toBe(4n * PRICE)
  })

  it('returns the reasoning and sends it back signed, from Anthropic and from Gemini', async () => {
    say('anthropic', { reasoning: { text: 'Hot there.', signature: 'signed-by-anthropic' }, calls: calls.slice(0, 1), ends: 'tools' })
    const request = { model: 'anthropic-chat', tools, reasoning: { effort: 'low' as const, summary: 'auto' as const } }
    const streamed = assembleResponse(await readEvents({ ...request, input: question }))
    const plain = await caller.openai.responses.create({ ...request, input: question })
    for (const { output } of [plain, streamed]) {
      expect(output).toMatchObject([
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hot there.' }] },
        { type: 'function_call' },
      ])
      const input = [
        { role: 'user', content: question },
        ...output,
        { type: 'function_call_output', call_id: 'abcdefgh1', output: '41' },
      ] as ResponseInput
      await caller.openai.responses.create({ ...request, input })
      expect(cloud.last.body.messages[1].content[0]).toMatchObject({
        type: 'thinking',
        thinking: 'Hot there.',
        signature: 'signed-by-anthropic',
      })
    }

    say('google', { calls, ends: 'tools' })
    for (const { output } of [
      await caller.openai.responses.create({ model: 'google-chat', tools, input: question }),
      assembleResponse(await readEvents({ model: 'google-chat', tools, input: question })),
    ]) {
      const outputs = calls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: '41' }))
      const input = [{ role: 'user', content: question }, ...output, ...outputs] as ResponseInput
      await caller.openai.responses.create({ model: 'google-chat', tools, input })
      expect(JSON.stringify(cloud.last.body)).toContain('signed-by-google')
    }
  })

  it('returns a refusal', async () => {
    say('anthropic', { text: [], ends: 'filter' })
    const request = { model: 'anthropic-chat', input: question }
    for (const response of [await caller.openai.responses.create(request), assembleResponse(await readEvents(request))]) {
      expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
      expect(response.output).toMatchObject([{ content: [{ type: 'refusal', refusal: 'This is not something to help with.' }] }])
    }
  })

  it('names fields without effect in a header', async () => {
    say('anthropic', { text: ['{}'] })
    const request = {
      model: 'anthropic-chat',
      input: 'Answer as JSON.',
      truncation: 'auto',
      text: { format: { type: 'json_object' } },
      seed: 7,
    } as const
    const { response } = await caller.openai.responses.create(request).withResponse()
    expect(response.headers.get('x-kis-warning')?.split(', ').toSorted()).toEqual([
      'seed_not_honored',
      'text.format_not_honored',
      'truncation_not_honored',
    ])
  })

  describe('refuses, with the path in the request of the caller and without a charge:', () => {
    const image = { type: 'input_image', image_url: 'ftp://example.com/a.png', detail: 'auto' }
    const user = (...content: object[]) => [{ role: 'user', content }]
    it.each([
      ['no input', {}, 'missing_required_parameter', 'input'],
      ['input without items', { input: [] }, 'invalid_request', 'input'],
      [
        'an image by an invalid URL',
        { input: user({ type: 'input_text', text: 'x' }, image) },
        'invalid_request',
        'input[0].content[1].image_url',
      ],
      ['an image by file', { input: user({ type: 'input_image', file_id: 'file_1' }) }, 'unsupported_value', 'input[0].content[0].file_id'],
      [
        'an unknown detail',
        { input: user({ ...image, image_url: PIXEL, detail: 'original' }) },
        'unsupported_value',
        'input[0].content[0].detail',
      ],
      ['a file', { input: user({ type: 'input_file', file_id: 'file_1' }) }, 'unsupported_value', 'input[0].content[0].type'],
      ['an item by reference', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'unsupported_value', 'input[0].type'],
      [
        'an output of a computer',
        { input: [{ type: 'computer_call_output', call_id: 'c', output: {} }] },
        'unsupported_value',
        'input[0].type',
      ],
      [
        'a tool call without its ID',
        { input: [{ type: 'function_call', name: 'f', arguments: '{}' }] },
        'missing_required_parameter',
        'input[0].call_id',
      ],
      [
        'the output of an unknown tool call',
        { input: [...user({ type: 'input_text', text: 'x' }), { type: 'function_call_output', call_id: 'c', output: '1' }] },
        'invalid_request',
        'input[1].call_id',
      ],
      ['an unknown role', { input: [{ role: 'tool', content: 'x' }] }, 'unsupported_value', 'input[0].role'],
      ['a hosted tool', { input: 'x', tools: [...tools, { type: 'web_search' }] }, 'unsupported_value', 'tools[2].type'],
      ['a tool without a name', { input: 'x', tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].name'],
      ['a choice of such a tool', { input: 'x', tools, tool_choice: { type: 'file_search' } }, 'unsupported_value', 'tool_choice.type'],
      [
        'a schema without a name',
        { input: 'x', text: { format: { type: 'json_schema', schema: {} } } },
        'missing_required_parameter',
        'text.format.name',
      ],
      ['an unknown format', { input: 'x', text: { format: { type: 'xml' } } }, 'unsupported_value', 'text.format.type'],
      ['a token limit of zero', { input: 'x', max_output_tokens: 0 }, 'integer_below_min_value', 'max_output_tokens'],
      ['a temperature as text', { input: 'x', temperature: 'hot' }, 'invalid_type', 'temperature'],
      ['a more expensive tier', { input: 'x', service_tier: 'priority' }, 'unsupported_value', 'service_tier'],
      ['metadata of numbers', { input: 'x', metadata: { a: 1 } }, 'invalid_type', 'metadata.a'],
      [
        'too much metadata',
        { input: 'x', metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i, 'x'])) },
        'array_above_max_length',
        'metadata',
      ],
      ['a previous response', { input: 'x', previous_response_id: 'resp_1' }, 'unsupported_value', 'previous_response_id'],
      ['a conversation', { input: 'x', conversation: 'conv_1' }, 'unsupported_value', 'conversation'],
      ['a stored prompt', { input: 'x', prompt: { id: 'pmpt_1' } }, 'unsupported_value', 'prompt'],
      ['background mode', { input: 'x', background: true }, 'unsupported_value', 'background'],
      ['an unknown include value', { input: 'x', include: ['everything'] }, 'unsupported_value', 'include[0]'],
    ])('%s', async (_name, request, code, param) => {
      const { status, body } = await caller.rest('POST', '/v1/responses', { model: 'openai-chat', ...request })
      expect({ status, code: body.error.code, param: body.error.param }).toEqual({ status: 400, code, param })
      expect(await charged()).toBe(0n)
    })

    it('an image for a model without vision', async () => {
      const input = [
        { role: 'system', content: 'x' },
        ...user({ type: 'input_text', text: 'x' }, { type: 'input_image', image_url: PIXEL }),
      ]
      const { body } = await caller.rest('POST', '/v1/responses', { model: 'mock-chat', instructions: 'x', input })
      expect(body.error).toMatchObject({ code: 'unsupported_value', param: 'input[1].content[1]' })
    })

    it('an unknown model, and a wrong key', async () => {
      await expect(caller.openai.responses.create({ model: 'none', input: 'x' })).rejects.toBeInstanceOf(OpenAI.NotFoundError)
      const unauthenticated = createCaller(service, 'kis_live_wrong')
      await expect(unauthenticated.openai.responses.create({ model: 'openai-chat', input: [] })).rejects.toBeInstanceOf(
        OpenAI.AuthenticationError,
      )
    })

    it('retrieval, deletion and cancellation of a stored response', async () => {
      const { responses } = caller.openai
      for (const send of [
        () => responses.retrieve('resp_1'),
        () => responses.delete('resp_1'),
        () => responses.cancel('resp_1'),
        () => responses.inputItems.list('resp_1'),
      ])
        await expect(send()).rejects.toMatchObject({ status: 404, code: 'not_offered', message: expect.stringContaining('not stored') })
    })
  })
})
