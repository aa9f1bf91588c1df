import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import {
  addDocument,
  balancedWallet,
  type Caller,
  createCaller,
  type Json,
  nano,
  newCollection,
  newOrganization,
} from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { RerankVendor } from '../../support/engines/rerank-vendor.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const createCatalog = (url: string, chatUrl: string) => `
engines:
  chats: { kind: openai, base_url: "${chatUrl}", badge: cloud }
  embedded: { kind: embedded, badge: local }
  cohere: { kind: rerank, protocol: cohere, base_url: "${url}/cohere", api_key: "k", badge: cloud }
  jina: { kind: rerank, protocol: jina, base_url: "${url}/jina", api_key: "k", badge: regional }
  tei: { kind: rerank, protocol: tei, base_url: "${url}/tei", badge: local }
models:
  - { id: chat, engine: chats, kind: chat, max_output_tokens: 1000, price: { input: "1", output: "2" } }
  - { id: extractive, engine: embedded, kind: chat, context_window: 32000, max_output_tokens: 2048, price: { input: "0.01", output: "0.01" } }
  - { id: e5-small-ar-en, engine: embedded, kind: embedding, dimensions: 384, context_window: 512, query_prefix: "query: ", passage_prefix: "passage: ", cosine_spread: 0.03, price: { input: "0.01" } }
  - { id: by-search, engine: cohere, engine_model: rerank-v3.5, kind: rerank, price: { search: "2" } }
  - { id: by-token, engine: jina, kind: rerank, price: { input: "0.05" } }
  - { id: local, engine: tei, kind: rerank, price: { input: "0.01" } }
  - { id: safe, engine: cohere, kind: rerank, price: { search: "2" }, fallbacks: [local] }
