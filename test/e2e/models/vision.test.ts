import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import type OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { dataUri, GIF, png } from '../../support/data/images.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { BEDROCK_WIRE, GOOGLE_WIRE, saying } from '../../support/engines/vendor-wires.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const chatModel = (id: string, engine: string) =>
  `  - { id: ${id}, engine: ${engine}, kind: chat, supports: [vision], context_window: 100000, max_output_tokens: 100, image_tokens: 1000, price: { input: "1", output: "10" } }`
const createCatalog = (openai: string, cloud: string) => `
engines:
  openai: { kind: openai, base_url: "${openai}", badge: cloud }
  ollama: { kind: openai, base_url: "${openai}", badge: local }
  vllm: { kind: openai, base_url: "${openai}", badge: local, fetches_images: true }
  google: { kind: google, api_key: k, base_url: "${cloud}", badge: cloud }
  bedrock: { kind: bedrock, region: eu-west-1, api_key: k, base_url: "${cloud}", badge: cloud }
models:
${['openai', 'ollama', 'vllm', 'google', 'bedrock'].map((engine) => chatModel(`${engine}-eyes`, engine)).join('\n')}
  - { id: blind, engine: openai, kind: chat, context_window: 100000, max_output_tokens: 100, price: { input: "1", output: "10" } }
`
const PUBLIC_URL = 'https://images.example.com/cat.png'
const createMessages = (...images: { url: string; detail?: 'low' | 'high' }[]): OpenAI.ChatCompletionMessageParam[] => [
  {
    role: 'user',
    content: [{ type: 'text', text: 'What is this?' }, ...images.map((image_url) => ({ type: 'image_url' as const, image_url }))],
  },
]
const nameParam = (part: number) => `messages[0].content[${part}].image_url.url`

