import type OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { balancedWallet, type Caller, callerOf, nano, newOrganization } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, startEmbedded } from '../support/service.ts'
import { VendorCloud } from '../support/vendor-cloud.ts'
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
} from '../support/vendor-wires.ts'

const WIRES: Readonly<Record<string, Wire>> = {
  anthropic: ANTHROPIC_WIRE,
  google: GOOGLE_WIRE,
  bedrock: BEDROCK_WIRE,
  mistral: MISTRAL_WIRE,
  cohere: COHERE_WIRE,
  azure: OPENAI_WIRE,
}
const VENDORS = Object.keys(WIRES)

const settingsOf = (vendor: string, url: string) => {
  if (vendor === 'bedrock')
    return `region: eu-west-1, access_key_id: AKIA0, secret_access_key: the-secret-of-the-operator, base_url: "${url}"`
  return `api_key: "key-of-${vendor}", base_url: "${url}"`
}

/** Every vendor's cloud is this one; a model of each, at 1, 0.1 and 10 USD per million tokens. */
const catalogOf = (url: string) => `
engines:
${VENDORS.map((vendor) => `  ${vendor}: { kind: ${vendor}, ${settingsOf(vendor, url)}, badge: cloud }`).join('\n')}
models:
${VENDORS.map(
  (vendor) => `  - id: ${vendor}-chat
    engine: ${vendor}
    engine_model: ${vendor === 'anthropic' ? 'claude-sonnet-4-6' : 'a-model'}
    kind: chat
    supports: [vision, tools, response_schema]
    context_window: 100000
    max_output_tokens: 1000
    price: { input: "1", cached_input: "0.1", output: "10" }`,
).join('\n')}
  - { id: cohere-embed, engine: cohere, kind: embedding, dimensions: 4, context_window: 500, price: { input: "1" } }
`

/** 16 uncached tokens at 1,000 nano-USD, 4 cached at 100, 9 out at 10,000. */
const PRICE = 106_400n
const messages = [{ role: 'user' as const, content: 'What is the weather in الرياض?' }]
const tools: OpenAI.ChatCompletionTool[] = ['weather', 'clock'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}))
const calls = [
  { id: 'abcdefgh1', name: 'weather', arguments: ['{"city":', '"الرياض"}'] },
  { id: 'abcdefgh2', name: 'clock', arguments: ['{"city":"Jeddah"}'] },
]

