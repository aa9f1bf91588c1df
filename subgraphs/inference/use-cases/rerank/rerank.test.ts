import { describe, expect, it } from 'vitest'
import { KisError } from '../../../common/errors.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createRerank } from './create-rerank.ts'
import { quoteRerank } from './quote-rerank.ts'
import { describeRerankModel, rerankChunks } from './rerank-chunks.ts'

const REQUEST = { model: 'rank', query: 'tea', documents: ['a', 'bbb', 'cc', 'dddd'] }
/** USD 2 per thousand search units. */
const UNIT = 2_000_000n

describe('Reranking', () => {
  it('calls the engine in batches, orders by score, and charges the reported units', async () => {
    const { deps, billing, ranks } = parts()
    ranks.rerankings = [{ tokens: null, searchUnits: 1 }]
    const response = await createRerank(deps, createRequestContext(), REQUEST)
    expect(ranks.reranked).toEqual([['a', 'bbb', 'cc'], ['dddd']])
    expect(ranks.calls[0]).toMatchObject({ engineModel: 'vendor-rank', organizationId: 'org_a' })
    expect(response).toMatchObject({ modelId: 'rank', searchUnits: 2, cost: 2n * UNIT })
    expect(response.results).toEqual([
      { index: 3, score: 4 },
      { index: 1, score: 3 },
      { index: 2, score: 2 },
      { index: 0, score: 1 },
    ])
    expect(billing.writes).toEqual(['placeHold', 'settleHold'])
  })

  it('counts without a report: a unit for 100 documents, each 500 tokens of which count as one', async () => {
    const { deps, ranks } = parts({ balance: 10n ** 12n })
    ranks.maxBatch = 1_000
    const costOf = async (documents: readonly string[]) =>
      (await createRerank(deps, createRequestContext(), { ...REQUEST, documents })).cost
    expect(await costOf(Array(100).fill('word'))).toBe(UNIT)
    expect(await costOf(Array(101).fill('word'))).toBe(2n * UNIT)
    expect(await costOf(Array(100).fill('word '.repeat(600)))).toBe(2n * UNIT)
  })

  it('charges a model priced by token by the reported tokens, or by the count', async () => {
    const { deps, ranks } = parts()
    ranks.maxBatch = 1_000
    ranks.rerankings = [{ tokens: 1_000_000, searchUnits: null }]
    expect(await createRerank(deps, createRequestContext(), { ...REQUEST, model: 'rank-tokens' })).toMatchObject({
      tokens: 1_000_000,
      searchUnits: 0,
    })
    ranks.rerankings = [{ tokens: null, searchUnits: null }]
    // Each of 4 documents of one token is read with the query of one and 4 special tokens, at 50 nano-USD per token.
    expect(await createRerank(deps, createRequestContext(), { ...REQUEST, model: 'rank-tokens' })).toMatchObject({
      tokens: 24,
      cost: 1_200n,
    })
  })

  it('returns the best `topN`', async () => {
    const { deps } = parts()
    const { results } = await createRerank(deps, createRequestContext(), { ...REQUEST, topN: 2 })
    expect(results.map(({ index }) => index)).toEqual([3, 1])
  })

  it('calls the fallbacks when the engine fails, and charges nothing for the failed call', async () => {
    const { deps, billing, ranks } = parts()
    ranks.maxBatch = 1_000
    ranks.rerankings = [new KisError('engine_error', 'down'), { tokens: null, searchUnits: 1 }]
    expect(await createRerank(deps, createRequestContext(), { ...REQUEST, model: 'rank-tokens' })).toMatchObject({
      modelId: 'rank',
      cost: UNIT,
    })
    expect(billing.writes.filter((write) => write === 'voidHold')).toHaveLength(1)
  })

  it.each([
    ['rank', { tokens: 5, searchUnits: 0 }, { searchUnits: 2, cost: 2n * UNIT }],
    // Each of 4 documents of one token is read with the query of one and 4 special tokens, at 50 nano-USD per token.
    ['rank-tokens', { tokens: 0, searchUnits: null }, { tokens: 24, cost: 1_200n }],
  ])('counts where the engine of %s reports zero', async (model, report, expected) => {
    const { deps, billing, ranks } = parts()
    ranks.rerankings = [report]
    expect(await createRerank(deps, createRequestContext(), { ...REQUEST, model })).toMatchObject(expected)
    expect(billing.only.used?.source).toBe('counted')
  })

  it('charges what was sent when a limit or deadline of the service ends the call', async () => {
    const late = new StoppedByLimit('engine_timeout', 'late')
    const { deps, billing, ranks } = parts()
    for (const rerankings of [[late], [{ tokens: null, searchUnits: 1 }, late]]) {
      ranks.rerankings = rerankings
      await expect(createRerank(deps, createRequestContext(), REQUEST)).rejects.toBe(late)
    }
    // The first of two batches, then both.
    expect([...billing.holds.values()]).toMatchObject([
      { charged: UNIT, used: { source: 'counted' } },
      { charged: 2n * UNIT, used: { source: 'counted' } },
    ])
  })

  it('charges nothing for a failure', async () => {
    const { deps, billing, ranks } = parts()
    ranks.rerankings = [new KisError('engine_error', 'down')]
    await expect(createRerank(deps, createRequestContext(), REQUEST)).rejects.toMatchObject({ code: 'engine_error' })
    expect(billing.balance).toBe(1_000_000_000n)
  })

  it.each<[string, object, string, string]>([
    ['no model', { model: '' }, 'missing_required_parameter', 'model'],
    ['a chat model', { model: 'chat' }, 'model_not_found', 'model'],
    ['a blank query', { query: ' ' }, 'invalid_request', 'query'],
    ['a long query', { query: 'a'.repeat(8_193) }, 'string_above_max_length', 'query'],
    ['no documents', { documents: [] }, 'invalid_request', 'documents'],
    ['1,001 documents', { documents: Array(1_001).fill('a') }, 'array_above_max_length', 'documents'],
    ['an empty document', { documents: ['a', ''] }, 'invalid_request', 'documents[1]'],
    ['a document that is not text', { documents: [1] }, 'invalid_type', 'documents[0]'],
    ['a long document', { documents: ['a'.repeat(100_001)] }, 'string_above_max_length', 'documents[0]'],
    ['documents that are too long in total', { documents: Array(21).fill('a'.repeat(100_000)) }, 'string_above_max_length', 'documents'],
    ['topN of zero', { topN: 0 }, 'integer_below_min_value', 'topN'],
  ])('refuses %s', async (_name, fields, code, param) => {
    const { deps, ranks } = parts()
    await expect(createRerank(deps, createRequestContext(), { ...REQUEST, ...fields })).rejects.toMatchObject({ code, param })
    expect(ranks.reranked).toEqual([])
  })

  it('applies allowlist and residency', async () => {
    const { deps, ranks } = parts()
    const of = (more: object) => createRequestContext({ ...somebody, ...more })
    const other = createRerank(deps, of({ modelAllowlist: ['chat'] }), REQUEST)
    await expect(other).rejects.toMatchObject({ code: 'model_not_found' })
    const local = of({ residencyPolicy: 'local_only' })
    for (const call of [
      () => createRerank(deps, local, REQUEST),
      () => rerankChunks(deps, local, { modelId: 'rank', query: 'tea', texts: ['a'] }),
      async () => describeRerankModel(deps, local, 'rank'),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'residency_policy_violation' })
    expect(ranks.reranked).toEqual([])
  })

  it('charges the chunks of a step once, however often it is repeated', async () => {
    const { deps, ranks } = parts()
    ranks.rerankings = [{ tokens: null, searchUnits: 1 }]
    const input = { modelId: 'rank', query: 'tea', texts: ['a', 'bbb'], step: 'run_1/steps/2' }
    const first = await rerankChunks(deps, createRequestContext(), input)
    expect(await rerankChunks(deps, createRequestContext(), input)).toMatchObject({ results: first.results, cost: UNIT })
    expect(ranks.reranked).toHaveLength(1)
  })

  it('charges the count where the total of all reports exceeds an `Int`', async () => {
    const { deps, billing, ranks } = parts()
    ranks.maxBatch = 1
    ranks.rerankings = [{ tokens: null, searchUnits: 2 ** 30 }]
    const { searchUnits } = await createRerank(deps, createRequestContext(), { ...REQUEST, documents: ['a', 'b', 'c'] })
    expect([searchUnits, billing.only.used]).toMatchObject([3, { source: 'counted' }])
  })

  it('charges the chunks of a step whose caller disconnects', async () => {
    const { deps, billing, ranks } = parts()
    const leaving = new AbortController()
    const { rerank } = ranks.rerank
    ranks.rerank.rerank = async (call, query, documents, signal) => {
      leaving.abort()
      signal.throwIfAborted()
      return rerank(call, query, documents, signal)
    }
    const input = { modelId: 'rank', query: 'tea', texts: ['a', 'bbb'], step: 'run_1/steps/2' }
    await rerankChunks(deps, createRequestContext(somebody, leaving.signal), input)
    expect(billing.only.charged).toBe(UNIT)
  })
})

