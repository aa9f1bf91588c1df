/**
 * The closed set of error codes. Every failure that leaves the service, by REST, GraphQL or a socket, carries one of
 * these. `status` is the HTTP status by REST; `retry` says whether the same request can succeed later and becomes
 * `x-should-retry`.
 */
export const ERRORS = {
  invalid_api_key: { status: 401, type: 'invalid_request_error', retry: false },
  organization_suspended: { status: 403, type: 'permission_error', retry: false },
  permission_denied: { status: 403, type: 'permission_error', retry: false },
  residency_policy_violation: { status: 403, type: 'permission_error', retry: false },
  storage_quota_exceeded: { status: 403, type: 'permission_error', retry: false },
  insufficient_quota: { status: 429, type: 'insufficient_quota', retry: false },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error', retry: true },
  model_not_found: { status: 404, type: 'invalid_request_error', retry: false },
  not_found: { status: 404, type: 'invalid_request_error', retry: false },
  unknown_url: { status: 404, type: 'invalid_request_error', retry: false },
  not_offered: { status: 404, type: 'invalid_request_error', retry: false },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retry: false },
  invalid_request: { status: 400, type: 'invalid_request_error', retry: false },
  missing_required_parameter: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_type: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_value: { status: 400, type: 'invalid_request_error', retry: false },
  unsupported_value: { status: 400, type: 'invalid_request_error', retry: false },
  unsupported_parameter: { status: 400, type: 'invalid_request_error', retry: false },
  unknown_parameter: { status: 400, type: 'invalid_request_error', retry: false },
  integer_below_min_value: { status: 400, type: 'invalid_request_error', retry: false },
  integer_above_max_value: { status: 400, type: 'invalid_request_error', retry: false },
  string_above_max_length: { status: 400, type: 'invalid_request_error', retry: false },
  array_above_max_length: { status: 400, type: 'invalid_request_error', retry: false },
  context_length_exceeded: { status: 400, type: 'invalid_request_error', retry: false },
  content_policy_violation: { status: 400, type: 'invalid_request_error', retry: false },
  operation_too_complex: { status: 400, type: 'invalid_request_error', retry: false },
  graphql_parse_failed: { status: 400, type: 'invalid_request_error', retry: false },
  graphql_validation_failed: { status: 400, type: 'invalid_request_error', retry: false },
  invalid_variables: { status: 400, type: 'invalid_request_error', retry: false },
  request_timeout: { status: 408, type: 'invalid_request_error', retry: true },
  payload_too_large: { status: 413, type: 'invalid_request_error', retry: false },
  headers_too_large: { status: 431, type: 'invalid_request_error', retry: false },
  unsupported_file_type: { status: 415, type: 'invalid_request_error', retry: false },
  already_exists: { status: 409, type: 'invalid_request_error', retry: false },
  in_use: { status: 409, type: 'invalid_request_error', retry: false },
  idempotency_conflict: { status: 409, type: 'invalid_request_error', retry: false },
  output_schema_failed: { status: 422, type: 'invalid_request_error', retry: false },
  run_limit_exceeded: { status: 422, type: 'invalid_request_error', retry: false },
  engine_error: { status: 502, type: 'server_error', retry: true },
  engine_unavailable: { status: 503, type: 'server_error', retry: true },
  engine_timeout: { status: 504, type: 'server_error', retry: true },
  service_unavailable: { status: 503, type: 'server_error', retry: true },
  index_rebuilding: { status: 503, type: 'server_error', retry: true },
  part_unavailable: { status: 503, type: 'server_error', retry: true },
  internal: { status: 500, type: 'server_error', retry: true },
} as const satisfies Record<string, { status: number; type: string; retry: boolean }>

/** Codes that only GraphQL has, each with the code that REST sends instead. */
export const GRAPHQL_CODES: Partial<Readonly<Record<ErrorCode, ErrorCode>>> = {
  graphql_parse_failed: 'invalid_request',
  graphql_validation_failed: 'invalid_request',
  invalid_variables: 'invalid_request',
  part_unavailable: 'service_unavailable',
}

/** A code as REST writes it; GraphQL's `extensions.code` is the same in upper case. */
export type ErrorCode = keyof typeof ERRORS

/** The state of one per-minute limit of a key. */
export interface RateLimit {
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until the whole limit is available again, if nothing more is used. */
  readonly resetMs: number
}

/** The limits of a key. Null: the key has no such limit. */
export interface RateLimits {
  readonly requests: RateLimit | null
  readonly tokens: RateLimit | null
}

/** The complete `extensions` of a GraphQL error. */
export interface ErrorExtensions {
  /** The code in upper case: `INSUFFICIENT_QUOTA`. */
  readonly code: string
  readonly type: string
  /** Path of the invalid input in the caller's own request (`messages[0].content`), or null. */
  readonly param: string | null
  /** Milliseconds after which a repeat makes sense, or null when unknown or pointless. */
  readonly retryAfterMs: number | null
  readonly shouldRetry: boolean
  /** The vendor's own error code, if a model engine sent one that is not in this set. */
  readonly vendorCode: string | null
  /** Set on errors of inference, when the key has limits. */
  readonly rateLimits?: RateLimits
}

/**
 * Converts `INSUFFICIENT_QUOTA` to `insufficient_quota`. Returns undefined for a code outside the set (Apollo's
 * transport codes).
 */
export function toErrorCode(graphqlCode: unknown): ErrorCode | undefined {
  if (typeof graphqlCode !== 'string') return undefined
  const code = graphqlCode.toLowerCase()
  return code in ERRORS ? (code as ErrorCode) : undefined
}
