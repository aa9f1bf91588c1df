import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../support/client.ts'
import { VendorCloud } from '../support/engines/vendor-cloud.ts'
import { failing, saying } from '../support/engines/vendor-wires.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'
import { anthropicNode } from './anthropic-node.ts'
import type { Called, ConformanceClient } from './clients.ts'
import { openaiNode } from './openai-node.ts'
import { openaiPython, pythonWithOpenai } from './openai-python.ts'
import { openaiResponses } from './openai-responses.ts'
import { CONFORMANCE_VENDORS, catalogOfVendors, computePrice } from './vendors.ts'

/** One pixel. */
const IMAGE = {
  mediaType: 'image/png',
  base64: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
} as const
const SCHEMA = { type: 'object', properties: { capital: { type: 'string' } }, required: ['capital'], additionalProperties: false }
const TEXT = 'Thirty days of annual leave, مدفوعة الأجر 🌴.'
const TOOL_CALLS = [
  { name: 'weather', arguments: '{"city":"الرياض"}' },
  { name: 'clock', arguments: '{"city":"Jeddah"}' },
]
/** Some seconds at the pace of the test, so that the stream ends early by its client only. */
const LONG_TEXT = 'word '.repeat(1_000)

const python = await pythonWithOpenai()
const CLIENTS: readonly {
  readonly name: string
  readonly missing?: string
  open(service: Service, key: string): ConformanceClient | Promise<ConformanceClient>
}[] = [
  { name: 'openai for Node', open: ({ rest }, key) => openaiNode(rest, key) },
  {
    name: 'openai for Python',
    ...('reason' in python && { missing: python.reason }),
    open: ({ rest }, key) => openaiPython('python' in python ? python.python : '', rest, key),
  },
  { name: 'openai for Node, Responses', open: ({ rest }, key) => openaiResponses(rest, key) },
  { name: 'the Anthropic client for Node', open: ({ rest }, key) => anthropicNode(rest, key) },
]

