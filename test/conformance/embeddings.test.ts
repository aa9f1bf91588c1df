import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Caller, createCaller, nano, newOrganization } from '../support/client.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'

const url = process.env.KIS_TEST_EMBEDDINGS_URL
const suite = url ? describe : describe.skip
const why = url ? '' : ': skipped because KIS_TEST_EMBEDDINGS_URL names no engine (test/engines/README.md)'

const catalog = `
engines:
  second: { kind: openai, base_url: "${url}", badge: local }
models:
  - { id: second, engine: second, engine_model: original, kind: embedding, dimensions: 384, context_window: 512, price: { input: "1" } }
`
const TEXTS = ['Annual leave is thirty days.', 'الإجازة السنوية ثلاثون يوما.', 'The engine of the ship has twelve cylinders.', '🌴']

const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, component, index) => sum + component * b[index]!, 0)

suite(`Embeddings with a real engine of the protocol${why}`, () => {
  let service: Service
  let caller: Caller
  beforeAll(async () => {
    service = await startEmbedded({ catalog })
    caller = await newOrganization(createCaller(service, service.key), service)
  })
  afterAll(() => service?.close())
  const embed = async (input: string | string[], more: { dimensions?: number; encoding_format?: 'float' | 'base64' } = {}) => {
    const { data, usage } = await caller.openai.embeddings.create({ model: 'second', input, ...more })
    return { usage, vectors: data.map(({ embedding }) => [...embedding]), indices: data.map(({ index }) => index) }
  }

  it('have the dimensions of the model and length 1, and distinguish meanings across languages', async () => {
    const { vectors } = await embed(TEXTS)
    for (const vector of vectors) {
      expect(vector).toHaveLength(384)
      expect(dot(vector, vector)).toBeCloseTo(1, 4)
    }
    const [english, arabic, other] = vectors
    expect(dot(english!, arabic!)).toBeGreaterThan(dot(english!, other!))
  })

  it('are the same as base64, the default of the client, and as numbers', async () => {
    const { vectors: byBase64 } = await embed(TEXTS)
    const { vectors: byNumber } = await embed(TEXTS, { encoding_format: 'float' })
    expect(byNumber.map((vector) => [...Float32Array.from(vector)])).toEqual(byBase64)
  })

  it('arrive in the order of the texts', async () => {
    const { vectors, indices } = await embed([...TEXTS].reverse())
    expect(indices).toEqual([0, 1, 2, 3])
    for (const [index, text] of [...TEXTS].reverse().entries()) {
      const [alone] = (await embed(text)).vectors
      expect(dot(vectors[index]!, alone!)).toBeGreaterThan(0.9999)
    }
  })

  it('are shortened to the requested dimensions, with length 1 again, even if the engine supports no dimensions', async () => {
    const [whole] = (await embed(TEXTS[0]!)).vectors
    const [short] = (await embed(TEXTS[0]!, { dimensions: 64 })).vectors
    expect(short).toHaveLength(64)
    const start = whole!.slice(0, 64)
    const norm = Math.sqrt(dot(start, start))
    for (const [index, component] of short!.entries()) expect(component).toBeCloseTo(start[index]! / norm, 5)
  })

  it('are charged by the tokens in their usage', async () => {
    const before = nano((await caller.rest('GET', '/v1/wallet')).body.balance_usd)
    const { usage } = await embed(TEXTS)
    expect(usage.prompt_tokens).toBeGreaterThan(0)
    expect(usage.total_tokens).toBe(usage.prompt_tokens)
    expect(before - nano((await caller.rest('GET', '/v1/wallet')).body.balance_usd)).toBe(BigInt(usage.prompt_tokens) * 1_000n)
  })

  it.each<[string, object, string, string]>([
    ['nothing', { input: '' }, 'invalid_request', 'input'],
    ['no texts', { input: [] }, 'invalid_request', 'input'],
    ['an empty text among others', { input: ['a', ''] }, 'invalid_request', 'input[1]'],
    ['2,049 texts', { input: Array(2_049).fill('a') }, 'array_above_max_length', 'input'],
    ['an invalid token ID', { input: [[9906, 200_000]] }, 'invalid_value', 'input[0][1]'],
    ['texts and tokens', { input: ['a', 1] }, 'invalid_type', 'input[1]'],
    ['a text over the model’s limit', { input: ['a', 'word '.repeat(2_000)] }, 'context_length_exceeded', 'input[1]'],
    ['300,000 tokens and more', { input: Array(2_000).fill('word '.repeat(300)) }, 'context_length_exceeded', 'input'],
    ['another encoding', { input: 'a', encoding_format: 'int8' }, 'unsupported_value', 'encoding_format'],
    ['zero dimensions', { input: 'a', dimensions: 0 }, 'integer_below_min_value', 'dimensions'],
    ['more dimensions than the model has', { input: 'a', dimensions: 385 }, 'integer_above_max_value', 'dimensions'],
    ['half a dimension', { input: 'a', dimensions: 1.5 }, 'invalid_type', 'dimensions'],
  ])('are refused for %s', async (_name, fields, code, param) => {
    const { status, body } = await caller.rest('POST', '/v1/embeddings', { model: 'second', ...fields })
    expect([status, body.error.code, body.error.param]).toEqual([400, code, param])
  })
})
