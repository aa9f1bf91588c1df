import Anthropic from '@anthropic-ai/sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { ANTHROPIC_WIRE, beginning, failing, GOOGLE_WIRE, type Said, saying, type Wire } from '../../support/engines/vendor-wires.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** At 1, 0.1 and 10 USD per million tokens; `claude` answers as Anthropic does, `gemini` as Google does. */
const createCatalog = (mockUrl: string, cloudUrl: string) =>
  testCatalog(mockUrl).replace(
    'models:',
    `  anthropic: { kind: anthropic, base_url: "${cloudUrl}/v1", api_key: k, badge: cloud }
  google: { kind: google, base_url: "${cloudUrl}", api_key: k, badge: cloud }
models:
${['anthropic', 'google']
  .map(
    (vendor) => `  - id: ${vendor}-chat
    engine: ${vendor}
    engine_model: ${vendor === 'anthropic' ? 'claude-sonnet-4-5' : 'gemini-2.5-pro'}
    kind: chat
    supports: [vision, tools, response_schema, reasoning, prompt_cache]
    context_window: 100000
    max_output_tokens: 10000
    price: { input: "1", cached_input: "0.1", cache_write: "2", output: "10" }`,
  )
  .join('\n')}`,
  )

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'What is the weather in الرياض?' }]
const tools: Anthropic.Tool[] = ['weather', 'clock'].map((name) => ({
  name,
  description: `The ${name} of a city.`,
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}))
const calls = [
  { id: 'toolu_1', name: 'weather', arguments: ['{"city":', '"الرياض"}'] },
  { id: 'toolu_2', name: 'clock', arguments: ['{"city":"Jeddah"}'] },
]

