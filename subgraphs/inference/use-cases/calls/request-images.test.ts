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

describe.each(Object.entries(CALLS))('images of a %s answer', (_name, call) => {
  it('go by their address to an engine that fetches them', async () => {
    const world = parts()
    await call(world, createRequest(A, dataUri(png())))
    expect(world.far.requests[0]).toMatchObject(createRequest(A, dataUri(png())))
    expect(world.egress.fetched).toEqual([])
  })

  it('come with their bytes to one that does not, each address fetched once', async () => {
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
    ['nothing answers', new EgressError('unreachable'), 'invalid_request'],
    ['another status than 200 is answered', 404, 'invalid_request'],
    ['no image is', Buffer.from('<html>'), 'unsupported_file_type'],
    ['an image of too many pixels is', png(1, 1, { claims: [60_000, 60_000] }), 'payload_too_large'],
    ['too many bytes are', new EgressError('too_large'), 'payload_too_large'],
    ['there is no room to ask', new EgressError('busy'), 'service_unavailable'],
  ])('where %s at the address: nothing stays held and no engine is called', async (_case, page, code) => {
    const world = blind()
    world.egress.pages.set(B, page)
    const { balance } = world.billing
    await expect(call(world, createRequest(A, B))).rejects.toMatchObject({
      code,
      param: code === 'service_unavailable' ? null : nameParam(2),
    })
    expect([world.far.chats, world.billing.held, world.billing.balance]).toEqual([0, 0n, balance])
  })

  it('are fetched for no call that the rules in force refuse', async () => {
    const catalog = REGIONAL.replaceAll('badge: regional', 'badge: local')
    for (const world of [parts({ catalog }), blind({ catalog })]) {
      world.billing.principal = { ...somebody, residencyPolicy: 'local_only' }
      world.billing.rules = somebody.revision + 1
      await expect(call(world, createRequest(A))).rejects.toMatchObject({ code: 'residency_policy_violation', param: nameParam(1) })
      expect([world.far.chats, world.egress.fetched, world.egress.lookups, world.billing.held]).toEqual([0, [], [], 0n])
    }
  })

  it('go no further once the rules change while they are fetched', async () => {
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

  it('are looked for at no address that is not public, whoever would fetch it', async () => {
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

  it('are looked up before an engine outside the cloud fetches them, and go to none that leads inside or is unknown', async () => {
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

  it('of an organization whose data stays local come as data: URIs only', async () => {
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

  it('are bounded in number, in bytes together and at once', async () => {
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

  it('that fail end the fetches of the others', async () => {
    const world = blind()
    world.egress.pages.set(A, 'wait').set(B, 500)
    await expect(call(world, createRequest(A, B))).rejects.toMatchObject({ param: nameParam(2) })
    await eventually(() => world.egress.running === 0)
  })

  it('are fetched for nobody who has left, and cost him nothing', async () => {
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

it('images are fetched once for a model and its fallbacks, and not at all for a fallback that is not asked', async () => {
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
