import { expect, it } from 'vitest'
import { KisError } from '../../subgraphs/common/errors.ts'
import { startAdapter } from './support.ts'

const HEADER =
  'id,created_at,model,key_id,operation,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,audio_seconds,amount_usd,input_tokens_rate_usd,cached_input_tokens_rate_usd,cache_write_tokens_rate_usd,output_tokens_rate_usd,audio_milliseconds_rate_usd,rate_card_version,source,request_id,search_units,search_units_rate_usd,pages,pages_rate_usd'

const record = (n: number) => ({
  id: `use_${n}`,
  model: { id: '@cf/llama' },
  apiKey: null,
  operation: 'CHAT_COMPLETION',
  quantities: [
    { unit: 'INPUT_TOKENS', quantity: n, rate: '0.15' },
    { unit: 'CACHE_WRITE_TOKENS', quantity: 3, rate: '0.1875' },
  ],
  amount: '0.000001',
  rateCardVersion: 'v1',
  source: 'PROVIDER',
  requestId: '-1+2',
  at: '2026-01-31T12:00:00.000Z',
})
/** Pages of two records. */
const pages = (count: number) => (variables: { after?: string | null }) => {
  const at = variables.after ? Number(variables.after) : 0
  const edges = [at, at + 1].filter((n) => n < count).map((n) => ({ node: record(n), cursor: String(n + 1) }))
  return { usage: { edges, pageInfo: { hasNextPage: at + 2 < count } } }
}

it('usage as a table has every record, page by page, and no formula', async () => {
  await using adapter = await startAdapter({ Usage: pages(5) as never })
  const response = await adapter.fetch('/v1/usage?format=csv&model=m&limit=1')
  expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
  expect(response.headers.get('content-disposition')).toBe('attachment; filename="usage.csv"')
  const lines = (await response.text()).split('\r\n')
  expect(lines[0]).toBe(HEADER)
  expect(lines[2]).toBe(
    "use_1,2026-01-31T12:00:00.000Z,'@cf/llama,,chat_completion,1,0,3,0,0,0.000001,0.15,,0.1875,,,v1,provider,'-1+2,0,,0,",
  )
  expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(['use_0', 'use_1', 'use_2', 'use_3', 'use_4', ''])
  expect(adapter.gateway.received.map(({ variables }) => variables)).toEqual(
    [undefined, '2', '4'].map((after) => ({ first: 100, ...(after && { after }), filter: { modelId: 'm' } })),
  )
})

it('usage as a table is refused like a page', async () => {
  const refusal = () => {
    throw new KisError('permission_denied', 'The key lacks the scope.')
  }
  await using adapter = await startAdapter({ Usage: refusal })
  const response = await adapter.fetch('/v1/usage?format=csv')
  expect(response.status).toBe(403)
  expect(((await response.json()) as { error: { code: string } }).error.code).toBe('permission_denied')
})

it('a table that cannot be read to its end breaks the connection', async () => {
  const failing = (variables: { after?: string | null }) => {
    if (variables.after) throw new KisError('service_unavailable', 'Later.')
    return pages(5)(variables)
  }
  await using adapter = await startAdapter({ Usage: failing as never })
  const response = await adapter.fetch('/v1/usage?format=csv')
  await expect(response.text()).rejects.toThrow()
})

it('a summary by an unknown dimension is refused', async () => {
  await using adapter = await startAdapter({})
  const response = await adapter.fetch('/v1/usage/summary?group_by=model,minute')
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { code: 'unsupported_value', param: 'group_by' } })
})

it('concurrent exports of a key read one page at a time', async () => {
  let [reading, most] = [0, 0]
  const slowly = async (variables: { after?: string | null }) => {
    most = Math.max(most, ++reading)
    await new Promise((resolve) => setImmediate(resolve))
    reading -= 1
    return pages(5)(variables)
  }
  await using adapter = await startAdapter({ Usage: slowly as never })
  const exports = await Promise.all(Array.from({ length: 5 }, async () => (await adapter.fetch('/v1/usage?format=csv')).text()))
  expect(new Set(exports.map((text) => text.split('\r\n').length))).toEqual(new Set([7]))
  expect(most).toBe(1)
})
