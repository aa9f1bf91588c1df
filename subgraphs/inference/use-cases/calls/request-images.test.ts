import { describe, expect, it } from 'vitest'
import { dataUri, GIF, png } from '../../../../test/support/data/images.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { EgressError } from '../../../common/egress/egress.ts'
import { KisError } from '../../../common/errors.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { streamChatCompletion } from './stream-chat-completion.ts'

const A = 'https://images.test/a.png'
const B = 'https://images.test/b.gif'
const imagePart = (url: string, detail?: string) => ({ type: 'image_url', image_url: { url, ...(detail && { detail }) } })
const createRequest = (...urls: string[]) => ({
  model: 'chat',
  messages: [{ role: 'user', content: [{ type: 'text', text: 'what?' }, ...urls.map((url) => imagePart(url))] }],
})
const nameParam = (part: number) => `messages[0].content[${part}].image_url.url`

const REGIONAL = `
engines: { near: { kind: embedded, badge: local }, far: { kind: openai, base_url: "http://vendor.test/v1", badge: regional, fetches_images: true } }
models: [{ id: chat, engine: far, kind: chat, supports: [vision], max_output_tokens: 100, image_tokens: 50, price: { input: "1", output: "2" } }]`

/** Engines that fetch no images themselves, and two images with their addresses. */
function blind(options: Parameters<typeof parts>[0] = {}) {
  const world = parts(options)
  world.far.chat.fetchesImages = false
  world.egress.pages.set(A, png()).set(B, GIF)
  return world
}

const CALLS = {
  async whole({ deps }: ReturnType<typeof parts>, request: unknown, context = createRequestContext()) {
    await createChatCompletion(deps, context, request)
  },
  async streamed({ deps }: ReturnType<typeof parts>, request: unknown, context = createRequestContext()) {
    for await (const _ of streamChatCompletion(deps, context, request));
  },
}