describe('Images', () => {
  let engine: MockEngine
  let cloud: VendorCloud
  let service: Service
  let caller: Caller
  let local: Caller
  /** Images that the operator has allowed to be fetched from this machine, by path; and what was asked for. */
  const pages: Readonly<Record<string, (response: ServerResponse) => void>> = {
    '/cat.png': (response) => response.end(png()),
    '/small.gif': (response) => response.end(GIF),
    '/page.html': (response) => response.end('<html>no image</html>'),
    '/huge.png': (response) => response.end(png(1, 1, { claims: [60_000, 60_000] })),
    '/inside': (response) => response.writeHead(302, { location: `http://127.0.0.1:${readPort(canary)}/latest/meta-data` }).end(),
    '/loop': (response) => response.writeHead(302, { location: '/loop' }).end(),
    '/long.png': (response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(2 ** 18)));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    },
  }
  const fetchedUrls: (string | undefined)[] = []
  const images = createServer((request, response) => {
    fetchedUrls.push(request.url)
    const page = pages[request.url!] ?? ((response: ServerResponse) => response.writeHead(404).end())
    page(response)
  })
  let canaryConnections = 0
  const canary = createTcpServer((socket) => {
    canaryConnections += 1
    socket.destroy()
  })
  const readPort = (server: Server) => (server.address() as AddressInfo).port
  const at = (path: string) => `http://127.0.0.1:${readPort(images)}${path}`

  beforeAll(async () => {
    for (const server of [images, canary]) await once(server.listen(0, '127.0.0.1'), 'listening')
    engine = await startMockEngine()
    cloud = await VendorCloud.start()
    service = await startEmbedded({
      catalog: createCatalog(engine.url, cloud.url),
      env: { KIS_EGRESS_ALLOW: `127.0.0.1:${readPort(images)}` },
    })
    const operator = createCaller(service, service.key)
    caller = await newOrganization(operator, service)
    local = await newOrganization(operator, service)
    await local.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })
  })
  afterAll(async () => {
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
    await cloud?.[Symbol.asyncDispose]()
    images.closeAllConnections()
    for (const server of [images, canary]) await new Promise((resolve) => server.close(resolve))
  })
  afterEach(() => {
    fetchedUrls.length = 0
  })

  const called = () => engine.chats + cloud.received.length
  /** The refusal, after which nothing is held or charged and no engine has been called, whole or streamed. */
  async function catchRefusal(model: string, messages: OpenAI.ChatCompletionMessageParam[], by = caller) {
    const [before, calls] = [await balancedWallet(by), called()]
    const failures: unknown[] = []
    for (const stream of [false, true])
      failures.push(await by.openai.chat.completions.create({ model, messages, stream }).catch((error: unknown) => error))
    expect([(await balancedWallet(by)).balance_usd, called()]).toEqual([before.balance_usd, calls])
    const [whole, streamed] = failures as { status: number; code: string; param: string; message: string }[]
    expect(streamed).toMatchObject({ status: whole!.status, code: whole!.code, param: whole!.param, message: whole!.message })
    return whole!
  }

  it('reach an engine of the OpenAI protocol unchanged', async () => {
    const messages = createMessages({ url: PUBLIC_URL, detail: 'low' }, { url: dataUri(png()), detail: 'high' }, { url: dataUri(GIF) })
    const completion = await caller.openai.chat.completions.create({ model: 'openai-eyes', messages })
    expect(completion.choices[0]?.message.content).toBe('Hello from the mock مرحبا')
    expect(engine.requests.at(-1)).toMatchObject({ messages })
    for await (const _ of await caller.openai.chat.completions.create({ model: 'openai-eyes', messages, stream: true }));
    expect(engine.requests.at(-1)).toMatchObject({ messages })
    expect(fetchedUrls).toEqual([])
    await balancedWallet(caller)
  })

  it.each([
    ['google', GOOGLE_WIRE, (type: string, data: string) => ({ inlineData: { mimeType: `image/${type}`, data } })],
    ['bedrock', BEDROCK_WIRE, (type: string, data: string) => ({ image: { format: type, source: { bytes: data } } })],
  ] as const)('reach %s as bytes, fetched once each', async (vendor, wire, createPart) => {
    cloud.answering = saying(wire, { text: ['A cat.'] })
    const messages = createMessages(
      { url: at('/cat.png') },
      { url: dataUri(GIF, 'image/png') },
      { url: at('/cat.png') },
      { url: at('/small.gif') },
    )
    const parts = [createPart('png', png().toString('base64')), createPart('gif', GIF.toString('base64'))]
    for (const stream of [false, true]) {
      fetchedUrls.length = 0
      const completion = await caller.openai.chat.completions.create({ model: `${vendor}-eyes`, messages, stream })
      if (Symbol.asyncIterator in completion) for await (const _ of completion);
      const sent = JSON.stringify(cloud.last.body)
      expect([0, 1].map((index) => sent.split(JSON.stringify(parts[index])).length - 1)).toEqual([2, 2])
      expect(fetchedUrls.toSorted()).toEqual(['/cat.png', '/small.gif'])
    }
    await eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n)
  })

  it('reach a server without image fetching as bytes', async () => {
    await caller.openai.chat.completions.create({ model: 'ollama-eyes', messages: createMessages({ url: at('/cat.png'), detail: 'low' }) })
    expect(engine.requests.at(-1)).toMatchObject({ messages: createMessages({ url: dataUri(png()), detail: 'low' }) })
  })

  it.each([
    ['text', dataUri(Buffer.from('this is text')), 415, 'unsupported_file_type'],
    ['an SVG', dataUri(Buffer.from('<svg/>'), 'image/svg+xml'), 415, 'unsupported_file_type'],
    ['corrupt base64', 'data:image/png;base64,iVBORw0K*GgoAAAANSUhEUg==', 400, 'invalid_request'],
    ['60,000 × 60,000 pixels', dataUri(png(1, 1, { claims: [60_000, 60_000] })), 413, 'payload_too_large'],
    ['more than 10 MiB', dataUri(Buffer.concat([png(), Buffer.alloc(10 * 2 ** 20)])), 413, 'payload_too_large'],
    ['a file', 'file:///etc/passwd', 400, 'invalid_request'],
  ])('that are %s are refused before any engine is called', async (_name, url, status, code) => {
    for (const model of ['openai-eyes', 'google-eyes'])
      expect(await catchRefusal(model, createMessages({ url: dataUri(png()) }, { url }))).toMatchObject({
        status,
        code,
        param: nameParam(2),
      })
  })

  it.each([
    ['/page.html', 415, 'unsupported_file_type'],
    ['/huge.png', 413, 'payload_too_large'],
    ['/long.png', 413, 'payload_too_large'],
    ['/absent.png', 400, 'invalid_request'],
    ['/inside', 400, 'invalid_request'],
    ['/loop', 400, 'invalid_request'],
  ])('at %s cost nothing, and no engine is called', async (path, status, code) => {
    for (const model of ['google-eyes', 'ollama-eyes'])
      expect(await catchRefusal(model, createMessages({ url: at('/cat.png') }, { url: at(path) }))).toMatchObject({
        status,
        code,
        param: nameParam(2),
      })
    expect(canaryConnections).toBe(0)
  })

  it('are not fetched from internal addresses, and all such addresses get one error', async () => {
    const port = readPort(canary)
    const inside = [
      'http://127.0.0.1/',
      `http://127.0.0.1:${port}/`,
      'http://169.254.169.254/latest/meta-data',
      'http://[::1]/',
      'http://2130706433/',
      'http://LOCALHOST./',
      'http://metadata.google.internal/computeMetadata/v1/',
      'http://minio/',
    ]
    const texts = new Set<string>()
    for (const model of ['openai-eyes', 'google-eyes', 'vllm-eyes'])
      for (const url of inside) {
        const refusal = await catchRefusal(model, createMessages({ url }))
        expect(refusal).toMatchObject({ status: 400, code: 'invalid_request', param: nameParam(1) })
        texts.add(refusal.message)
      }
    expect([texts.size, canaryConnections]).toEqual([1, 0])
  })

  it('of an organization with local residency are accepted as data: URIs, for local engines only', async () => {
    for (const url of [PUBLIC_URL, at('/cat.png')]) {
      for (const model of ['vllm-eyes', 'ollama-eyes'])
        expect(await catchRefusal(model, createMessages({ url }), local)).toMatchObject({
          status: 403,
          code: 'residency_policy_violation',
          param: nameParam(1),
        })
    }
    const own = createMessages({ url: dataUri(png()) })
    expect(await catchRefusal('openai-eyes', own, local)).toMatchObject({ status: 403, code: 'residency_policy_violation', param: 'model' })
    await local.openai.chat.completions.create({ model: 'vllm-eyes', messages: own })
    expect(engine.requests.at(-1)).toMatchObject({ messages: own })
    expect(fetchedUrls).toEqual([])
    await balancedWallet(local)
  })

  it('are checked at every entry point, with the path of that entry point', async () => {
    const before = await balancedWallet(caller)
    const calls = called()
    const data = Buffer.from('this is text').toString('base64')
    const responses = await caller.rest('POST', '/v1/responses', {
      model: 'openai-eyes',
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: `data:image/png;base64,${data}` }] }],
    })
    expect(responses).toMatchObject({
      status: 415,
      body: { error: { code: 'unsupported_file_type', param: 'input[0].content[0].image_url' } },
    })
    const anthropic = await caller.rest('POST', '/v1/messages', {
      model: 'openai-eyes',
      max_tokens: 10,
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }] }],
    })
    expect(anthropic).toMatchObject({
      status: 415,
      body: { type: 'error', error: { details: { error_code: 'unsupported_file_type', param: 'messages[0].content[0]' } } },
    })
    const { errors } = await caller.graphql(
      'mutation ($request: ChatProtocolRequest!) { createChatCompletion(input: { request: $request }) { response } }',
      { request: { model: 'openai-eyes', messages: createMessages({ url: `data:image/png;base64,${data}` }) } },
    )
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'UNSUPPORTED_FILE_TYPE', param: nameParam(1) })
    expect([(await balancedWallet(caller)).balance_usd, called()]).toEqual([before.balance_usd, calls])
  })

  it('are refused by a model without vision, and with an unknown detail', async () => {
    expect(await catchRefusal('blind', createMessages({ url: PUBLIC_URL }))).toMatchObject({
      status: 400,
      code: 'unsupported_value',
      param: 'messages[0].content[1]',
    })
    expect(await catchRefusal('openai-eyes', createMessages({ url: PUBLIC_URL, detail: 'huge' as 'high' }))).toMatchObject({
      status: 400,
      code: 'unsupported_value',
      param: 'messages[0].content[1].image_url.detail',
    })
  })
})
