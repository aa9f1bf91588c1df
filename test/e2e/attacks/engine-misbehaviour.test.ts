import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CONFORMANCE_VENDORS, catalogOfVendors } from '../../conformance/vendors.ts'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { type Answering, VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { beginning, failing, OPENAI_WIRE, type Said, saying, type Wire } from '../../support/engines/vendor-wires.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/**
 * The table of engine failures in `docs/operate/troubleshooting.md`: what vendors do, what the client sees and what is
 * charged, over every wire.
 */
const MODEL = 'kind: chat, max_output_tokens: 1000, price: { input: "1", output: "10" }'
const createCatalog = (url: string) =>
  catalogOfVendors(url)
    .replaceAll('badge: cloud }', 'badge: cloud, idle_seconds: 1, first_byte_seconds: 5 }')
    .replace(
      'models:\n',
      `  spare: { kind: openai, base_url: "${url}/spare/v1", badge: cloud }\nmodels:\n  - { id: careful, engine: openai, ${MODEL}, fallbacks: [spare] }\n  - { id: spare, engine: spare, ${MODEL} }\n  - { id: openai-large, engine: openai, ${MODEL.replace('1000', '100000')} }\n`,
    )

const SAID: Said = { text: ['Once', ' upon', ' a time', ' مرحبا 🌙'] }
const TEXT = SAID.text!.join('')
/** 16 uncached tokens at 1,000 nano-USD, 4 cached at 100, 9 out at 10,000. */
const PRICE = 106_400n
const messages = [{ role: 'user', content: 'Tell me a story.' }]

const respond =
  (status: number, type: string, body: string | Buffer, headers: object = {}): Answering =>
  (response) =>
    void response.writeHead(status, { 'content-type': type, ...headers }).end(body)
const json = (body: unknown, status = 200) => respond(status, 'application/json', JSON.stringify(body))
const stream = (wire: Wire, bytes: Buffer): Answering => respond(200, wire.contentType, bytes)
const middle = (wire: Wire, then: (response: ServerResponse) => void) => beginning(wire, SAID, 4, then)
const whole = (wire: Wire, said = SAID) => Buffer.concat(wire.events(said))
const split =
  (wire: Wire): Answering =>
  (response) => {
    response.socket?.setNoDelay(true)
    response.writeHead(200, { 'content-type': wire.contentType })
    const bytes = whole(wire)
    const next = (at: number) => {
      response.write(bytes.subarray(at, at + 97))
      if (at + 97 < bytes.length) setImmediate(next, at + 97)
      else response.end()
    }
    next(0)
  }
const endless: Answering = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ')
  const more = () => {
    while (!response.destroyed && response.write('x'.repeat(1 << 16)));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}

const event = (data: string) => Buffer.from(`data: ${data}\n\n`)
const empties = Array(300_000).fill('{}').join(',')
const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
/** The field is in each wire's answer, where a vendor may say what others do not know. */
const said = (fields: string) => `{"choices":[{"index":0,"message":{"content":"a"},"delta":{"content":"a"}}],${fields}}`

/** What of a chunk, or of an answer that failed, the tests look at. */
interface Chunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null }; readonly finish_reason?: string | null }[]
  readonly error?: { readonly code?: string }
}

interface Row {
  readonly name: string
  /** Undefined: the vendor's wire cannot do it. */
  readonly plain?: (wire: Wire, vendor: string) => Answering | undefined
  readonly streamed?: (wire: Wire, vendor: string) => Answering | undefined
  readonly code: string
  /** Our own limit or deadline ends the call. Absent: the vendor fails, which costs nothing. */
  readonly isOurs?: (vendor: string, isStream: boolean) => boolean
}

const always = () => true
const isOpenAi = (vendor: string) => vendor === 'openai' || vendor === 'azure'

