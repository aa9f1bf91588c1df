import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import type { UsageSummary, UsageSums } from '../../contract/billing.ts'
import { lowerCase, unixSeconds, unixSecondsOrNull } from '../../http/values.ts'

export const SUMMARY =
  gatewayOperation(`query UsageSummary($groupBy: [UsageDimension!]!, $filter: UsageSummaryFilter) { usageSummary(groupBy: $groupBy, filter: $filter) {
  since until total { ...Sums } groups { modelId apiKeyId day hour operation totals { ...Sums } } } }
  fragment Sums on UsageTotals { calls inputTokens cachedInputTokens cacheWriteTokens outputTokens audioSeconds searchUnits pages amount }`)
export const SUMMARY_OF_ORGANIZATION =
  gatewayOperation(`query UsageSummaryOfOrganization($id: ID!, $groupBy: [UsageDimension!]!, $filter: UsageSummaryFilter) {
  organization(id: $id) { usageSummary(groupBy: $groupBy, filter: $filter) {
  since until total { ...Sums } groups { modelId apiKeyId day hour operation totals { ...Sums } } } } }
  fragment Sums on UsageTotals { calls inputTokens cachedInputTokens cacheWriteTokens outputTokens audioSeconds searchUnits pages amount }`)

export const SUMMARY_NAMES = {
  groupBy: 'group_by',
  'filter.modelId': 'model',
  'filter.apiKeyId': 'key_id',
  'filter.since': 'since',
  'filter.until': 'until',
  'filter.operation': 'operation',
}

type Operation = Selected<'UsageRecord', 'operation'>['operation']

interface Sums {
  readonly calls: number
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly audioSeconds: number
  readonly searchUnits: number
  readonly pages: number
  readonly amount: string
}

interface UsageSummaryData {
  readonly since: string
  readonly until: string
  readonly total: Sums
  readonly groups: readonly {
    readonly modelId: string | null
    readonly apiKeyId: string | null
    readonly day: string | null
    readonly hour: string | null
    readonly operation: Operation | null
    readonly totals: Sums
  }[]
}

export function toUsageSummary({ since, until, total, groups }: UsageSummaryData): UsageSummary {
  return {
    object: 'usage_summary',
    since: unixSeconds(since),
    until: unixSeconds(until),
    total: toSums(total),
    data: groups.map(({ modelId, apiKeyId, day, hour, operation, totals }) => ({
      object: 'usage_group',
      model: modelId,
      key_id: apiKeyId,
      day: unixSecondsOrNull(day),
      hour: unixSecondsOrNull(hour),
      operation: lowerCase(operation),
      ...toSums(totals),
    })),
  }
}

function toSums({
  calls,
  inputTokens,
  cachedInputTokens,
  cacheWriteTokens,
  outputTokens,
  audioSeconds,
  searchUnits,
  pages,
  amount,
}: Sums): UsageSums {
  return {
    calls,
    input_tokens: inputTokens,
    cached_input_tokens: cachedInputTokens,
    cache_write_tokens: cacheWriteTokens,
    output_tokens: outputTokens,
    audio_seconds: audioSeconds,
    search_units: searchUnits,
    pages,
    amount_usd: amount,
  }
}
