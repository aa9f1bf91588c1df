import { type ConnectionData, listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from './lists.ts'
import { ok, type Route } from './route.ts'
import { instantOf, unixSeconds } from './values.ts'

const LIST = `query Usage($first: Int!, $after: String, $filter: UsageFilter) { usage(first: $first, after: $after, filter: $filter) {
  edges { cursor node { id model { id } apiKey { id } operation quantities { unit quantity rate } amount rateCardVersion source requestId at } } ${PAGE_INFO} } }`

interface UsageRecordData {
  readonly id: string
  readonly model: { readonly id: string } | null
  readonly apiKey: { readonly id: string } | null
  readonly operation: string
  readonly quantities: readonly { readonly unit: string; readonly quantity: number; readonly rate: string }[]
  readonly amount: string
  readonly rateCardVersion: string
  readonly source: string
  readonly requestId: string
  readonly at: string
}

const NAMES = { ...PAGE_NAMES, 'filter.modelId': 'model', 'filter.apiKeyId': 'key_id', 'filter.since': 'since', 'filter.until': 'until' }

function toUsageRecord(data: UsageRecordData) {
  const quantities = new Map(data.quantities.map(({ unit, quantity }) => [unit, quantity]))
  return {
    id: data.id,
    object: 'usage_record',
    created_at: unixSeconds(data.at),
    model: data.model?.id ?? null,
    key_id: data.apiKey?.id ?? null,
    operation: data.operation.toLowerCase(),
    input_tokens: quantities.get('INPUT_TOKENS') ?? 0,
    cached_input_tokens: quantities.get('CACHED_INPUT_TOKENS') ?? 0,
    cache_write_tokens: quantities.get('CACHE_WRITE_TOKENS') ?? 0,
    output_tokens: quantities.get('OUTPUT_TOKENS') ?? 0,
    audio_seconds: (quantities.get('AUDIO_MILLISECONDS') ?? 0) / 1000,
    amount_usd: data.amount,
    rates: Object.fromEntries(data.quantities.map(({ unit, rate }) => [unit.toLowerCase(), rate])),
    rate_card_version: data.rateCardVersion,
    source: data.source.toLowerCase(),
    request_id: data.requestId,
  }
}

export const usageRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/usage',
    async handle({ ask, query }) {
      const filter = {
        modelId: query.model,
        apiKeyId: query.key_id,
        since: query.since === undefined ? undefined : instantOf(query.since as number),
        until: query.until === undefined ? undefined : instantOf(query.until as number),
      }
      const data = await ask<{ usage: ConnectionData<UsageRecordData> }>(LIST, { ...pageVariables(query), filter }, NAMES)
      return ok(listByCursor(data.usage, toUsageRecord))
    },
  },
]
