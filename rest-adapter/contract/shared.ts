import type { TSchema } from '@sinclair/typebox'
import { array, boolean, constant, define, described, extend, integer, nullable, oneOf, optional, string } from './build.ts'

export const ErrorDetail = define('ErrorDetail').object('What went wrong.', {
  message: string('The error message, for people.'),
  type: oneOf(
    ['invalid_request_error', 'permission_error', 'insufficient_quota', 'rate_limit_error', 'server_error'],
    'The kind of the error.',
  ),
  param: nullable(string('The path of the wrong input, such as `messages[0].content`. Null if the error concerns no input.')),
  code: oneOf(
    [
      'invalid_api_key',
      'organization_suspended',
      'permission_denied',
      'residency_policy_violation',
      'storage_quota_exceeded',
      'insufficient_quota',
      'rate_limit_exceeded',
      'model_not_found',
      'not_found',
      'unknown_url',
      'not_offered',
      'method_not_allowed',
      'invalid_request',
      'missing_required_parameter',
      'invalid_type',
      'invalid_value',
      'unsupported_value',
      'unsupported_parameter',
      'unknown_parameter',
      'integer_below_min_value',
      'integer_above_max_value',
      'string_above_max_length',
      'array_above_max_length',
      'context_length_exceeded',
      'content_policy_violation',
      'operation_too_complex',
      'request_timeout',
      'payload_too_large',
      'headers_too_large',
      'unsupported_file_type',
      'already_exists',
      'in_use',
      'idempotency_conflict',
      'output_schema_failed',
      'run_limit_exceeded',
      'engine_error',
      'engine_unavailable',
      'engine_timeout',
      'service_unavailable',
      'index_rebuilding',
      'internal',
    ],
    'The error code, for programs. The set is closed.',
  ),
  vendor_code: optional(string("The engine's own error code, if it returned one outside this set.")),
})

export const ErrorBody = define('ErrorBody').object({ error: ErrorDetail })

export const UnixSeconds = define('UnixSeconds').as(
  integer('A time in Unix seconds, up to the end of the year 9999.', { minimum: 0, maximum: 253_402_300_799 }),
)

export const Usd = define('Usd').as(
  string('An amount of US dollars as a decimal string with at most 9 decimal places, such as "12.50".', {
    pattern: '^-?\\d{1,12}(\\.\\d{1,9})?$',
  }),
)

export const Deletion = define('Deletion').object({
  id: string('The id of the deleted object.'),
  object: string('The type of the deleted object.'),
  deleted: constant(true, 'Always true.'),
})

export const Progress = define('Progress').object('The progress of something.', {
  done: integer('The number that is done.'),
  total: integer('The total number.'),
})

export const Failure = define('Failure').object('Why something failed.', {
  code: string('The error code, for programs.'),
  message: string('The error message, for people.'),
})

export const List = define('List').object('What every page of a list has beside its items.', {
  object: constant('list'),
  has_more: boolean('Whether there is a next page. To get it, set `after` to `last_id`.'),
  first_id: nullable(string('The id of the first item. Null on an empty page.')),
  last_id: nullable(
    string(
      'The value of `after` for the next page: the id of the last item, or a cursor in lists of usage and ledger entries. Null ' +
        'on an empty page.',
    ),
  ),
})

/** The pages of a list whose items these are. */
export const listOf = <S extends TSchema>(item: S) => extend([List], { data: array(item, 'The items of the page.') })

const RateLimitLimit = integer('How many the key may use in a minute. Absent if there is no such limit.')
const RateLimitRemaining = integer(
  'How many the key may use now. If the service has several processes, each reports what it has seen itself.',
)
const RateLimitReset = string('The time until the whole limit is available again, if you use no more: `20ms`, `1.5s`, `6m0s`.')
/** The headers of the chat protocol with the rate limits of the key. */
export const RateLimitHeaders = {
  'x-ratelimit-limit-requests': RateLimitLimit,
  'x-ratelimit-remaining-requests': RateLimitRemaining,
  'x-ratelimit-reset-requests': RateLimitReset,
  'x-ratelimit-limit-tokens': RateLimitLimit,
  'x-ratelimit-remaining-tokens': RateLimitRemaining,
  'x-ratelimit-reset-tokens': RateLimitReset,
}
export const StreamId = string('The id of the stream, by which you can follow it again.')
export const IdempotentReplayed = oneOf(['true'], '`true` if this is the response to an earlier request with the same `Idempotency-Key`.')

export const Limit = optional(integer('The most items on the page.', { minimum: 1, maximum: 100, default: 20 }))
export const AfterPlace = optional(
  string('The `last_id` of the page before, or the id of its last item if the list is sorted by time.', { minLength: 1, maxLength: 4096 }),
)
export const Order = optional(
  oneOf(['asc', 'desc'], 'The order: `desc` is newest first, `asc` oldest first; by name from the last letter on, and from the first.', {
    default: 'desc',
  }),
)
export const SortBy = optional(oneOf(['created_at', 'name'], 'What the list is sorted by.', { default: 'created_at' }))
export const NameContains = optional(string('Only those whose name contains this, in any case.', { minLength: 1, maxLength: 255 }))
export const Since = optional(described(UnixSeconds, 'Only those that were created, or began, at or after this time, in Unix seconds.'))
export const Until = optional(described(UnixSeconds, 'Only those that were created, or began, before this time, in Unix seconds.'))
export const After = optional(string('The `last_id` of the page before, or the id of its last item.', { minLength: 1, maxLength: 200 }))
export const IdempotencyKey = optional(
  string(
    [
      'Makes repeats safe. For 24 hours, the same request with the same key returns the outcome of the first request,',
      'with the header `idempotent-replayed: true`, and you pay once. Keys belong to the API key that sends them. A',
      'call with a key continues if you disconnect.',
      '',
      'While the first request is in progress, a repeat fails with 409 `idempotency_conflict` and `retry-after`. A',
      'request with another body fails with 409 `idempotency_conflict` and `x-should-retry: false`.',
      '',
      'If the service stopped during the first call, a repeat runs the call again, and the first call costs nothing.',
      'But if part of its response was delivered and charged, the repeat fails with 409, the amount, and `x-should-retry:',
      'false`.',
    ].join('\n'),
    { minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  ),
)
export const Resumable = optional(
  oneOf(
    ['true'],
    '`true`: each event of a stream has an `id:` line with its position, for `Last-Event-ID`. Without this header a stream has ' +
      'none, as the chat protocol has none.',
  ),
)
export const RunStatus = optional(oneOf(['running', 'completed', 'failed', 'cancelled'], 'Only runs with this status.'))
export const OrganizationId = string('The id of the organization, `org_…`.')
/** Where to continue a stream of events. */
export const EventCursor = optional(
  string(
    'The `cursor` of the last event that you received, so that you miss and repeat nothing. Without it, the events begin at ' +
      'the start of the run. You can send the header `Last-Event-ID` instead.',
    { maxLength: 20 },
  ),
)

/** The parameters of every list. */
export const Page = { limit: Limit, after: After, order: Order }