describe('Conformance with the official clients', () => {
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
    await cloud?.[Symbol.asyncDispose]()
  })
  const wallet = async () => (await caller.rest('GET', '/v1/wallet')).body as { balance_usd: string; held_usd: string }
  beforeEach(async () => {
    cloud.answering = null
    cloud.mock.reset()
    spent = nano((await wallet()).balance_usd)
  })
  /** Waits until nothing is held any more; gives what was charged since the test began. */
  async function charged(): Promise<bigint> {
    await eventually(async () => nano((await wallet()).held_usd) === 0n)
    return spent - nano((await wallet()).balance_usd)
  }

  for (const { name: clientName, missing, open } of CLIENTS) {
    if (missing !== undefined && process.env.KIS_REQUIRE_CLIENTS !== '1') {
      describe.skip(`${clientName}: skipped because ${missing}`, () => it('runs', () => undefined))
      continue
    }
    describe(clientName, () => {
      let client: ConformanceClient
      beforeAll(async () => {
        if (missing !== undefined) throw new Error(missing)
        client = await open(service, caller.key)
      })
      afterAll(() => client?.close())

      describe.each(CONFORMANCE_VENDORS)('over $name', ({ name, wire, mockLacks }) => {
        const model = `${name}-chat`
        const prompt = { model, text: 'How long is annual leave?' }
        const scriptReply = (content: string) => {
          if (mockLacks.includes('stream')) cloud.answering = saying(wire, { text: content.split(/(?<= )/) })
          else cloud.mock.onMessage(/annual leave/, { content })
        }

        it('reads a response, and is charged by its usage', async () => {
          cloud.mock.onMessage(/annual leave/, { content: TEXT })
          const { text, calls, ended, usage } = await client.complete(prompt)
          expect({ text, calls, ended }).toEqual({ text: TEXT, calls: [], ended: 'stop' })
          expect(await charged()).toBe(computePrice(usage!))
        })

        it('assembles a stream, and is charged by its usage', async () => {
          scriptReply(TEXT)
          const { text, calls, ended, usage } = await client.stream(prompt)
          expect({ text, calls, ended }).toEqual({ text: TEXT, calls: [], ended: 'stop' })
          expect(await charged()).toBe(computePrice(usage!))
        })

        for (const isStream of [false, true]) {
          it(`makes two parallel tool calls, ${isStream ? 'streamed' : 'plain'}, and sends their results`, async () => {
            const tools = ['weather', 'clock']
            if (isStream && mockLacks.includes('stream')) {
              const calls = TOOL_CALLS.map((call, index) => ({ ...call, id: `abcdefgh${index}`, arguments: [call.arguments] }))
              cloud.answering = saying(wire, { calls, ends: 'tools' })
            } else cloud.mock.onMessage(/annual leave/, { toolCalls: TOOL_CALLS })
            const toolReply = await (isStream ? client.stream({ ...prompt, tools }) : client.complete({ ...prompt, tools }))
            expect(toolReply.ended).toBe('tools')
            const expected = TOOL_CALLS.map((call) => [call.name, JSON.parse(call.arguments)])
            expect(toolReply.calls.map((call: Called) => [call.name, call.arguments])).toEqual(expected)
            expect(new Set(toolReply.calls.map(({ id }) => id)).size).toBe(2)

            cloud.answering = null
            cloud.mock.reset()
            cloud.mock.on({ hasToolResult: true }, { content: 'Warm, at noon.' })
            const finalReply = await client.complete({ ...prompt, tools, after: { calls: toolReply.calls, result: 'thirty-one degrees' } })
            expect(finalReply.text).toBe('Warm, at noon.')
            expect(JSON.stringify(cloud.last.body).match(/thirty-one degrees/g)).toHaveLength(2)
            expect(await charged()).toBe(computePrice(toolReply.usage!) + computePrice(finalReply.usage!))
          })
        }

        it('sends an image, which the vendor receives byte for byte', async () => {
          cloud.mock.onMessage(/annual leave/, { content: 'A leaf.' })
          expect((await client.complete({ ...prompt, image: IMAGE })).text).toBe('A leaf.')
          expect(JSON.stringify(cloud.last.body)).toContain(IMAGE.base64)
        })

        it('receives a reply that matches a schema, which the vendor receives', async () => {
          cloud.mock.onMessage(/annual leave/, { content: '{"capital":"الرياض"}' })
          const { text } = await client.complete({ ...prompt, schema: SCHEMA })
          expect(JSON.parse(text)).toEqual({ capital: 'الرياض' })
          expect(JSON.stringify(cloud.last.body)).toContain('"capital"')
        })

        it('throws an error of the vendor, with status, code and request ID, and pays nothing', async () => {
          for (const isStream of [false, true]) {
            cloud.mock.reset()
            cloud.mock.onMessage(/annual leave/, {
              error: { message: 'that parameter is wrong', type: 'invalid_request_error' },
              status: 400,
            })
            const refused = await client.failure(prompt, isStream)
            expect(refused).toMatchObject({ status: 400, word: expect.stringMatching(/^invalid_request/), text: '' })
            expect(refused.requestId).toMatch(/^req_/)
          }
          // So long a wait is left to the client, who is told of it.
          cloud.answering = failing(wire, 429, 'slow down', { 'retry-after': '30' })
          const limited = await client.failure(prompt, false)
          expect(limited).toMatchObject({ status: 429, word: expect.stringMatching(/^rate_limit/) })
          // The operator's key is nothing that the caller could mend.
          cloud.answering = failing(wire, 401, 'bad key')
          const refusedUs = await client.failure(prompt, false)
          expect([503, 529]).toContain(refusedUs.status)
          expect(refusedUs.word).toMatch(/^(engine_unavailable|overloaded_error)$/)
          expect(await charged()).toBe(0n)
        })

        it('throws for a broken stream, after what arrived, and pays nothing', async () => {
          if (mockLacks.includes('stream')) {
            const events = wire.events({ text: LONG_TEXT.split(/(?<= )/) })
            cloud.answering = (response) => {
              response.writeHead(200, { 'content-type': wire.contentType })
              response.write(Buffer.concat(events.slice(0, 8)), () => response.destroy())
            }
          } else cloud.mock.onMessage(/annual leave/, { content: LONG_TEXT }, { truncateAfterChunks: 8, chunkSize: 5, latency: 5 })
          const { status, word, text } = await client.failure(prompt, true)
          expect([status, word]).toEqual([null, expect.stringMatching(/^(engine_error|api_error)$/)])
          expect(text).toMatch(/^word /)
          expect(await charged()).toBe(0n)
        })

        it('disconnects from a stream, which stops the vendor, and pays for what was produced', async () => {
          if (mockLacks.includes('stream')) {
            cloud.answering = (response) => {
              response.writeHead(200, { 'content-type': wire.contentType })
              response.write(Buffer.concat(wire.events({ text: LONG_TEXT.split(/(?<= )/) }).slice(0, 8)))
            }
          } else cloud.mock.onMessage(/annual leave/, { content: LONG_TEXT }, { latency: 20, chunkSize: 5 })
          await client.disconnect(prompt)
          await cloud.last.closed
          const price = await charged()
          expect(price).toBeGreaterThan(10_000n)
          // Far less than the whole text, which has 1,000 tokens.
          expect(price).toBeLessThan(5_000_000n)
        })
      })
    })
  }

  it('the ledger entries sum to the balance after all of this', () => balancedWallet(caller))
})
