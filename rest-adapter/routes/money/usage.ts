import { Readable } from 'node:stream'
import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import { FairSemaphore } from '../../../subgraphs/common/process/fair-semaphore.ts'
import * as operations from '../../contract/billing.ts'
import { csvLine } from '../../http/csv.ts'
import { type ConnectionData, listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from '../../http/lists.ts'
import { type Call, type JsonObject, ok, type Route, type RouteResponse, route } from '../../http/route.ts'
import { lowerCase, toInstant, unixSeconds } from '../../http/values.ts'
import { SUMMARY, SUMMARY_NAMES, SUMMARY_OF_ORGANIZATION, toUsageSummary } from './usage-summary.ts'

const LIST =
  gatewayOperation(`query Usage($first: Int!, $after: String, $filter: UsageFilter) { usage(first: $first, after: $after, filter: $filter) {
  edges { cursor node { id model { id } apiKey { id } operation quantities { unit quantity rate } amount rateCardVersion source requestId at } } ${PAGE_INFO} } }`)

/** The gateway's limit of a page. */
const EXPORT_PAGE_RECORDS = 100
/** Pages that all exports of the process read at a time. A key gets one slot, however many exports it runs. */
const pages = new FairSemaphore(2, Number.POSITIVE_INFINITY)
const QUANTITIES = ['input_tokens', 'cached_input_tokens', 'cache_write_tokens', 'output_tokens', 'audio_milliseconds'] as const

interface UsageRecordData {
  readonly id: string
  readonly model: { readonly id: string } | null
  readonly apiKey: { readonly id: string } | null
  readonly operation: Selected<'UsageRecord', 'operation'>['operation']
  readonly quantities: readonly { readonly unit: string; readonly quantity: number; readonly rate: string }[]
  readonly amount: string
  readonly rateCardVersion: string
  readonly source: Selected<'UsageRecord', 'source'>['source']
  readonly requestId: string
  readonly at: string
}

const NAMES = {
  ...PAGE_NAMES,
  'filter.modelId': 'model',
  'filter.apiKeyId': 'key_id',
  'filter.requestId': 'request_id',
  'filter.since': 'since',
  'filter.until': 'until',
}

function toUsageRecord(data: UsageRecordData): operations.UsageRecord {
  const quantities = new Map(data.quantities.map(({ unit, quantity }) => [unit, quantity]))
  return {
    id: data.id,
    object: 'usage_record',
    created_at: unixSeconds(data.at),
    model: data.model?.id ?? null,
    key_id: data.apiKey?.id ?? null,
    operation: lowerCase(data.operation),
    input_tokens: quantities.get('INPUT_TOKENS') ?? 0,
    cached_input_tokens: quantities.get('CACHED_INPUT_TOKENS') ?? 0,
    cache_write_tokens: quantities.get('CACHE_WRITE_TOKENS') ?? 0,
    output_tokens: quantities.get('OUTPUT_TOKENS') ?? 0,
    audio_seconds: (quantities.get('AUDIO_MILLISECONDS') ?? 0) / 1000,
    search_units: quantities.get('SEARCH_UNITS') ?? 0,
    pages: quantities.get('PAGES') ?? 0,
    amount_usd: data.amount,
    rates: Object.fromEntries(data.quantities.map(({ unit, rate }) => [lowerCase(unit), rate])) as Readonly<Record<string, string>>,
    rate_card_version: data.rateCardVersion,
    source: lowerCase(data.source),
    request_id: data.requestId,
  }
}

type UsageRecordObject = ReturnType<typeof toUsageRecord>

/**
 * Converts the filters that records and summaries share. The gateway refuses a field that a filter does not have, even
 * if it is undefined.
 */
function toFilter({ model, key_id, since, until }: JsonObject): JsonObject {
  return {
    modelId: model,
    apiKeyId: key_id,
    since: since === undefined ? undefined : toInstant(since as number),
    until: until === undefined ? undefined : toInstant(until as number),
  }
}

async function fetchPage({ execute, query }: Call, page: JsonObject): Promise<ConnectionData<UsageRecordData>> {
  return (await execute(LIST, { ...page, filter: { ...toFilter(query), requestId: query.request_id } }, NAMES)).usage
}

async function fetchWithPermit(call: Call, page: JsonObject): Promise<ConnectionData<UsageRecordData>> {
  const release = await pages.acquire(call.context.caller, call.context.signal)
  try {
    return await fetchPage(call, { ...page, first: EXPORT_PAGE_RECORDS })
  } finally {
    release()
  }
}

/** Columns of the table, in order. */
const COLUMNS: readonly (readonly [name: string, of: (record: UsageRecordObject) => string | number | null])[] = [
  ['id', ({ id }) => id],
  ['created_at', ({ created_at }) => toInstant(created_at)],
  ['model', ({ model }) => model],
  ['key_id', ({ key_id }) => key_id],
  ['operation', ({ operation }) => operation],
  ['input_tokens', ({ input_tokens }) => input_tokens],
  ['cached_input_tokens', ({ cached_input_tokens }) => cached_input_tokens],
  ['cache_write_tokens', ({ cache_write_tokens }) => cache_write_tokens],
  ['output_tokens', ({ output_tokens }) => output_tokens],
  ['audio_seconds', ({ audio_seconds }) => audio_seconds],
  ['amount_usd', ({ amount_usd }) => amount_usd],
  ...QUANTITIES.map((unit) => [`${unit}_rate_usd`, ({ rates }: UsageRecordObject) => rates[unit] ?? null] as const),
  ['rate_card_version', ({ rate_card_version }) => rate_card_version],
  ['source', ({ source }) => source],
  ['request_id', ({ request_id }) => request_id],
  // New columns come last, so that the positions of the others do not change.
  ['search_units', ({ search_units }) => search_units],
  ['search_units_rate_usd', ({ rates }) => rates.search_units ?? null],
  ['pages', ({ pages }) => pages],
  ['pages_rate_usd', ({ rates }) => rates.pages ?? null],
]

/**
 * Exports every record after `after` as a table. The first page is read before the response starts, so that an error
 * can have its own status.
 */
async function exported(call: Call): Promise<RouteResponse> {
  await call.countRequest()
  const first = await fetchWithPermit(call, pageVariables(call.query))
  const headers = { 'content-type': 'text/csv; charset=utf-8; header=present', 'content-disposition': 'attachment; filename="usage.csv"' }
  return { status: 200, headers, body: Readable.from(call.method === 'HEAD' ? [] : streamLines(call, first), { objectMode: false }) }
}

/**
 * Reads one page at a time, once the client has taken the previous one. If a page fails, the connection ends without
 * completing the response, so that a part cannot pass for the whole.
 */
async function* streamLines(call: Call, first: ConnectionData<UsageRecordData>): AsyncGenerator<string> {
  yield csvLine(COLUMNS.map(([name]) => name))
  for (let page = first; ; ) {
    const records = page.edges.map(({ node }) => toUsageRecord(node))
    if (records.length > 0) yield records.map((record) => csvLine(COLUMNS.map(([, of]) => of(record)))).join('')
    if (!page.pageInfo.hasNextPage) return
    page = await fetchWithPermit(call, { after: page.edges.at(-1)!.cursor })
  }
}

function toSummaryVariables(query: JsonObject) {
  const groupBy = typeof query.group_by === 'string' ? query.group_by.toUpperCase().split(',') : []
  const operation = query.operation as string | undefined
  return { groupBy, filter: { ...toFilter(query), operation: operation?.toUpperCase() } }
}

export const usageRoutes: readonly Route[] = [
  route({
    operation: operations.listUsage,
    async handle(call) {
      if (call.query.format === 'csv') return exported(call)
      return ok(listByCursor(await fetchPage(call, pageVariables(call.query)), toUsageRecord))
    },
  }),
  route({
    operation: operations.summarizeUsage,
    async handle({ execute, query }) {
      const { usageSummary } = await execute(SUMMARY, toSummaryVariables(query), SUMMARY_NAMES)
      return ok(toUsageSummary(usageSummary))
    },
  }),
  route({
    operation: operations.summarizeUsageOfOrganization,
    async handle({ execute, params, query }) {
      const { organization } = await execute(SUMMARY_OF_ORGANIZATION, { id: params.id, ...toSummaryVariables(query) }, SUMMARY_NAMES)
      return ok(toUsageSummary(organization.usageSummary))
    },
  }),
]