describe('the official client, over each vendor', () => {
  let cloud: VendorCloud
  let service: Service
  let caller: Caller
  let spent: bigint
  beforeAll(async () => {
    cloud = await VendorCloud.start()
    service = await startEmbedded({ catalog: catalogOf(cloud.url) })
    caller = await newOrganization(callerOf(service, service.key), service)
  })
  afterAll(async () => {
    await service?.close()
    await cloud[Symbol.asyncDispose]()
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
  const say = (vendor: string, said: Said) => {
    cloud.answering = saying(WIRES[vendor]!, said)
  }

  it('lists the models', async () => {
    const ids = (await caller.openai.models.list()).data.map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(VENDORS.map((vendor) => `${vendor}-chat`)))
  })

  describe.each(VENDORS)('%s', (vendor) => {
    const model = `${vendor}-chat`

    it('answers, and the wallet is charged what the vendor’s usage says', async () => {
      say(vendor, { text: ['31 °C', ' مشمس'] })
      const completion = await caller.openai.chat.completions.create({ model, messages })
      expect(completion.choices[0]?.message).toMatchObject({ role: 'assistant', content: '31 °C مشمس', refusal: null })
      expect(completion.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } })
      expect(await charged()).toBe(PRICE)
      const { body } = await caller.rest('GET', '/v1/usage?limit=1')
      expect(body.data[0]).toMatchObject({ model, source: 'provider', input_tokens: 16, cached_input_tokens: 4, output_tokens: 9 })
    })

    it('streams parallel calls of tools, takes their results and streams the answer', async () => {
      say(vendor, { calls, ends: 'tools' })
      const asked = await caller.openai.chat.completions
        .stream({ model, messages, tools, stream_options: { include_usage: true } })
        .finalChatCompletion()
      const [choice] = asked.choices
      expect(choice?.finish_reason).toBe('tool_calls')
      const given = choice!.message.tool_calls!.filter((call) => call.type === 'function')
      expect(given.map(({ id, function: { name, arguments: text } }) => [id, name, JSON.parse(text)])).toEqual([
        ['abcdefgh1', 'weather', { city: 'الرياض' }],
        ['abcdefgh2', 'clock', { city: 'Jeddah' }],
      ])
      expect(asked.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 })

      say(vendor, { text: ['Warm', ' at noon.'] })
      const results = given.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: 'fine' }))
      const runner = caller.openai.chat.completions.stream({ model, tools, messages: [...messages, choice!.message, ...results] })
      expect(await runner.finalContent()).toBe('Warm at noon.')
      const sent = JSON.stringify(cloud.last.body)
      expect(sent.indexOf('abcdefgh1')).toBeLessThan(sent.indexOf('fine'))
      expect(await charged()).toBe(2n * PRICE)
    })

    it('fails with the code of the protocol, and costs nothing', async () => {
      cloud.answering = failing(WIRES[vendor]!, 400, 'that parameter is wrong')
      await expect(caller.openai.chat.completions.create({ model, messages })).rejects.toMatchObject({
        status: 400,
        code: 'invalid_request',
        message: expect.stringContaining('that parameter is wrong'),
      })
      cloud.answering = failing(WIRES[vendor]!, 401, 'bad key')
      await expect(caller.openai.chat.completions.create({ model, messages })).rejects.toMatchObject({ status: 502, code: 'engine_error' })
      cloud.answering = failing(WIRES[vendor]!, 429, 'slow down', { 'retry-after': '30' })
      await expect(caller.openai.chat.completions.create({ model, messages, stream: true })).rejects.toMatchObject({
        status: 429,
        code: 'rate_limit_exceeded',
      })
      expect(await charged()).toBe(0n)
    })

    it('breaks off a stream that is cut with an error in it, after what arrived', async () => {
      const said = { text: ['Hel', 'lo', 'again'] }
      cloud.answering = beginning(WIRES[vendor]!, said, WIRES[vendor]!.events(said).length - 3, (response) => response.end())
      let text = ''
      const reading = (async () => {
        for await (const chunk of await caller.openai.chat.completions.create({ model, messages, stream: true }))
          text += chunk.choices[0]?.delta.content ?? ''
      })()
      await expect(reading).rejects.toMatchObject({ code: 'engine_error' })
      expect(text).toMatch(/^Hel/)
      expect(await charged()).toBe(0n)
    })

    it('is ended within a second when the client leaves, who pays for what was produced', async () => {
      cloud.answering = beginning(WIRES[vendor]!, { text: ['Hel', 'lo'] }, 4, () => undefined)
      const stream = await caller.openai.chat.completions.create({ model, messages, stream: true })
      for await (const _ of stream) break
      const { closed } = cloud.last
      const leftAt = performance.now()
      stream.controller.abort()
      await closed
      expect(performance.now() - leftAt).toBeLessThan(1_000)
      // The input, counted, and one piece of output.
      expect(await charged()).toBeGreaterThan(10_000n)
    })
  })

  it('hears in a header what the vendor cannot honour', async () => {
    say('anthropic', { text: ['{}'] })
    const inJson = [...messages, { role: 'user' as const, content: 'Answer in JSON.' }]
    const request = { model: 'anthropic-chat', messages: inJson, seed: 7, response_format: { type: 'json_object' } } as const
    const { response } = await caller.openai.chat.completions.create(request).withResponse()
    expect(response.headers.get('x-kis-warning')?.split(', ').toSorted()).toEqual(['response_format_not_honored', 'seed_not_honored'])
    const streamed = await caller.openai.chat.completions.create({ ...request, stream: true }).withResponse()
    expect(streamed.response.headers.get('x-kis-warning')).toContain('seed_not_honored')
    for await (const _ of streamed.data);
  })

  it('embeds', async () => {
    cloud.answering = (response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ embeddings: { float: [[3, 0, 4, 0]] }, meta: { billed_units: { input_tokens: 5 } } }))
    const { data, usage } = await caller.openai.embeddings.create({ model: 'cohere-embed', input: 'سلام' })
    expect(data[0]?.embedding.map((value) => Math.round(value * 10) / 10)).toEqual([0.6, 0, 0.8, 0])
    expect([usage.prompt_tokens, cloud.last.body.input_type]).toEqual([5, 'search_query'])
    expect(await charged()).toBe(5_000n)
  })
})