`
const QUERY = 'annual leave days'
const DOCUMENTS = ['Meals are reimbursed.', 'Annual leave is thirty days.', 'يحق لكل موظف ثلاثون يوماً', 'Annual report']

let vendor: RerankVendor
let chats: MockEngine
let service: Service
let caller: Caller & { readonly organizationId: string }

beforeAll(async () => {
  vendor = await RerankVendor.start()
  chats = await startMockEngine()
  service = await startEmbedded({ catalog: createCatalog(vendor.url, chats.url) })
  caller = await newOrganization(createCaller(service, service.key), service)
})
beforeEach(() => {
  vendor.misbehaviour = null
})
afterAll(async () => {
  await service?.close()
  await vendor?.[Symbol.asyncDispose]()
  await chats?.[Symbol.asyncDispose]()
})

const rerank = (model: string, more: object = {}) =>
  caller.rest('POST', '/v1/rerank', { model, query: QUERY, documents: DOCUMENTS, ...more })
const spent = async () => nano('10') - nano((await balancedWallet(caller)).balance_usd)
async function costOf(work: () => Promise<unknown>) {
  const before = await spent()
  await work()
  return (await spent()) - before
}

it('each kind of vendor is charged exactly: by the search, by the reported tokens, by the count', async () => {
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

it('a text-embeddings-inference server receives batches of the size that it accepts', async () => {
  vendor.received.length = 0
  const documents = Array.from({ length: 70 }, (_, index) => (index === 69 ? 'annual leave days' : `document ${index}`))
  const { body } = await rerank('local', { documents, top_n: 1 })
  expect(body.results).toEqual([{ index: 69, relevance_score: 1 }])
  expect(vendor.received.map((received) => received.body.texts?.length)).toEqual([32, 32, 6])
})

it('a failure costs nothing, and a fallback responds where there is one', async () => {
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

it('the same idempotency key returns the same response, and is paid once', async () => {
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
    return createCaller(service, body.key)
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
  const other = await newOrganization(createCaller(service, service.key), service)
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
  ['chat messages', { messages: [] }, 'unknown_parameter', 'messages'],
])('%s are refused before the vendor is called', async (_name, fields, code, param) => {
  const { length } = vendor.received
  const { status, body } = await rerank('by-search', fields)
  expect([status, body.error.code, body.error.param]).toEqual([400, code, param])
  expect(vendor.received).toHaveLength(length)
})

// Before the organization's policy changes: a quote may follow the former one for the 3.5 s that the gateway remembers it.
it('quotes a reranking with its fallbacks, and holds nothing', async () => {
  const request = { model: 'safe', query: QUERY, documents: DOCUMENTS }
  let quote: Json
  const cost = await costOf(async () => {
    quote = (await caller.rest('POST', '/v1/rerank/quote', request)).body
  })
  expect(cost).toBe(0n)
  expect(quote.error).toBeUndefined()
  expect(quote).toMatchObject({
    object: 'rerank.quote',
    search_units: 1,
    amount_usd: '0.002',
    is_covered: true,
    models: [
      { id: 'safe', held_search_units: 1, amount_usd: '0.002' },
      { id: 'local', held_search_units: 0, is_covered: true },
    ],
  })
  const query =
    'query ($input: RerankQuoteInput!) { quoteRerank(input: $input) { tokens amount models { heldTokens rateCardVersion model { id } } } }'
  const { data } = await caller.graphql(query, { input: request })
  expect(data.quoteRerank).toMatchObject({
    tokens: quote.tokens,
    amount: '0.002',
    models: [{ model: { id: 'safe' } }, { model: { id: 'local' } }],
  })
  const { status, body } = await caller.rest('POST', '/v1/rerank/quote', { ...request, model: 'nobody' })
  expect([status, body.error.code]).toEqual([404, 'model_not_found'])
})

it('search uses the reranker of the collection or the one that it names, charged exactly', async () => {
  const { body: created } = await caller.rest('POST', '/v1/collections', {
    collection_code: 'leave',
    collection_name: 'Leave',
    embedding_model: 'e5-small-ar-en',
    rerank_model: 'by-search',
  })
  expect(created.rerank_model).toBe('by-search')
  await addDocument(caller, created.id, 'a.txt', 'Annual leave is thirty days.')
  await addDocument(caller, created.id, 'b.txt', 'Annual reports appear in spring, days after the leave of the minister ends annually.')
  const search = async (more: object = {}) =>
    (await caller.rest('POST', `/v1/collections/${created.id}/search`, { query: QUERY, ...more })).body
  const plain = await search({ rerank_model: null })
  expect(plain.rerank).toBeNull()
  const embedding = await costOf(() => search({ rerank_model: null }))
  expect((await search()).rerank).toEqual({ model: 'by-search', applied: true, error: null })
  expect((await search()).data[0].score).toBe(1)
  expect(await costOf(() => search())).toBe(embedding + 2_000_000n)
  expect((await search({ rerank_model: 'local' })).rerank).toMatchObject({ model: 'local', applied: true })
  expect(await costOf(() => search({ mode: 'lexical' }))).toBe(0n)

  vendor.misbehaviour = 500
  const failed = await search()
  expect(failed.rerank).toEqual({ model: 'by-search', applied: false, error: 'engine_error' })
  expect(failed.data).toEqual(plain.data)
  expect(await costOf(() => search())).toBe(embedding)
  vendor.misbehaviour = null

  const several = await caller.rest('POST', '/v1/search', {
    collection_ids: [created.id],
    query: QUERY,
    group_by: 'document',
    expand: 1,
    facets: ['file_name'],
  })
  expect(several.body).toMatchObject({ rerank: { applied: true }, facets: [{ values: [{ documents: 1 }, { documents: 1 }] }] })
  expect(several.body.groups).toHaveLength(2)
  expect(several.body.data[0].highlights.length).toBeGreaterThan(0)

  expect((await search({ rerank_model: 'absent' })).error).toMatchObject({ code: 'model_not_found', param: 'rerank_model' })
  await caller.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })
  try {
    const { length } = vendor.received
    const byName = await search({ rerank_model: 'by-search' })
    expect(byName.error).toMatchObject({ code: 'residency_policy_violation', param: 'rerank_model' })
    expect((await search()).rerank).toEqual({ model: 'by-search', applied: false, error: 'residency_policy_violation' })
    expect(vendor.received).toHaveLength(length)
  } finally {
    await caller.rest('PATCH', '/v1/organization', { residency_policy: 'unrestricted' })
  }

  const agent = { code: 'clerk', name: 'Clerk', model: 'extractive', collection_ids: [created.id] }
  const { body: clerk } = await caller.rest('POST', '/v1/agents', agent)
  const run = await caller.rest('POST', `/v1/agents/${clerk.id}/runs`, { input: QUERY })
  expect(run.body.status).toBe('completed')
  const records = (await caller.rest('GET', '/v1/usage?limit=100')).body.data
  const ofRun = records.filter(({ request_id }: Json) => request_id === run.headers.get('x-request-id') || request_id === run.body.id)
  expect(ofRun.filter(({ operation }: Json) => operation === 'rerank')).toHaveLength(1)

  expect((await caller.rest('PATCH', `/v1/collections/${created.id}`, { rerank_model: null })).body.rerank_model).toBeNull()
  expect((await search()).rerank).toBeNull()
})

it('a follow-up question is rewritten by a chat model, charged exactly, or else searched unchanged', async () => {
  const { id } = await newCollection(caller)
  await addDocument(caller, id, 'a.txt', 'Hello from the mock of the harbour.')
  const history = [{ role: 'user', content: 'What does the mock say?' }]
  const input = { query: 'And then?', history, rewrite_model: 'chat', mode: 'lexical' }
  const search = async (more: object = {}) => (await caller.rest('POST', `/v1/collections/${id}/search`, { ...input, ...more })).body
  const cost = await costOf(async () => {
    const { data, rewrite } = await search()
    expect(rewrite).toEqual({ query: 'Hello from the mock مرحبا', applied: true, error: null })
    expect(data).toHaveLength(1)
  })
  // 20 input tokens at 1,000 nano-USD and 5 output tokens at 2,000.
  expect(cost).toBe(30_000n)
  chats.failWith(500)
  expect(
    await costOf(async () => expect((await search()).rewrite).toEqual({ query: 'And then?', applied: false, error: 'engine_error' })),
  ).toBe(0n)
  chats.failWith(null)
  expect((await search({ rewrite_model: 'by-search' })).error).toMatchObject({ code: 'model_not_found', param: 'rewrite_model' })
})

it('a query longer than the input of the embedding model is searched whole', async () => {
  const { id } = await newCollection(caller)
  await addDocument(caller, id, 'a.txt', 'يحق لكل موظف ثلاثون يوماً من الإجازة السنوية.')
  const query = `${'How many days of annual leave does every employee get in the year? '.repeat(115)}`.slice(0, 8_192)
  const { status, body } = await caller.rest('POST', `/v1/collections/${id}/search`, { query })
  expect([status, body.data?.length]).toEqual([200, 1])
})
