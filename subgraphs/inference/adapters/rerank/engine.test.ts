import { LLMock } from '@copilotkit/aimock'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Misbehaviour, RerankVendor } from '../../../../test/support/engines/rerank-vendor.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { RERANK_PROTOCOLS, type RerankProtocol } from '../../domain/catalog/engine.ts'
import { TIMEOUTS } from '../vendor/limits.ts'
import { createRerankEngine, type RerankEngineOptions } from './engine.ts'

const DOCUMENTS = ['Meals are reimbursed.', 'Annual leave is thirty days.', 'الإجازة السنوية']
const CALL = { engineModel: 'vendor-rerank', requestId: 'req_1' }
const never = () => new AbortController().signal

let vendor: RerankVendor
beforeAll(async () => {
  vendor = await RerankVendor.start()
})
beforeEach(() => {
  vendor.misbehaviour = null
  vendor.received.length = 0
})
afterAll(() => vendor[Symbol.asyncDispose]())

async function rerank(protocol: RerankProtocol, options: Partial<RerankEngineOptions> = {}, signal = never()) {
  const baseUrl = `${vendor.url}/${protocol}/`
  await using engine = createRerankEngine({ name: 'vendor', baseUrl, apiKey: 'secret', protocol, clock: systemClock, ...options })
  return await engine.rerank.rerank(CALL, 'annual leave', DOCUMENTS, signal)
}

describe.each(RERANK_PROTOCOLS)('Rerank server with the protocol %s', (protocol) => {
  it('returns a score for each document, in the order of the documents', async () => {
    expect(await rerank(protocol)).toMatchObject({ scores: [0, 1, 0] })
    expect(vendor.received).toMatchObject([{ path: `/${protocol}/rerank`, authorization: 'Bearer secret' }])
  })

  it.each<[string, Misbehaviour, string]>([
    [
      'too few scores',
      { body: protocol === 'tei' ? [{ index: 0, score: 1 }] : { results: [{ index: 0, relevance_score: 1 }] } },
      '1 scores for 3',
    ],
    ['no scores', { body: { meta: {} } }, 'no scores for 3'],
    ['the same index twice', { body: twice(protocol) }, 'wrong indices'],
    ['scores that are no numbers', { body: wordy(protocol) }, 'not a number'],
  ])('fails when it returns %s', async (_name, misbehaviour, message) => {
    vendor.misbehaviour = misbehaviour
    await expect(rerank(protocol)).rejects.toMatchObject({ code: 'engine_error', message: expect.stringContaining(message) })
  })

  it.each<[number, string]>([
    [400, 'invalid_request'],
    [401, 'engine_unavailable'],
    [404, 'engine_error'],
    [429, 'rate_limit_exceeded'],
    [500, 'engine_error'],
    [503, 'engine_unavailable'],
  ])('with the status %i fails as %s, without the key or the address', async (status, code) => {
    vendor.misbehaviour = status
    const error = await rerank(protocol).catch((thrown) => thrown)
    expect(error).toMatchObject({ code })
    expect(error.message).not.toMatch(/secret|127\.0\.0\.1/)
  })

  it('fails at its deadline without a response, and is closed when the caller disconnects', async () => {
    vendor.misbehaviour = 'hang'
    await expect(rerank(protocol, { timeouts: { ...TIMEOUTS, headersMs: 50 } })).rejects.toMatchObject({ code: 'engine_timeout' })
    await expect(rerank(protocol, {}, AbortSignal.timeout(20))).rejects.toMatchObject({ name: 'TimeoutError' })
  })
})

it('reads the usage of each protocol', async () => {
  expect(await rerank('cohere')).toMatchObject({ searchUnits: 1, tokens: null })
  expect(await rerank('jina')).toMatchObject({ searchUnits: null, tokens: 3 + 5 + 2 + 3 * 2 })
  expect(await rerank('tei')).toMatchObject({ searchUnits: null, tokens: null })
})

it("sends each protocol its own fields, and the vendor's name of the model", async () => {
  for (const protocol of RERANK_PROTOCOLS) await rerank(protocol)
  const query = 'annual leave'
  expect(vendor.received.map(({ body }) => body)).toEqual([
    { model: 'vendor-rerank', query, documents: DOCUMENTS, top_n: 3 },
    { model: 'vendor-rerank', query, documents: DOCUMENTS, top_n: 3, return_documents: false },
    { query, texts: DOCUMENTS, truncate: true, return_text: false },
  ])
})

it('reads a Cohere response from aimock', async () => {
  const mock = await LLMock.create({ port: 0 })
  mock.onRerank(
    'annual leave',
    [1, 2, 0].map((index, rank) => ({ index, relevance_score: 0.9 - rank / 10 })),
  )
  try {
    expect(await rerank('cohere', { baseUrl: `${mock.url}/v2` })).toMatchObject({ scores: [0.7, 0.9, 0.8], searchUnits: 0 })
  } finally {
    await mock.stop()
  }
})

function twice(protocol: RerankProtocol) {
  const results = [0, 0, 1].map((index) => ({ index, score: 1, relevance_score: 1 }))
  return protocol === 'tei' ? results : { results }
}

function wordy(protocol: RerankProtocol) {
  const results = [0, 1, 2].map((index) => ({ index, score: 'high', relevance_score: 'high' }))
  return protocol === 'tei' ? results : { results }
}
