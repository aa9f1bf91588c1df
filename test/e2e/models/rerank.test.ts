import { CohereClient, CohereClientV2 } from 'cohere-ai'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { balancedWallet, type Caller, type Json, makeCaller, nano, newOrganization } from '../../support/client.ts'
import { RerankVendor } from '../../support/engines/rerank-vendor.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const makeCatalog = (url: string) => `
engines:
  cohere: { kind: rerank, protocol: cohere, base_url: "${url}/cohere", api_key: "k", badge: cloud }
  jina: { kind: rerank, protocol: jina, base_url: "${url}/jina", api_key: "k", badge: regional }
  tei: { kind: rerank, protocol: tei, base_url: "${url}/tei", badge: local }
models:
  - { id: by-search, engine: cohere, engine_model: rerank-v3.5, kind: rerank, price: { search: "2" } }
  - { id: by-token, engine: jina, kind: rerank, price: { input: "0.05" } }
  - { id: local, engine: tei, kind: rerank, price: { input: "0.01" } }
  - { id: safe, engine: cohere, kind: rerank, price: { search: "2" }, fallbacks: [local] }
`
const QUERY = 'annual leave days'
const DOCUMENTS = ['Meals are reimbursed.', 'Annual leave is thirty days.', 'يحق لكل موظف ثلاثون يوماً', 'Annual report']
const BEST = [1, 3]

let vendor: RerankVendor
let service: Service
let caller: Caller & { readonly organizationId: string }

beforeAll(async () => {
  vendor = await RerankVendor.start()
  service = await startEmbedded({ catalog: makeCatalog(vendor.url) })
  caller = await newOrganization(makeCaller(service, service.key), service)
})
beforeEach(() => {
  vendor.misbehaviour = null
})
afterAll(async () => {
  await service?.close()
  await vendor?.[Symbol.asyncDispose]()
})

const rerank = (model: string, more: object = {}) =>
  caller.rest('POST', '/v1/rerank', { model, query: QUERY, documents: DOCUMENTS, ...more })
const spent = async () => nano('10') - nano((await balancedWallet(caller)).balance_usd)
async function costOf(work: () => Promise<unknown>) {
  const before = await spent()
  await work()
  return (await spent()) - before
}

it('Cohere’s own clients read the answer, at both of their addresses', async () => {
  const options = { token: caller.key, environment: service.rest, maxRetries: 0 }
  const v2 = await new CohereClientV2(options).rerank({ model: 'by-search', query: QUERY, documents: DOCUMENTS, topN: 2 })
  expect(v2.results.map(({ index }) => index)).toEqual(BEST)
  expect(v2.results[0]!.relevanceScore).toBe(1)
  expect(v2.meta?.billedUnits?.searchUnits).toBe(1)
  const documents = DOCUMENTS.map((text) => ({ text }))
  const v1 = await new CohereClient(options).rerank({ model: 'by-search', query: QUERY, documents, topN: 2, returnDocuments: true })
  expect(v1.results.map(({ document }) => document?.text)).toEqual(BEST.map((index) => DOCUMENTS[index]))
  expect(vendor.received.at(-1)!.body).toMatchObject({ model: 'rerank-v3.5', query: QUERY, documents: DOCUMENTS })
})

it('Cohere’s own client says what was wrong', async () => {
  const client = new CohereClientV2({ token: caller.key, environment: service.rest, maxRetries: 0 })
  const error = await client.rerank({ model: 'absent', query: QUERY, documents: DOCUMENTS }).catch((thrown: Json) => thrown)
  expect(error).toMatchObject({ statusCode: 404, body: { error: { code: 'model_not_found' } } })
})

it('each shape of vendor is charged exactly: by the search, by the tokens that it reports, by the count', async () => {
  // USD 2 for a thousand searches.
  expect(await costOf(() => rerank('by-search'))).toBe(2_000_000n)
  expect(await costOf(() => rerank('by-search', { documents: Array(250).fill('a') }))).toBe(6_000_000n)
  // 15 words, and the query's 3 with each document, at 50 nano-USD.
  const { body } = await rerank('by-token')
  expect(body).toMatchObject({ object: 'rerank', model: 'by-token', usage: { total_tokens: 27, search_units: 0 } })
  expect(await costOf(() => rerank('by-token'))).toBe(27n * 50n)
  // TEI reports nothing, so the service's own count is charged, at 10 nano-USD.
  const tokens = BigInt((await rerank('local')).body.usage.total_tokens)
  expect(tokens).toBeGreaterThan(0n)
  expect(await costOf(() => rerank('local'))).toBe(tokens * 10n)
  const usage = (await caller.rest('GET', '/v1/usage?limit=100')).body.data
  const last = (model: string) => usage.find((record: { model: string }) => record.model === model)
  expect(last('by-search')).toMatchObject({ operation: 'rerank', search_units: 3, source: 'provider', rates: { search_units: '2000' } })
  expect(last('by-token')).toMatchObject({ operation: 'rerank', input_tokens: 27, search_units: 0, source: 'provider' })
  expect(last('local')).toMatchObject({ operation: 'rerank', source: 'counted' })
  const { total } = (await caller.rest('GET', '/v1/usage/summary?operation=rerank')).body
  expect(total.search_units).toBeGreaterThanOrEqual(4)
})

it('a server of text-embeddings-inference gets as many documents at once as it takes', async () => {
  vendor.received.length = 0
  const documents = Array.from({ length: 70 }, (_, index) => (index === 69 ? 'annual leave days' : `document ${index}`))
  const { body } = await rerank('local', { documents, top_n: 1 })
  expect(body.results).toEqual([{ index: 69, relevance_score: 1 }])
  expect(vendor.received.map((received) => received.body.texts?.length)).toEqual([32, 32, 6])
})

it('a failure costs nothing, and a fallback answers where there is one', async () => {
  vendor.misbehaviour = 500
  expect(
    await costOf(async () => {
      const { status, body } = await rerank('by-search')
      expect([status, body.error.code]).toEqual([502, 'engine_error'])
    }),
  ).toBe(0n)
  vendor.misbehaviour = { body: { results: [] } }
  const { status, body } = await rerank('by-search')
  expect([status, body.error.code]).toEqual([502, 'engine_error'])
  // The other shape cannot read this answer; each of its own would do.
  vendor.misbehaviour = { body: DOCUMENTS.map((_, index) => ({ index, score: index })) }
  expect((await rerank('safe')).body).toMatchObject({ model: 'local', results: [{ index: 3 }, { index: 2 }, { index: 1 }, { index: 0 }] })
})

it('the same idempotency key gives the same answer, and is paid once', async () => {
  const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', 'idempotency-key': 'once' }
  const body = JSON.stringify({ model: 'by-search', query: QUERY, documents: DOCUMENTS })
  const send = () => fetch(`${service.rest}/v1/rerank`, { method: 'POST', headers, body })
  const cost = await costOf(async () => {
    const [first, second] = [await send(), await send()]
    expect(second.headers.get('idempotent-replayed')).toBe('true')
    expect(((await second.json()) as { results: unknown }).results).toEqual(((await first.json()) as { results: unknown }).results)
  })
  expect(cost).toBe(2_000_000n)
})

it('a key without the scope, without the model or over its limit is refused', async () => {
  const keyOf = async (fields: object) => {
    const { body } = await caller.rest('POST', '/v1/keys', { name: 'k', scopes: ['inference'], ...fields })
    return makeCaller(service, body.key)
  }
  const call = (of: Caller) => of.rest('POST', '/v1/rerank', { model: 'by-search', query: QUERY, documents: DOCUMENTS })
  const codeOf = async (of: Caller) => (await call(of)).body.error.code
  expect(await codeOf(await keyOf({ scopes: ['knowledge:read'] }))).toBe('permission_denied')
  expect(await codeOf(await keyOf({ model_allowlist: ['local'] }))).toBe('model_not_found')
  const slow = await keyOf({ requests_per_minute: 1 })
  expect((await call(slow)).headers.get('x-ratelimit-limit-requests')).toBe('1')
  expect(await codeOf(slow)).toBe('rate_limit_exceeded')
})

it('the residency policy keeps documents from vendors outside it', async () => {
  const other = await newOrganization(makeCaller(service, service.key), service)
  const codeOf = async (model: string) => {
    const { body } = await other.rest('POST', '/v1/rerank', { model, query: QUERY, documents: DOCUMENTS })
    return body.error?.code ?? body.object
  }
  await other.rest('PATCH', '/v1/organization', { residency_policy: 'regional' })
  expect([await codeOf('by-search'), await codeOf('by-token'), await codeOf('local')]).toEqual([
    'residency_policy_violation',
    'rerank',
    'rerank',
  ])
})

it.each<[string, object, string, string]>([
  ['no documents', { documents: [] }, 'invalid_request', 'documents'],
  ['1,001 documents', { documents: Array(1_001).fill('a') }, 'array_above_max_length', 'documents'],
  ['a document without a text', { documents: [{}] }, 'missing_required_parameter', 'documents[0].text'],
  ['no query', { query: '' }, 'invalid_request', 'query'],
  ['a top_n of 0', { top_n: 0 }, 'integer_below_min_value', 'top_n'],
  ['a chat’s messages', { messages: [] }, 'invalid_request', 'messages'],
])('%s are refused before the vendor is asked', async (_name, fields, code, param) => {
  const { length } = vendor.received
  const { status, body } = await rerank('by-search', fields)
  expect([status, body.error.code, body.error.param]).toEqual([400, code, param])
  expect(vendor.received).toHaveLength(length)
})