const FAILURES: readonly Row[] = [
  {
    name: 'breaks the connection midway',
    plain: () => (response) => void response.writeHead(200, { 'content-length': 1_000 }).write('{', () => response.destroy()),
    streamed: (wire) => middle(wire, (response) => void setTimeout(() => response.destroy(), 20)),
    code: 'engine_error',
  },
  {
    name: 'closes cleanly without its end mark',
    streamed: (wire) => middle(wire, (response) => void response.end()),
    code: 'engine_error',
  },
  {
    name: 'sends garbage',
    plain: () => respond(200, 'application/json', '<html>'),
    streamed: (wire) => middle(wire, (response) => void response.end('data: {"choices": [oh no\n\n')),
    code: 'engine_error',
    // Bedrock's frames begin with their length, which garbage makes too long.
    isOurs: (vendor, isStream) => vendor === 'bedrock' && isStream,
  },
  {
    name: 'sends an error midway',
    streamed: (wire) => (wire.brokenEvent ? middle(wire, (response) => void response.end(wire.brokenEvent)) : undefined),
    code: '(engine_error|engine_unavailable|rate_limit_exceeded)',
  },
  {
    name: 'stops sending',
    plain: () => (response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{'),
    streamed: (wire) => middle(wire, () => undefined),
    code: 'engine_timeout',
    isOurs: always,
  },
  {
    name: 'sends nothing but comments',
    streamed: (wire) =>
      wire.contentType === 'text/event-stream'
        ? middle(wire, (response) => {
            const dripping = setInterval(() => response.write(': still thinking\n\n'), 100)
            response.once('close', () => clearInterval(dripping))
          })
        : undefined,
    code: 'engine_timeout',
    isOurs: always,
  },
  {
    name: 'responds with 200 and an error',
    plain: (wire) => json(wire.error(500, 'no').body),
    streamed: (wire) => json(wire.error(500, 'no').body),
    code: 'engine_error',
  },
  {
    name: 'responds with nothing',
    plain: () => respond(200, 'application/json', ''),
    streamed: (wire) => stream(wire, Buffer.alloc(0)),
    code: 'engine_error',
  },
  {
    name: 'responds without choices, with a usage',
    plain: (_, vendor) => (isOpenAi(vendor) ? json({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 9 } }) : undefined),
    streamed: (wire, vendor) =>
      isOpenAi(vendor)
        ? stream(wire, Buffer.from('data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9}}\n\ndata: [DONE]\n\n'))
        : undefined,
    code: 'engine_error',
  },
  {
    name: 'sends an endless event',
    streamed: (wire) => (wire.contentType === 'text/event-stream' ? endless : undefined),
    code: 'engine_error',
    isOurs: always,
  },
  {
    name: 'responds with more than 20 MiB',
    plain: () => respond(200, 'application/json', said(`"more":"${'x'.repeat(21 << 20)}"`)),
    code: 'engine_error',
    isOurs: always,
  },
  {
    name: 'nests its response endlessly',
    plain: () => respond(200, 'application/json', said(`"more":${deep}`)),
    streamed: (wire) => (wire.contentType === 'text/event-stream' ? stream(wire, event(said(`"more":${deep}`))) : undefined),
    code: 'engine_error',
    isOurs: always,
  },
  {
    name: 'responds with more choices than can be requested',
    plain: () => respond(200, 'application/json', `{"choices":[${empties}]}`),
    streamed: (wire) => (wire.contentType === 'text/event-stream' ? stream(wire, event(`{"choices":[${empties}]}`)) : undefined),
    code: 'engine_error',
    // Other wires have no choices, so the answer is none.
    isOurs: (vendor, isStream) => isStream || isOpenAi(vendor),
  },
  {
    name: 'calls tools endlessly',
    plain: (_, vendor) =>
      isOpenAi(vendor) ? respond(200, 'application/json', `{"choices":[{"message":{"tool_calls":[${empties}]}}]}`) : undefined,
    streamed: (wire, vendor) =>
      isOpenAi(vendor)
        ? beginning(wire, SAID, 2, (response) => {
            for (let id = 0; id < 2_000; id++)
              response.write(event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"${id}","function":{"name":"f"}}]}}]}`))
          })
        : undefined,
    code: 'engine_error',
    isOurs: always,
  },
  {
    name: 'sends nothing but objects without a choice',
    streamed: (wire, vendor) =>
      isOpenAi(vendor) ? beginning(wire, SAID, 0, (response) => void response.write('data: {}\n\n'.repeat(2_000))) : undefined,
    code: 'engine_error',
    isOurs: always,
  },
  {
    name: 'has retired the model',
    plain: (wire) => failing(wire, 404, 'gone'),
    streamed: (wire) => failing(wire, 404, 'gone'),
    code: 'engine_error',
  },
  {
    name: 'refuses the key of the service',
    plain: (wire) => failing(wire, 401, 'bad key'),
    streamed: (wire) => failing(wire, 403, 'bad key'),
    code: 'engine_unavailable',
  },
  {
    name: 'is out of credit',
    plain: (wire) => failing(wire, 402, 'Insufficient Balance'),
    streamed: () =>
      json({ error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' } }, 429),
    code: 'engine_unavailable',
  },
]

const ODD_BUT_RIGHT: readonly { readonly name: string; readonly answering: (wire: Wire) => Answering | undefined }[] = [
  { name: 'split within characters', answering: split },
  {
    name: 'with malformed choices',
    answering: (wire) =>
      wire === OPENAI_WIRE ? stream(wire, Buffer.concat(wire.events(SAID).toSpliced(2, 0, event('{"choices":[null,7,"a"]}')))) : undefined,
  },
  ...[
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ].map(([name, end]) => ({
    name: `with ${name} at the ends of lines`,
    answering: (wire: Wire) =>
      wire.contentType === 'text/event-stream' ? stream(wire, Buffer.from(whole(wire).toString().replaceAll('\n', end!))) : undefined,
  })),
]

describe('Misbehaving engine', () => {
  let cloud: VendorCloud
  let service: Service
  let caller: Caller
  let before: bigint
  beforeAll(async () => {
    cloud = await VendorCloud.start()
    service = await startEmbedded({ catalog: createCatalog(cloud.url) })
    caller = await newOrganization(createCaller(service, service.key), service)
  })
  afterAll(async () => {
    await service?.close()
    await cloud?.[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    before = await balance()
  })
  const balance = async () => nano((await balancedWallet(caller)).balance_usd)
  /** What was charged, once nothing is held any more. */
  async function charged(): Promise<bigint> {
    await eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n)
    return before - (await balance())
  }
  const send = (model: string, isStream: boolean, fields: object = {}) =>
    caller.rest('POST', '/v1/chat/completions', { model, messages, stream: isStream, max_tokens: 500, ...fields })
  const readEvents = (body: string): readonly Chunk[] =>
    body
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice('data: '.length)))
  const readText = (events: readonly Chunk[]) => events.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')
  /** The code of the error, in the answer or at the end of the stream. */
  const errorCode = (body: string | Chunk) => (typeof body === 'string' ? readEvents(body).at(-1) : body)?.error?.code

  describe.each(CONFORMANCE_VENDORS)('$name', ({ name, wire }) => {
    const model = `${name}-chat`

    it.each(FAILURES)('that $name fails the call, and the next one succeeds', async ({ plain, streamed, code, isOurs }) => {
      for (const [isStream, answering] of [
        [false, plain?.(wire, name)],
        [true, streamed?.(wire, name)],
      ] as const) {
        if (!answering) continue
        cloud.answering = answering
        const { status, body } = await send(model, isStream)
        expect([isStream, errorCode(body)]).toEqual([isStream, expect.stringMatching(new RegExp(`^${code}$`))])
        if (status === 200) expect(body).not.toContain('[DONE]')
        const cost = await charged()
        before -= cost
        // The input, and what was counted of the output, within the hold. All others cost nothing.
        expect([isStream, cost > 0n, cost < 5_200_000n]).toEqual([isStream, isOurs?.(name, isStream) ?? false, true])
      }
      cloud.answering = saying(wire, SAID)
      expect((await send(model, false)).status).toBe(200)
    })

    it.each(ODD_BUT_RIGHT)('with a valid stream, $name, is understood', async ({ answering }) => {
      const odd = answering(wire)
      if (!odd) return
      cloud.answering = odd
      const { body } = await send(model, true)
      expect(readText(readEvents(body))).toBe(TEXT)
      expect(await charged()).toBe(PRICE)
    })

    it('that puts the key of the operator into response metadata leaks it to nobody', async () => {
      const key = name === 'bedrock' ? 'the-secret-of-the-operator' : `key-of-${name}`
      const calling: Said = { ...SAID, calls: [{ id: 'call-1', name: 'find', arguments: ['{}'] }], ends: 'tools' }
      for (const secret of [key, `b.${Buffer.from(`user:${key}`).toString('base64url')}`]) {
        const spoil = (text: string) =>
          text
            .replace(/"(id|model|responseId|modelVersion|tool_call_id)":"[^"]*"/g, `"$1":"${secret}"`)
            .replace(/"(finish_reason|stop_reason|finishReason)":"[^"]*"/g, `"$1":"${secret}"`)
            .replaceAll('"created":', `"system_fingerprint":"${secret}","service_tier":"${secret}","more":{"a":["${secret}"]},"created":`)
            .replaceAll('"object":"chat.completion', `"object":"${secret}`)
        for (const isStream of [false, true]) {
          if (isStream && name === 'bedrock') continue
          const bytes = isStream ? whole(wire, calling).toString() : JSON.stringify(wire.completion(calling))
          cloud.answering = respond(200, isStream ? wire.contentType : 'application/json', spoil(bytes))
          const { status, body } = await send(model, isStream)
          const text = typeof body === 'string' ? body : JSON.stringify(body)
          expect(text).not.toContain(secret)
          if (!isOpenAi(name)) continue
          expect(status).toBe(200)
          for (const part of [`"model":"${model}"`, '"finish_reason":"tool_calls"', '"id":"call_', '"id":"chatcmpl'])
            expect(text).toContain(part)
          expect(text).not.toMatch(/"(system_fingerprint|service_tier)":"/)
        }
      }
    })

    it('with an impossible usage is charged the count, and with one above the hold the hold', async () => {
      for (const isStream of [false, true]) {
        before = await balance()
        cloud.answering = saying(wire, { ...SAID, usage: { input: -20, cached: 0, output: -9, reasoning: 0 } })
        expect((await send(model, isStream)).status).toBe(200)
        const counted = await charged()
        expect(counted).toBeGreaterThan(0n)
        expect(counted).toBeLessThan(1_000_000n)
        before = await balance()
        cloud.answering = saying(wire, { ...SAID, usage: { input: 1_000_000, cached: 0, output: 1_000_000, reasoning: 0 } })
        expect((await send(model, isStream)).status).toBe(200)
        const held = await charged()
        // 500 tokens of output, and some 80 of input.
        expect(held).toBeGreaterThan(5_000_000n)
        expect(held).toBeLessThan(5_200_000n)
      }
    })

    it('with a usage of zero is charged the count', async () => {
      for (const isStream of [false, true]) {
        before = await balance()
        cloud.answering = saying(wire, { ...SAID, usage: { input: 0, cached: 0, output: 0, reasoning: 0 } })
        expect((await send(model, isStream)).status).toBe(200)
        expect(await charged()).toBeGreaterThan(40_000n)
        expect((await caller.rest('GET', '/v1/usage?limit=1')).body.data[0].source).toBe('counted')
      }
      await eventually(() => service.processes.get('all')!.errors.includes('engine reports a usage of zero'))
    })

    it('that exceeds `max_tokens` is cut where the hold ends', async () => {
      const said = { text: Array(200).fill(' words') }
      cloud.answering = beginning(wire, said, 150, () => undefined)
      const { status, body } = await send(model, true, { max_tokens: 10 })
      const events = readEvents(body)
      expect([status, events.at(-1)?.choices?.[0]?.finish_reason ?? events.at(-2)?.choices?.[0]?.finish_reason]).toEqual([200, 'length'])
      expect(readText(events).length).toBeLessThan(20 * ' words'.length)
      await cloud.last.closed
      const cost = await charged()
      expect(cost).toBeGreaterThan(100_000n)
      expect(cost).toBeLessThan(200_000n)
    })
  })

  it.each([
    ['a retired model', 404, 'engine does not have a model of the catalog'],
    ['a refused key', 401, 'engine refuses the account of the service'],
    ['no more credit', 402, 'engine refuses the account of the service'],
  ])('with %s is replaced by the fallback, and reported to the operator', async (_name, status, alert) => {
    const { wire } = CONFORMANCE_VENDORS[0]!
    cloud.answering = (response, received) =>
      (received.path.startsWith('/spare') ? saying(wire, SAID) : failing(wire, status, 'no'))(response, received)
    for (const isStream of [false, true]) {
      const { headers, ...response } = await send('careful', isStream)
      expect([response.status, headers.get('x-kis-warning')]).toEqual([200, 'answered_by:spare'])
    }
    expect(await charged()).toBeGreaterThan(0n)
    await eventually(() => service.processes.get('all')!.errors.includes(alert))
  })

  it('fails the run of an agent, which pays for what a limit of the service has ended, and leaves no hold', async () => {
    const agent = await caller.rest('POST', '/v1/agents', { code: 'teller', name: 'Teller', model: 'openai-chat' })
    for (const [answering, isOurs] of [
      [endless, true],
      [json({ choices: [] }), false],
    ] as const) {
      before = await balance()
      cloud.answering = answering
      const { body } = await caller.rest('POST', `/v1/agents/${agent.body.id}/runs`, { input: 'Tell me a story.' })
      expect(JSON.stringify(body)).toContain('engine_error')
      expect((await charged()) > 0n).toBe(isOurs)
    }
  })

  it('is not called for 14 choices with log probabilities above the size of a stream', async () => {
    const { status, body } = await send('openai-large', true, { n: 14, logprobs: true, top_logprobs: 20, max_tokens: 100_000 })
    expect([status, body.error]).toEqual([400, expect.objectContaining({ code: 'invalid_request', param: 'max_tokens' })])
    expect(await charged()).toBe(0n)
  })
})
