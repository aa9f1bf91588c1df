import type { Static } from '@sinclair/typebox'
import {
  array,
  constant,
  define,
  described,
  extend,
  integer,
  nullable,
  number,
  object,
  oneOf,
  operation,
  optional,
  string,
} from './build.ts'
import { After, Limit, listOf, OrganizationId, UnixSeconds } from './shared.ts'

export const Wallet = define('Wallet').object("The organization's account in US dollars.", {
  id: string('The id of the organization.'),
  object: constant('wallet'),
  created_at: UnixSeconds,
  balance_usd: string('The credit that is not charged yet: the sum of all entries.'),
  held_usd: string('The amount held for calls in progress.'),
  available_usd: string('The balance minus the held amount. Never below zero.'),
})

export const LedgerEntry = define('LedgerEntry').object('A movement of money. An entry never changes; another entry corrects it.', {
  id: string('The id: `ent_…`.'),
  object: constant('ledger_entry'),
  created_at: UnixSeconds,
  kind: oneOf(['top_up', 'adjustment', 'hold', 'settle', 'void', 'expire'], 'Why the money moved.'),
  amount_usd: string('The change of the balance. Negative for a charge.'),
  held_usd: string('The change of the held amount.'),
  balance_usd: string('The balance after this entry.'),
  reference: string("The operator's reference, or the id of the hold."),
})
export type LedgerEntry = Static<typeof LedgerEntry>

export const LedgerEntryList = define('LedgerEntryList').as(listOf(LedgerEntry))

export const UsageSums = define('UsageSums').object({
  calls: integer('The number of usage records.'),
  input_tokens: integer('Input tokens that the engine neither read from nor wrote to its cache.'),
  cached_input_tokens: integer('Input tokens that the engine read from its cache.'),
  cache_write_tokens: integer('Input tokens that the engine wrote to its cache.'),
  output_tokens: integer('Output tokens, including reasoning.'),
  audio_seconds: number('Seconds of audio, to the millisecond.'),
  search_units: integer('Search units of rerankers.'),
  pages: integer('Pages that OCR has read.'),
  amount_usd: string('The amount charged, in US dollars.'),
})
export type UsageSums = Static<typeof UsageSums>

export const UsageSummary = define('UsageSummary').object('Sums of usage records.', {
  object: constant('usage_summary'),
  since: UnixSeconds,
  until: UnixSeconds,
  total: described(UsageSums, 'The sums over the whole summary.'),
  data: array(
    extend([UsageSums], {
      object: constant('usage_group'),
      model: nullable(string('The id of the model. Null if the sums are not grouped by model.')),
      key_id: nullable(string('The id of the key. Null if the sums are not grouped by key.')),
      day: nullable(integer('The day, as its midnight in UTC, in Unix seconds. Null if the sums are not grouped by day.')),
      hour: nullable(integer('The beginning of the hour, in Unix seconds. Null if the sums are not grouped by hour.')),
      operation: nullable(
        oneOf(
          ['chat_completion', 'embedding', 'transcription', 'rerank', 'ocr'],
          'The kind of the calls. Null if the sums are not grouped by operation.',
        ),
      ),
    }),
    'The groups: by day and hour, oldest first, then by amount, highest first.',
  ),
})
export type UsageSummary = Static<typeof UsageSummary>

export const UsageRecord = define('UsageRecord').object(
  'The charge for one call, at the prices of that time. No token counts in two fields.',
  {
    id: string('The id: `use_…`.'),
    object: constant('usage_record'),
    created_at: UnixSeconds,
    model: nullable(string('The id of the model. Null if the catalog no longer has it.')),
    key_id: nullable(string('The id of the key. Null if the key no longer exists.')),
    operation: oneOf(['chat_completion', 'embedding', 'transcription', 'rerank', 'ocr'], 'The kind of the call.'),
    input_tokens: integer('Input tokens that the engine neither read from nor wrote to its cache.'),
    cached_input_tokens: integer('Input tokens that the engine read from its cache.'),
    cache_write_tokens: integer('Input tokens that the engine wrote to its cache.'),
    output_tokens: integer('Output tokens, including reasoning.'),
    audio_seconds: number('Seconds of audio, to the millisecond.'),
    search_units: integer('Search units of a reranker: usually a query with up to 100 documents.'),
    pages: integer('Pages of a document that OCR has read, and those that a limit of time or memory has ended.'),
    amount_usd: string(
      'The amount charged in US dollars: the sum of quantity × rate / 1,000,000, rounded up to a nano-USD, and at most the amount held.',
    ),
    rates: object('The prices in the price tier that the call reached: US dollars per million units. Only units that occurred.', {
      input_tokens: optional(string('The price of a million input tokens.')),
      cached_input_tokens: optional(string('The price of a million input tokens read from the cache.')),
      cache_write_tokens: optional(string('The price of a million input tokens written to the cache.')),
      output_tokens: optional(string('The price of a million output tokens.')),
      audio_milliseconds: optional(string('The price of a million milliseconds of audio.')),
      search_units: optional(string('The price of a million search units.')),
      pages: optional(string('The price of a million pages.')),
    }),
    rate_card_version: string("The version of the model's prices. It changes whenever one of them does."),
    source: oneOf(
      ['provider', 'counted', 'estimated'],
      'Where the quantities come from. `provider`: the engine reported them. `counted`: the service counted them, because the ' +
        'engine reported none, or zero for what was not empty, or the call ended before its response was complete. `estimated`: the ' +
        'service did not see the end of the call and charged its last checkpoint, or took the length of an audio file from its ' +
        'size.',
    ),
    request_id: string('The `x-request-id` of the call. For the embedding of a document, the id of the document.'),
  },
)
export type UsageRecord = Static<typeof UsageRecord>

