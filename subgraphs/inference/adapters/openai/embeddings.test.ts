import { afterEach, expect, it } from 'vitest'
import { systemClock } from '../../../common/process/clock.ts'
import { FakeVendor, respondJson } from '../../test-support/fake-vendor.ts'
import { createOpenAiEngines } from './engines.ts'

const CALL = { engineModel: 'vendor-model', requestId: 'req_1', dimensions: null, purpose: 'query' } as const
const NEVER = new AbortController().signal

let opened: AsyncDisposable[] = []
afterEach(async () => {
  for (const resource of opened.reverse()) await resource[Symbol.asyncDispose]()
  opened = []
})

async function engineFor(body: unknown) {
  const vendor = await FakeVendor.start((response) => respondJson(response, 200, body))
  const engines = createOpenAiEngines({ name: 'acme', baseUrl: vendor.baseUrl, apiKey: null, clock: systemClock })
  opened.push(vendor, engines)
  return { vendor, embedding: engines.embedding }
}

const base64 = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer).toString('base64')
const toBody = (...vectors: unknown[]) => ({
  object: 'list',
  data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  usage: { prompt_tokens: 7, total_tokens: 7 },
})

it('requests base64 and returns vectors of length 1', async () => {
  const { vendor, embedding } = await engineFor(toBody(base64(3, 4)))
  const { vectors, tokens, source } = await embedding.embed(CALL, ['text'], NEVER)
  expect([...vectors[0]!]).toEqual([Math.fround(0.6), Math.fround(0.8)])
  expect({ tokens, source }).toEqual({ tokens: 7, source: 'provider' })
  expect(vendor.received[0]!.request.url).toBe('/v1/embeddings')
  expect(vendor.received[0]!.body).toEqual({ model: 'vendor-model', input: ['text'], encoding_format: 'base64' })
})

it('accepts plain numbers, and passes on dimensions and token lists', async () => {
  const { vendor, embedding } = await engineFor(toBody([0, 2]))
  const { vectors } = await embedding.embed({ ...CALL, dimensions: 2 }, [[1, 2, 3]], NEVER)
  expect([...vectors[0]!]).toEqual([0, 1])
  expect(vendor.received[0]!.body).toMatchObject({ input: [[1, 2, 3]], dimensions: 2 })
})

it('sorts vectors into the order of the texts', async () => {
  const { embedding } = await engineFor({
    data: [
      { index: 1, embedding: [0, 1] },
      { index: 0, embedding: [1, 0] },
    ],
  })
  const { vectors, source, tokens } = await embedding.embed(CALL, ['a', 'b'], NEVER)
  expect(vectors.map((vector) => [...vector])).toEqual([
    [1, 0],
    [0, 1],
  ])
  expect({ source, tokens }).toEqual({ source: 'counted', tokens: 2 })
})

for (const { name, body, dimensions = null } of [
  { name: 'too few vectors', body: toBody([1, 0]) },
  { name: 'too many vectors', body: toBody([1], [1], [1]) },
  { name: 'no data', body: { object: 'list' } },
  { name: 'vectors of different dimensions', body: toBody([1, 0], [1, 0, 0]) },
  { name: 'other dimensions than were requested', body: toBody([1, 0, 0], [1, 0, 0]), dimensions: 2 },
  { name: 'NaN', body: toBody(base64(1, 0), base64(Number.NaN, 0)) },
  { name: 'infinity', body: toBody(base64(1, 0), base64(Number.POSITIVE_INFINITY, 0)) },
  { name: 'a zero vector', body: toBody([1, 0], [0, 0]) },
  { name: 'an empty vector', body: toBody([], []) },
  { name: 'null among the numbers', body: toBody([1, 0], [1, null]) },
  { name: 'broken base64', body: toBody('!!!!', '????') },
  { name: 'base64 of incomplete numbers', body: toBody('AAA=', 'AAA=') },
  {
    name: 'a duplicate index',
    body: {
      data: [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    },
  },
  {
    name: 'an index outside the request',
    body: {
      data: [
        { index: 0, embedding: [1] },
        { index: 2, embedding: [1] },
      ],
    },
  },
]) {
  it(`fails with engine_error for ${name}`, async () => {
    const { embedding } = await engineFor(body)
    await expect(embedding.embed({ ...CALL, dimensions }, ['a', 'b'], NEVER)).rejects.toMatchObject({
      name: 'KisError',
      code: 'engine_error',
    })
  })
}

it('overestimates tokens, even of long texts', async () => {
  const { embedding } = await engineFor({})
  const counts = await embedding.countTokens(
    ['', 'How much protein per day?', 'كم البروتين الذي يحتاجه الجسم يومياً؟', '中文', 'x'.repeat(1_000_000)],
    NEVER,
  )
  expect(counts[0]).toBe(0)
  // cl100k counts 6, about 25 and 2 to 4.
  expect(counts[1]).toBeGreaterThanOrEqual(6)
  expect(counts[2]).toBeGreaterThanOrEqual(25)
  expect(counts[3]).toBe(3)
  expect(counts[4]).toBeLessThanOrEqual(1_000_000)
})

it.each([-1, 0.5, 2 ** 40, Number.NaN, '7', null])('counts the tokens where the vendor reports %s of them', async (reported) => {
  const { embedding } = await engineFor({ ...toBody([1, 0]), usage: { prompt_tokens: reported } })
  expect(await embedding.embed(CALL, ['text'], NEVER)).toMatchObject({ tokens: 1, source: 'counted' })
})

it('refuses a response that is larger than the vectors of its texts can be', async () => {
  const { embedding } = await engineFor({ ...toBody(base64(3, 4)), note: 'x'.repeat(1_200_000) })
  await expect(embedding.embed(CALL, ['text'], NEVER)).rejects.toMatchObject({
    message: 'The engine `acme` returned a response that is too large.',
  })
  const forMore = embedding.embed(CALL, ['text', 'text', 'text'], NEVER)
  await expect(forMore).rejects.toMatchObject({ message: 'The engine `acme` returned 1 vectors for 3 texts.' })
})