describe.each(Object.entries(CALLS))('Images of a %s reply', (_name, call) => {
  it('are passed by URL to an engine that fetches them', async () => {
    const world = parts()
    await call(world, createRequest(A, dataUri(png())))
    expect(world.far.requests[0]).toMatchObject(createRequest(A, dataUri(png())))
    expect(world.egress.fetched).toEqual([])
  })

  it('are passed as bytes to other engines, with each URL fetched once', async () => {
    const world = blind()
    const request = {
      ...createRequest(A, B, A),
      messages: [...createRequest(A, B, A).messages, { role: 'user', content: [imagePart(A, 'high')] }],
    }
    await call(world, request)
    const { messages } = world.far.requests[0] as { messages: { content: unknown[] }[] }
    const [first, second] = [dataUri(png()), dataUri(GIF, 'image/gif')]
    expect(messages[0]!.content.slice(1)).toEqual([imagePart(first), imagePart(second), imagePart(first)])
    expect(messages[1]!.content).toEqual([imagePart(first, 'high')])
    expect(world.egress.fetched.map(({ url }) => url)).toEqual([A, B])
    expect(world.egress.fetched[0]).toMatchObject({ maxBytes: 10 * 2 ** 20 })
    expect(world.egress.fetched[0]!.headers).not.toHaveProperty('authorization')
  })

  it.each([
    ['nothing responds at the URL', new EgressError('unreachable'), 'invalid_request'],
    ['the status is not 200', 404, 'invalid_request'],
    ['the URL has no image', Buffer.from('<html>'), 'unsupported_file_type'],
    ['the image has too many pixels', png(1, 1, { claims: [60_000, 60_000] }), 'payload_too_large'],
    ['the image has too many bytes', new EgressError('too_large'), 'payload_too_large'],
    ['no fetch slot is free', new EgressError('busy'), 'service_unavailable'],
  ])('are refused without a hold or an engine call: %s', async (_case, page, code) => {
    const world = blind()
    world.egress.pages.set(B, page)
    const { balance } = world.billing
    await expect(call(world, createRequest(A, B))).rejects.toMatchObject({
      code,
      param: code === 'service_unavailable' ? null : nameParam(2),
    })
    expect([world.far.chats, world.billing.held, world.billing.balance]).toEqual([0, 0n, balance])
  })

  it('are not fetched for a call that the current rules refuse', async () => {
    const catalog = REGIONAL.replaceAll('badge: regional', 'badge: local')
    for (const world of [parts({ catalog }), blind({ catalog })]) {
      world.billing.principal = { ...somebody, residencyPolicy: 'local_only' }
      world.billing.rules = somebody.revision + 1
      await expect(call(world, createRequest(A))).rejects.toMatchObject({ code: 'residency_policy_violation', param: nameParam(1) })
      expect([world.far.chats, world.egress.fetched, world.egress.lookups, world.billing.held]).toEqual([0, [], [], 0n])
    }
  })

  it('stop when the rules change while they are fetched', async () => {
    const catalog = REGIONAL.replaceAll('badge: regional, fetches_images: true', 'badge: local')
    for (const urls of [[A], Array.from({ length: 5 }, (_, index) => `${A}?${index}`)]) {
      const world = blind({ catalog })
      world.billing.principal = { ...somebody, residencyPolicy: 'local_only' }
      for (const url of urls) world.egress.pages.set(url, png())
      world.egress.onFetch = () => {
        world.billing.rules = somebody.revision + 1
      }
      await expect(call(world, createRequest(...urls))).rejects.toMatchObject({ code: 'residency_policy_violation' })
      expect([world.far.chats, world.egress.fetched.length, world.billing.held]).toEqual([0, 1, 0n])
    }
  })

  it('are refused at an address that is not public, whoever would fetch it', async () => {
    for (const world of [parts(), blind()]) {
      for (const url of [
        'http://127.0.0.1/',
        'http://169.254.169.254/latest',
        'http://a.test:8080/',
        'http://u:p@a.test/',
        'https://',
        'http://LOCALHOST./',
        'http://metadata.google.internal/',
        'http://printer.local/',
      ])
        await expect(call(world, createRequest(A, url))).rejects.toMatchObject({ code: 'invalid_request', param: nameParam(2) })
      expect([world.far.chats, world.billing.holds.size, world.egress.fetched]).toEqual([0, 0, []])
    }
  })

  it('are resolved before an engine outside the cloud fetches them, and refused if internal or unknown', async () => {
    const world = parts({ catalog: REGIONAL })
    world.egress.pages.set(A, png())
    await call(world, createRequest(A, `${A}?again`, dataUri(png())))
    expect([world.far.chats, world.egress.lookups, world.egress.fetched]).toEqual([1, ['images.test'], []])
    await expect(call(world, createRequest(A, 'https://inside.test/a.png'))).rejects.toMatchObject({
      code: 'invalid_request',
      param: nameParam(2),
      message: 'The image could not be fetched from its address.',
    })
    const many = Array.from({ length: 21 }, (_, index) => `https://images${index}.test/`)
    await expect(call(world, createRequest(...many))).rejects.toMatchObject({ code: 'array_above_max_length' })
    expect([world.far.chats, world.billing.openHolds]).toEqual([1, 0])
  })

  it('of an organization with local residency are accepted as data: URIs only', async () => {
    const localCatalog = `
engines: { near: { kind: embedded, badge: local }, far: { kind: embedded, badge: local } }
models: [{ id: chat, engine: far, kind: chat, supports: [vision], max_output_tokens: 100, image_tokens: 50, price: { input: "1", output: "2" } }]`
    const local = createRequestContext({ ...somebody, residencyPolicy: 'local_only' })
    for (const world of [parts({ catalog: localCatalog }), blind({ catalog: localCatalog })]) {
      const refusal = { code: 'residency_policy_violation', param: nameParam(2) }
      await expect(call(world, createRequest(dataUri(png()), A), local)).rejects.toMatchObject(refusal)
      expect([world.far.chats, world.billing.holds.size, world.egress.fetched]).toEqual([0, 0, []])
      await call(world, createRequest(dataUri(png())), local)
      expect(world.far.requests).toMatchObject([createRequest(dataUri(png()))])
    }
  })

  it('are limited in number, in total bytes and in concurrency', async () => {
    const world = blind()
    const urls = Array.from({ length: 21 }, (_, index) => `https://images.test/${index}`)
    for (const url of urls) world.egress.pages.set(url, png())
    await expect(call(world, createRequest(...urls))).rejects.toMatchObject({ code: 'array_above_max_length', param: nameParam(21) })
    expect(world.egress.fetched).toEqual([])
    await call(world, createRequest(...urls.slice(1)))
    expect([world.egress.fetched.length, world.egress.mostRunning]).toEqual([20, 4])

    const large = png(1, 1, { padding: 9 * 2 ** 20 })
    for (const url of urls) world.egress.pages.set(url, large)
    await expect(call(world, createRequest(...urls.slice(0, 3)))).rejects.toMatchObject({ code: 'payload_too_large' })
    await call(world, createRequest(...urls.slice(0, 2)))
  })

  it('cancel the fetches of the others when one fails', async () => {
    const world = blind()
    world.egress.pages.set(A, 'wait').set(B, 500)
    await expect(call(world, createRequest(A, B))).rejects.toMatchObject({ param: nameParam(2) })
    await eventually(() => world.egress.running === 0)
  })

  it('are not fetched for a disconnected caller, who pays nothing', async () => {
    const world = blind()
    world.egress.pages.set(A, 'wait')
    const stop = new AbortController()
    const calling = call(world, createRequest(A), createRequestContext(somebody, stop.signal)).catch((error: unknown) => error)
    await eventually(() => world.egress.running === 1)
    stop.abort()
    await calling
    await eventually(() => world.egress.running === 0 && world.billing.held === 0n)
    expect([world.far.chats, world.billing.only.charged]).toEqual([0, 0n])
  })
})

it('images are fetched once for a model and its fallbacks, and not at all for an unused fallback', async () => {
  const catalog = `
engines: { near: { kind: embedded, badge: local }, far: { kind: openai, base_url: "http://vendor.test/v1", badge: cloud } }
models:
  - { id: chat, engine: far, kind: chat, supports: [vision], max_output_tokens: 100, image_tokens: 50, price: { input: "1", output: "2" }, fallbacks: [second] }
  - { id: second, engine: near, kind: chat, supports: [vision], max_output_tokens: 100, image_tokens: 50, price: { input: "1", output: "2" } }`
  const world = parts({ catalog })
  world.egress.pages.set(A, png())
  world.near.chat.fetchesImages = false
  await createChatCompletion(world.deps, createRequestContext(), createRequest(A))
  expect(world.egress.fetched).toEqual([])

  world.far.chat.fetchesImages = false
  world.far.completions = [new KisError('engine_error', 'down')]
  const { modelId } = await createChatCompletion(world.deps, createRequestContext(), createRequest(A))
  expect([modelId, world.egress.fetched.length]).toEqual(['second', 1])
  expect(world.near.requests[0]).toMatchObject(createRequest(dataUri(png())))
})