export const UsageRecordList = define('UsageRecordList').as(listOf(UsageRecord))

export const listUsage = operation('listUsage', 'GET', '/v1/usage', {
  tag: 'Account',
  summary: 'List usage records',
  description: 'Lists the usage records of your organization, newest first. Requires the scope `billing:read`.',
  query: {
    limit: Limit,
    after: After,
    model: optional(string('Only calls of this model.', { minLength: 1, maxLength: 200 })),
    key_id: optional(string('Only calls with this key.', { minLength: 1, maxLength: 200 })),
    request_id: optional(
      string('Only calls of this request: its `x-request-id`. Not together with `model` or `key_id`.', { minLength: 1, maxLength: 200 }),
    ),
    since: optional(described(UnixSeconds, 'Only calls charged at or after this time, in Unix seconds.')),
    until: optional(described(UnixSeconds, 'Only calls charged before this time, in Unix seconds.')),
    format: optional(
      oneOf(
        ['json', 'csv'],
        'With `csv`, the response is a table of every record after `after` (RFC 4180, with a header line). `limit` then has no effect.',
        { default: 'json' },
      ),
    ),
  },
  responses: {
    200: {
      description:
        'One page of the list, or the table as a stream. Text that a spreadsheet would read as a formula begins with an ' +
        'apostrophe. If the service cannot read the table to its end, the response breaks off.',
      json: UsageRecordList,
      content: { 'text/csv': string() },
    },
  },
})

const SUMMARY_QUERY = {
  group_by: optional(
    string(
      'What to group the sums by: `model`, `key`, `day`, `hour` and `operation`, separated by commas. Without it, there is one group.',
      {
        pattern: '^(model|key|day|hour|operation)(,(model|key|day|hour|operation)){0,4}$',
        valueDescription: 'one or more of `model`, `key`, `day`, `hour` and `operation`, separated by commas',
      },
    ),
  ),
  model: optional(string('Only calls of this model.', { minLength: 1, maxLength: 200 })),
  key_id: optional(string('Only calls with this key.', { minLength: 1, maxLength: 200 })),
  operation: optional(oneOf(['chat_completion', 'embedding', 'transcription', 'rerank', 'ocr'], 'Only calls of this kind.')),
  since: optional(
    described(
      UnixSeconds,
      'The first day, as its midnight in UTC, in Unix seconds. Default: 30 days before `until`. With the group `hour`: the ' +
        'beginning of the first hour. Default: 24 hours before `until`.',
    ),
  ),
  until: optional(
    described(
      UnixSeconds,
      'The day after the last day, as its midnight in UTC, in Unix seconds. Default: the end of today. With the group `hour`: ' +
        'the end of the last hour. Default: the end of this hour.',
    ),
  ),
}

export const summarizeUsage = operation('summarizeUsage', 'GET', '/v1/usage/summary', {
  tag: 'Account',
  summary: 'Sum usage by model, key, day, hour and operation',
  description:
    'Sums the usage of your organization over whole days in UTC or, with the group `hour`, over whole hours. The sums are ' +
    'exact and include every call that was charged before the request. At most 366 days, or 168 hours, and 1,000 groups. ' +
    'Requires the scope `billing:read`.',
  query: {
    ...SUMMARY_QUERY,
    until: described(SUMMARY_QUERY.until, undefined, { minimum: 3600 }),
  },
  responses: { 200: { description: 'The sums.', json: UsageSummary } },
})

export const getWallet = operation('getWallet', 'GET', '/v1/wallet', {
  tag: 'Account',
  summary: "Get your organization's wallet",
  description: 'Gets the wallet of your organization. Requires the scope `billing:read`.',
  responses: { 200: { description: 'The wallet.', json: Wallet } },
})

export const listLedgerEntries = operation('listLedgerEntries', 'GET', '/v1/wallet/entries', {
  tag: 'Account',
  summary: "List the wallet's ledger entries",
  description: 'Lists the ledger entries of the wallet, newest first. Requires the scope `billing:read`.',
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: LedgerEntryList } },
})

export const getWalletOfOrganization = operation('getWalletOfOrganization', 'GET', '/v1/organizations/{id}/wallet', {
  tag: 'Operator',
  summary: "Get an organization's wallet",
  description: 'Gets the wallet of an organization. Requires the scope `operator`, or `billing:read` for your own.',
  params: { id: OrganizationId },
  responses: { 200: { description: 'The wallet.', json: Wallet } },
})

export const listLedgerEntriesOfOrganization = operation(
  'listLedgerEntriesOfOrganization',
  'GET',
  '/v1/organizations/{id}/wallet/entries',
  {
    tag: 'Operator',
    summary: "List an organization's ledger entries",
    description:
      'Lists the ledger entries of an organization, newest first. Requires the scope `operator`, or `billing:read` for your own.',
    params: { id: OrganizationId },
    query: { limit: Limit, after: After },
    responses: { 200: { description: 'One page of the list.', json: LedgerEntryList } },
  },
)

export const summarizeUsageOfOrganization = operation('summarizeUsageOfOrganization', 'GET', '/v1/organizations/{id}/usage/summary', {
  tag: 'Operator',
  summary: "Sum an organization's usage",
  description:
    'Sums the usage of an organization, as `GET /v1/usage/summary` does. Requires the scope `operator`, or `billing:read` for your own.',
  params: { id: OrganizationId },
  query: {
    ...SUMMARY_QUERY,
  },
  responses: { 200: { description: 'The sums.', json: UsageSummary } },
})