describe('Official Anthropic client', () => {
  let mock: MockEngine
  let cloud: VendorCloud
  let service: Service
  let caller: Caller
  let client: Anthropic
  let spent: bigint
  beforeAll(async () => {
    mock = await startMockEngine()
    cloud = await VendorCloud.start()
    service = await startEmbedded({ catalog: createCatalog(mock.url, cloud.url) })
    caller = await newOrganization(createCaller(service, service.key), service)
    client = createClient(caller)
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    await cloud?.[Symbol.asyncDispose]()
    await mock?.[Symbol.asyncDispose]()
  })
  const createClient = ({ key }: Caller) => new Anthropic({ baseURL: service.rest, apiKey: key, authToken: null, maxRetries: 0 })
  const balance = async () => nano((await balancedWallet(caller)).balance_usd)
  beforeEach(async () => {
    spent = await balance()
  })
  afterEach(() => {
    cloud.answering = null
  })
  /** Waits until nothing is held any more; gives what was charged since the test began. */
  async function charged(): Promise<bigint> {
    await eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n)
    return spent - (await balance())
  }
  const say = (said: Said, wire: Wire = ANTHROPIC_WIRE) => {
    cloud.answering = saying(wire, said)
  }
  const createRequest = (model: string, more: Partial<Anthropic.MessageCreateParamsNonStreaming> = {}) => ({
    model,
    max_tokens: 500,
    messages,
    ...more,
  })

  describe('with an engine of the chat protocol', () => {
    it('receives a reply, which usage and wallet record', async () => {
      const message = await client.messages.create(createRequest('mock-chat', { system: 'Be brief.' }))
      expect(message).toMatchObject({
        type: 'message',
        content: [{ type: 'text', text: 'Hello from the mock مرحبا' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 16, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: 5 },
      })
      expect(mock.requests.at(-1)).toEqual({
        model: 'mock-chat',
        messages: [{ role: 'system', content: 'Be brief.' }, ...messages],
        max_completion_tokens: 500,
      })
      // 16 tokens at 1,000 nano-USD, 4 at 500, 5 at 2,000.
      expect(await charged()).toBe(28_000n)
      const { body } = await caller.rest('GET', '/v1/usage?limit=1')
      expect(body.data[0]).toMatchObject({ model: 'mock-chat', input_tokens: 16, cached_input_tokens: 4, output_tokens: 5 })
      expect(body.data[0].request_id).toBe(message._request_id)
    })

    it('receives a reply to the request of a coding agent, by the beta API', async () => {
      const cache_control = { type: 'ephemeral' as const }
      const message = await client.beta.messages
        .stream({
          ...createRequest('mock-chat'),
          max_tokens: 32_000,
          betas: ['interleaved-thinking-2025-05-14', 'context-management-2025-06-27'],
          system: ['You are an agent.', 'Work in /tmp.'].map((text) => ({ type: 'text' as const, text, cache_control })),
          messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello', cache_control }] }],
          tools: tools.map((tool) => ({ ...tool, eager_input_streaming: true })),
          metadata: { user_id: `user_${'a'.repeat(64)}_account__session_${'b'.repeat(36)}` },
          thinking: { type: 'adaptive' },
          output_config: { effort: 'medium' },
          context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
        })
        .finalMessage()
      expect(message).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'Hello from the mock مرحبا' }] })
      const sent = mock.requests.at(-1)!
      expect(sent).toMatchObject({
        messages: [
          { role: 'system', content: 'You are an agent.\n\nWork in /tmp.' },
          { role: 'user', content: 'Hello' },
        ],
      })
      const known = ['model', 'messages', 'max_completion_tokens', 'user', 'tools', 'stream', 'stream_options']
      expect(Object.keys(sent).toSorted()).toEqual(known.toSorted())
    })

    it('may request thinking of a model without it, and receives a warning', async () => {
      const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
      const { data, response } = await client.messages
        .create({ ...createRequest('mock-chat', { thinking }), max_tokens: 2_000 })
        .withResponse()
      expect([data.stop_reason, response.headers.get('x-kis-warning')]).toEqual(['end_turn', 'thinking_not_honored'])
      expect(Object.keys(mock.requests.at(-1)!)).toEqual(['model', 'messages', 'max_completion_tokens'])
    })

    it('streams a reply', async () => {
      const pieces: string[] = []
      const message = await client.messages
        .stream(createRequest('mock-chat'))
        .on('text', (text) => pieces.push(text))
        .finalMessage()
      expect(pieces).toEqual(['Hello', ' from', ' the', ' mock', ' مرحبا'])
      expect(message).toMatchObject({ stop_reason: 'end_turn', usage: { input_tokens: 16, cache_read_input_tokens: 4, output_tokens: 5 } })
      expect(await charged()).toBe(28_000n)
    })

    it('receives an error when a stream breaks, after what had arrived', async () => {
      const pieces: string[] = []
      const stream = client.messages.stream(createRequest('mock-chat', { messages: [{ role: 'user', content: 'please cut' }] }))
      stream.on('text', (text) => pieces.push(text))
      await expect(stream.finalMessage()).rejects.toMatchObject({ type: 'api_error', errorCode: 'engine_error' })
      expect(pieces).toEqual(['Hello'])
      expect(await charged()).toBe(0n)
    })

    it('stops the engine when it disconnects during a stream, and pays for what was produced', async () => {
      const abandoned = mock.abandoned
      const stream = client.messages.stream(createRequest('mock-chat', { messages: [{ role: 'user', content: 'please hang' }] }))
      await new Promise<void>((resolve) => stream.once('text', () => resolve()))
      stream.abort()
      await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIUserAbortError)
      await eventually(() => mock.abandoned === abandoned + 1)
      // The input, counted, and one piece of output.
      const cost = await charged()
      expect(cost).toBeGreaterThan(2_000n)
      expect(cost).toBeLessThan(28_000n)
    })

    it('counts tokens without an engine and without a charge', async () => {
      const chats = mock.chats
      const short = await client.messages.countTokens({ model: 'mock-chat', messages })
      const long = await client.messages.countTokens({ model: 'mock-chat', messages, system: 'Be brief.', tools })
      expect(short.input_tokens).toBeGreaterThan(5)
      expect(long.input_tokens).toBeGreaterThan(short.input_tokens + 20)
      expect([mock.chats, await charged()]).toEqual([chats, 0n])
    })

    it('receives a quote, which is the maximum cost of the call', async () => {
      const request = { model: 'mock-chat', messages, max_completion_tokens: 100 }
      const { status, body } = await caller.rest('POST', '/v1/chat/completions/quote', request)
      expect([status, body.object, body.max_output_tokens, body.is_covered]).toEqual([200, 'chat.completion.quote', 100, true])
      const [{ held_input_tokens: held, price }] = body.models
      expect(price).toMatchObject({ input: '1', cached_input: '0.5', output: '2' })
      expect(nano(body.amount_usd)).toBe(BigInt(held) * 1_000n + 100n * 2_000n)
      expect(await charged()).toBe(0n)

      const poor = await newOrganization(createCaller(service, service.key), service, { creditUsd: '0' })
      expect((await poor.rest('POST', '/v1/chat/completions/quote', request)).body).toMatchObject({
        amount_usd: body.amount_usd,
        is_covered: false,
      })
      const query = `query ($request: ChatProtocolRequest!) { quoteChatCompletion(request: $request) {
        inputTokens amount isCovered models { model { id price { input } } rateCardVersion } } }`
      const { data } = await poor.graphql(query, { request })
      expect(data.quoteChatCompletion).toMatchObject({
        inputTokens: body.input_tokens,
        isCovered: false,
        models: [{ model: { id: 'mock-chat' } }],
      })
      await expect(createClient(poor).messages.create(createRequest('mock-chat'))).rejects.toMatchObject({
        status: 402,
        type: 'billing_error',
      })
      const unknown = await caller.rest('POST', '/v1/chat/completions/quote', { ...request, model: 'nobody' })
      expect([unknown.status, unknown.body.error.code]).toEqual([404, 'model_not_found'])
    })

    it.each([
      [
        'an unknown key',
        () => createClient({ ...caller, key: 'kis_live_nobody' }).messages.create(createRequest('mock-chat')),
        401,
        'authentication_error',
      ],
      ['an unknown model', () => client.messages.create(createRequest('nobody')), 404, 'not_found_error'],
      ['no messages', () => client.messages.create(createRequest('mock-chat', { messages: [] })), 400, 'invalid_request_error'],
      [
        'a vendor tool',
        () => client.messages.create(createRequest('mock-chat', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] })),
        400,
        'invalid_request_error',
      ],
      [
        'an image for a model without vision',
        () => client.messages.create(createRequest('extractive', { messages: [{ role: 'user', content: [image] }] })),
        400,
        'invalid_request_error',
      ],
      [
        'a failing engine',
        () => client.messages.create(createRequest('mock-chat', { messages: [{ role: 'user', content: 'please 500' }] })),
        502,
        'api_error',
      ],
    ] as const)('is refused with %s', async (_name, run, status, type) => {
      const failure = await run().catch((error) => error)
      expect(failure).toBeInstanceOf(Anthropic.APIError)
      expect(failure.status).toBe(status)
      expect([failure.type, failure.requestID]).toEqual([type, expect.stringMatching(/^req_/)])
      expect(await charged()).toBe(0n)
    })
  })

  const image: Anthropic.ImageBlockParam = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }

  describe('with Anthropic itself', () => {
    it.each(['plain', 'streamed'])(
      'makes parallel tool calls, sends their results, one with an image, and receives the reply: %s',
      async (how) => {
        const run = async (params: Anthropic.MessageCreateParamsNonStreaming) =>
          how === 'plain' ? client.messages.create(params) : client.messages.stream(params).finalMessage()
        say({ text: ['Let me see.'], calls, ends: 'tools' })
        const first = await run(createRequest('anthropic-chat', { tools, tool_choice: { type: 'auto', disable_parallel_tool_use: false } }))
        expect(first.stop_reason).toBe('tool_use')
        expect(first.content).toMatchObject([
          { type: 'text', text: 'Let me see.' },
          { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'الرياض' } },
          { type: 'tool_use', id: 'toolu_2', name: 'clock', input: { city: 'Jeddah' } },
        ])
        expect(cloud.last.body.tools).toMatchObject(tools.map(({ name, input_schema }) => ({ name, input_schema })))

        say({ text: ['Warm', ' at noon.'] })
        const results: Anthropic.ToolResultBlockParam[] = [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: '31 °C' }, image] },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: 'no such clock', is_error: true },
        ]
        const history: Anthropic.MessageParam[] = [
          ...messages,
          { role: 'assistant', content: first.content as Anthropic.ContentBlockParam[] },
        ]
        const reply = await run(createRequest('anthropic-chat', { tools, messages: [...history, { role: 'user', content: results }] }))
        expect(reply.content).toMatchObject([{ type: 'text', text: 'Warm at noon.' }])
        const sent = cloud.last.body.messages.at(-1).content
        expect(sent.map(({ type, tool_use_id }: { type: string; tool_use_id?: string }) => [type, tool_use_id])).toEqual([
          ['tool_result', 'toolu_1'],
          ['tool_result', 'toolu_2'],
          ['text', undefined],
          ['image', undefined],
        ])
        expect(sent[3].source).toMatchObject({ media_type: 'image/png', data: PIXEL })
        expect(JSON.stringify(sent[1].content)).toContain('Error: no such clock')
      },
    )

    it.each(['plain', 'streamed'])('receives thinking, and sends its signature back with tool results: %s', async (how) => {
      const thinking = { type: 'enabled' as const, budget_tokens: 4_000 }
      const run = async (params: Anthropic.MessageCreateParamsNonStreaming) =>
        how === 'plain' ? client.messages.create(params) : client.messages.stream(params).finalMessage()
      say({ reasoning: { text: 'The city is الرياض.', signature: 'c2lnbmVk' }, calls: [calls[0]!], ends: 'tools' })
      const first = await run({ ...createRequest('anthropic-chat', { tools, thinking }), max_tokens: 8_000 })
      expect(first.content).toMatchObject([
        { type: 'thinking', thinking: 'The city is الرياض.', signature: 'c2lnbmVk' },
        { type: 'tool_use', id: 'toolu_1' },
      ])
      // Half of the bound is nearest to a high effort, 60 %.
      expect(cloud.last.body).toMatchObject({ max_tokens: 8_000, thinking: { type: 'enabled', budget_tokens: 4_800 } })

      say({ text: ['Warm.'] })
      const history: Anthropic.MessageParam[] = [
        ...messages,
        { role: 'assistant', content: first.content as Anthropic.ContentBlockParam[] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '31 °C' }] },
      ]
      await run({ ...createRequest('anthropic-chat', { tools, thinking, messages: history }), max_tokens: 8_000 })
      expect(cloud.last.body.messages[1].content[0]).toEqual({ type: 'thinking', thinking: 'The city is الرياض.', signature: 'c2lnbmVk' })
      expect(cloud.last.body.thinking).toBeDefined()
    })

    it('receives the matched stop sequence, and the reason of a refusal', async () => {
      cloud.answering = (response) => {
        const { stop_reason: _, ...whole } = ANTHROPIC_WIRE.completion({ text: ['one, two'] }) as Record<string, unknown>
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ ...whole, stop_reason: 'stop_sequence', stop_sequence: 'three' }))
      }
      const stopped = await client.messages.create({
        ...createRequest('anthropic-chat', { stop_sequences: ['three', 'four'] }),
        ...{ top_k: 5 },
      })
      expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'three' })
      expect(cloud.last.body).toMatchObject({ stop_sequences: ['three', 'four'], top_k: 5 })

      say({ text: ['I'], ends: 'filter' })
      const refused = await client.messages.stream(createRequest('anthropic-chat')).finalMessage()
      expect(refused).toMatchObject({ stop_reason: 'refusal', stop_details: { explanation: 'This is not something to help with.' } })
      say({ text: ['I'], ends: 'length' })
      expect(await client.messages.create(createRequest('anthropic-chat'))).toMatchObject({ stop_reason: 'max_tokens' })
    })

    it('caches its conversation, and pays for the cache write', async () => {
      cloud.answering = (response) => {
        const whole = ANTHROPIC_WIRE.completion({ text: ['Kept.'] }) as { usage: object }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ ...whole, usage: { ...whole.usage, cache_creation_input_tokens: 100 } }))
      }
      const system = [{ type: 'text' as const, text: 'Be brief.', cache_control: { type: 'ephemeral' as const } }]
      const message = await client.messages.create(createRequest('anthropic-chat', { system }))
      expect(cloud.last.body.cache_control).toEqual({ type: 'ephemeral' })
      expect(message.usage).toMatchObject({
        input_tokens: 16,
        cache_read_input_tokens: 4,
        cache_creation_input_tokens: 100,
        output_tokens: 9,
      })
      // 16 tokens at 1,000 nano-USD, 4 at 100, 100 at 2,000, 9 at 10,000.
      expect(await charged()).toBe(306_400n)
      const elsewhere = await client.messages.create(createRequest('mock-chat', { system })).withResponse()
      expect(elsewhere.response.headers.get('x-kis-warning')).toBe('cache_control_not_honored')
      expect(mock.requests.at(-1)).not.toHaveProperty('cache_control')
    })

    it('sends images, the user, and a schema for the reply', async () => {
      say({ text: ['{"city":"Riyadh"}'] })
      const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false }
      const message = await client.messages.create(
        createRequest('anthropic-chat', {
          messages: [
            {
              role: 'user',
              content: [
                image,
                { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
                { type: 'text', text: 'Where?' },
              ],
            },
          ],
          metadata: { user_id: 'somebody' },
          output_config: { format: { type: 'json_schema', schema } },
        }),
      )
      expect(message.content).toMatchObject([{ type: 'text', text: '{"city":"Riyadh"}' }])
      expect(cloud.last.body.metadata).toEqual({ user_id: 'somebody' })
      expect(cloud.last.body.messages[0].content).toMatchObject([
        { type: 'image', source: { type: 'base64', data: PIXEL } },
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
        { type: 'text', text: 'Where?' },
      ])
      expect(JSON.stringify(cloud.last.body)).toContain('"additionalProperties":false')
    })

    it('is served by another server of the protocol, plain and streamed, with tools and an error', async () => {
      cloud.mock.on({ hasToolResult: true }, { content: 'Warm, at noon.' })
      cloud.mock.onMessage(/weather/, { toolCalls: [{ name: 'weather', arguments: '{"city":"Riyadh"}' }] })
      cloud.mock.onMessage(/too much/, { error: { message: 'Overloaded', type: 'overloaded_error' }, status: 529 })
      const first = await client.messages.stream(createRequest('anthropic-chat', { tools })).finalMessage()
      const call = first.content.find((block) => block.type === 'tool_use')
      expect([first.stop_reason, call?.name, call?.input]).toEqual(['tool_use', 'weather', { city: 'Riyadh' }])
      const history: Anthropic.MessageParam[] = [
        ...messages,
        { role: 'assistant', content: first.content as Anthropic.ContentBlockParam[] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call!.id, content: '31 °C' }] },
      ]
      const reply = await client.messages.create(createRequest('anthropic-chat', { tools, messages: history }))
      expect(reply.content).toMatchObject([{ type: 'text', text: 'Warm, at noon.' }])
      const failure = await client.messages
        .create(createRequest('anthropic-chat', { messages: [{ role: 'user', content: 'too much' }] }))
        .catch((error) => error)
      expect(failure).toMatchObject({ status: 529, type: 'overloaded_error' })
    })

    it('receives the refusal of the vendor, and pays nothing', async () => {
      cloud.answering = failing(ANTHROPIC_WIRE, 400, 'that parameter is wrong')
      await expect(client.messages.create(createRequest('anthropic-chat'))).rejects.toMatchObject({
        status: 400,
        type: 'invalid_request_error',
        apiMessage: expect.stringContaining('that parameter is wrong'),
      })
      cloud.answering = failing(ANTHROPIC_WIRE, 429, 'slow down', { 'retry-after': '30' })
      const limited = await client.messages
        .stream(createRequest('anthropic-chat'))
        .finalMessage()
        .catch((error) => error)
      expect([limited.status, limited.type, limited.headers.get('retry-after')]).toEqual([429, 'rate_limit_error', '30'])
      expect(await charged()).toBe(0n)
    })

    it('stops the work of Anthropic when it disconnects during a stream', async () => {
      cloud.answering = beginning(ANTHROPIC_WIRE, { text: ['Hel', 'lo'] }, 4, () => undefined)
      const stream = client.messages.stream(createRequest('anthropic-chat'))
      const ended = stream.done().catch((error) => error)
      await new Promise<void>((resolve) => stream.once('text', () => resolve()))
      stream.abort()
      expect(await ended).toBeInstanceOf(Anthropic.APIUserAbortError)
      await cloud.last.closed
      expect(await charged()).toBeGreaterThan(10_000n)
    })
  })

  it('sends the signature of a tool call back to Gemini', async () => {
    say({ calls: [calls[0]!], ends: 'tools' }, GOOGLE_WIRE)
    const first = await client.messages.stream(createRequest('google-chat', { tools })).finalMessage()
    expect(first.content.map(({ type }) => type)).toEqual(['redacted_thinking', 'tool_use'])
    say({ text: ['Warm.'] }, GOOGLE_WIRE)
    const history: Anthropic.MessageParam[] = [
      ...messages,
      { role: 'assistant', content: first.content as Anthropic.ContentBlockParam[] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '31 °C' }] },
    ]
    await client.messages.create(createRequest('google-chat', { tools, messages: history }))
    expect(JSON.stringify(cloud.last.body.contents)).toContain('"thoughtSignature":"signed-by-google"')
  })

  it('lists the models, whose IDs it needs', async () => {
    const models = await client.models.list()
    expect(models.data.map(({ id }) => id)).toEqual(expect.arrayContaining(['mock-chat', 'anthropic-chat']))
    expect(models.hasNextPage()).toBe(false)
    expect((await client.models.retrieve('mock-chat')).id).toBe('mock-chat')
  })
})