describe('Quote of a reranking', () => {
  it('equals the hold of the call, and calls no engine', async () => {
    const { deps, billing, ranks } = parts()
    const [quoted] = await quoteRerank(deps, createRequestContext(), REQUEST)
    expect([billing.writes, ranks.calls]).toEqual([[], []])
    await createRerank(deps, createRequestContext(), REQUEST)
    expect(quoted).toMatchObject({
      model: { id: 'rank' },
      searchUnits: 2,
      heldSearchUnits: 2,
      amount: billing.only.amount,
      isCovered: true,
    })
  })

  it('is no error when the wallet cannot pay', async () => {
    const { deps } = parts({ balance: 2n * UNIT - 1n })
    expect(await quoteRerank(deps, createRequestContext(), REQUEST)).toMatchObject([{ amount: 2n * UNIT, isCovered: false }])
  })

  it.each([
    { name: 'without the scope', request: REQUEST, caller: { ...somebody, scopes: [] }, code: 'permission_denied' },
    { name: 'for a model outside the allowlist', request: REQUEST, caller: { ...somebody, modelAllowlist: [] }, code: 'model_not_found' },
    { name: 'for a chat model', request: { ...REQUEST, model: 'chat' }, caller: somebody, code: 'model_not_found' },
    { name: 'without documents', request: { ...REQUEST, documents: [] }, caller: somebody, code: 'invalid_request' },
    {
      name: 'outside the residency policy',
      request: REQUEST,
      caller: { ...somebody, residencyPolicy: 'local_only' as const },
      code: 'residency_policy_violation',
    },
  ])('is refused like the call: $name', async ({ request, caller, code }) => {
    const { deps } = parts()
    await expect(createRerank(deps, createRequestContext(caller), request)).rejects.toMatchObject({ code })
    await expect(quoteRerank(deps, createRequestContext(caller), request)).rejects.toMatchObject({ code })
  })
})
