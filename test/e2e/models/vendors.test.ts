import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CONFORMANCE_VENDORS, catalogOfVendors } from '../../conformance/vendors.ts'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { ANTHROPIC_WIRE, beginning, saying } from '../../support/engines/vendor-wires.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** 16 uncached tokens at 1,000 nano-USD, 4 cached at 100, 9 out at 10,000. */
const PRICE = 106_400n
const messages = [{ role: 'user' as const, content: 'What is the weather in الرياض?' }]
describe('Official client with each vendor', () => {
  let cloud: VendorCloud
  let service: Service
  let caller: Caller
  let spent: bigint
  beforeAll(async () => {
    cloud = await VendorCloud.start()
    service = await startEmbedded({ catalog: catalogOfVendors(cloud.url) })
    caller = await newOrganization(createCaller(service, service.key), service)
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

  it('lists the models', async () => {
    const ids = (await caller.openai.models.list()).data.map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(CONFORMANCE_VENDORS.map(({ name }) => `${name}-chat`)))
  })

  describe.each(CONFORMANCE_VENDORS)('$name', ({ name, wire }) => {
    const model = `${name}-chat`

    it('replies, and the wallet is charged the usage of the vendor', async () => {
      cloud.answering = saying(wire, { text: ['31 °C', ' مشمس'] })
      const completion = await caller.openai.chat.completions.create({ model, messages })
      expect(completion.choices[0]?.message).toMatchObject({ role: 'assistant', content: '31 °C مشمس', refusal: null })
      expect(completion.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } })
      expect(await charged()).toBe(PRICE)
      const { body } = await caller.rest('GET', '/v1/usage?limit=1')
      expect(body.data[0]).toMatchObject({ model, source: 'provider', input_tokens: 16, cached_input_tokens: 4, output_tokens: 9 })
    })

    it('stops within a second when the client disconnects, who pays for what was produced', async () => {
      cloud.answering = beginning(wire, { text: ['Hel', 'lo'] }, 4, () => undefined)
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

  it('reports in a header what the vendor does not support', async () => {
    cloud.answering = saying(ANTHROPIC_WIRE, { text: ['{}'] })
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
