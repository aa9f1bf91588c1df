import { ERRORS, type ErrorCode, type ErrorExtensions, type RateLimits, toErrorCode } from '../../schema/errors.ts'

/** Optional parts of an error. */
export interface ErrorDetail {
  /** Path of the wrong input in the caller's own request. */
  readonly param?: string | null
  readonly retryAfterMs?: number | null
  readonly vendorCode?: string | null
  readonly cause?: unknown
  /** Overrides whether a repetition can help. Default: the value of the code in `ERRORS`. */
  readonly shouldRetry?: boolean
  readonly rateLimits?: RateLimits | null
}

/**
 * An expected failure, with a code of `schema/errors.ts`. graphql-js copies `extensions` of a thrown error into its
 * result, so a resolver only needs to throw. Any other thrown error is a defect, and leaves the service as a bare
 * `internal`.
 */
export class KisError extends Error {
  readonly code: ErrorCode
  readonly param: string | null
  readonly retryAfterMs: number | null
  readonly vendorCode: string | null
  readonly shouldRetry: boolean
  /** What remains of the limits of the caller's key. Set at the end of a limited call, when it is known. */
  rateLimits: RateLimits | null

  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.name = 'KisError'
    this.code = code
    this.param = detail.param ?? null
    this.retryAfterMs = detail.retryAfterMs ?? null
    this.vendorCode = detail.vendorCode ?? null
    this.shouldRetry = detail.shouldRetry ?? ERRORS[code].retry
    this.rateLimits = detail.rateLimits ?? null
  }

  get extensions(): ErrorExtensions {
    const { code, param, retryAfterMs, shouldRetry, vendorCode, rateLimits } = this
    return {
      code: code.toUpperCase(),
      type: ERRORS[code].type,
      param,
      retryAfterMs,
      shouldRetry,
      vendorCode,
      ...(rateLimits && { rateLimits }),
    }
  }

  /** Restores the error that another process sent over GraphQL. An error with an unknown code becomes `internal`. */
  static fromGraphQL(error: { readonly message: string; readonly extensions?: Readonly<Record<string, unknown>> | undefined }): KisError {
    const extensions = (error.extensions ?? {}) as Partial<Record<keyof (StaleExtensions & StoppedExtensions), unknown>>
    const code = toErrorCode(extensions.code)
    if (extensions.isStalePrincipal === true) return new StalePrincipal()
    if (!code) return new KisError('internal', 'The service failed to process the request.', { cause: error })
    const restored = new KisError(code, error.message, {
      param: typeof extensions.param === 'string' ? extensions.param : null,
      retryAfterMs: typeof extensions.retryAfterMs === 'number' ? extensions.retryAfterMs : null,
      vendorCode: typeof extensions.vendorCode === 'string' ? extensions.vendorCode : null,
      rateLimits: isObject(extensions.rateLimits) ? (extensions.rateLimits as RateLimits) : null,
      ...(typeof extensions.shouldRetry === 'boolean' && { shouldRetry: extensions.shouldRetry }),
    })
    return typeof extensions.tokens === 'number' ? new EmbeddingStopped(restored, extensions.tokens) : restored
  }
}

/** Missing, malformed, unknown, revoked and expired keys have the same text, so that nobody learns which keys exist. */
export class InvalidApiKey extends KisError {
  constructor() {
    super('invalid_api_key', 'Incorrect API key provided. Send a valid key as `Authorization: Bearer <API_KEY>`.')
  }
}

/** Every reason has the same text, so that nobody learns which sessions exist. */
export class SessionEnded extends KisError {
  constructor() {
    super('invalid_api_key', 'You are not signed in, or your session has ended. Sign in again.')
  }
}

/** The caller's key lacks a scope. */
export class PermissionDenied extends KisError {
  constructor(scope: string) {
    super('permission_denied', `This API key lacks the scope \`${scope}\`.`)
  }
}

/** No new work starts for the organization until the operator resumes it. */
export class OrganizationSuspended extends KisError {
  constructor() {
    super('organization_suspended', 'This organization is suspended. Ask the operator of the service to resume it.')
  }
}

/** The object does not exist, or belongs to another organization. The error does not say which. */
export class NotFound extends KisError {
  constructor(kind: string, id: string, param: string | null = null) {
    super('not_found', `No ${kind} with id \`${id}\` in this organization.`, { param })
  }
}

/** A model that does not exist, or is not on the key's allowlist. The error does not say which. */
export class ModelNotFound extends KisError {
  constructor(id: string, param = 'model') {
    super('model_not_found', `The model \`${id}\` does not exist or you do not have access to it.`, { param })
  }
}

/** A part of the service cannot serve at the moment; a repetition may succeed. */
export class ServiceUnavailable extends KisError {
  /** `why`: the part of the reason that the caller may know, such as `the disk is full`. */
  constructor(what: string, { why, ...detail }: ErrorDetail & { readonly why?: string } = {}) {
    super('service_unavailable', `${what} is unavailable at the moment${why ? `: ${why}` : ''}.`, { retryAfterMs: 1_000, ...detail })
  }
}

/** The service works, but has no capacity for this request at the moment. */
export class TooBusy extends KisError {
  /** `why`: a sentence that names what has reached its limit. */
  constructor(why: string, retryAfterMs = 1_000) {
    super('service_unavailable', `${why} Repeat the request in a moment.`, { retryAfterMs })
  }
}

/** Longest message, or path in it, that leaves the service. A value that it quotes may be as long as the request. */
const MAX_MESSAGE_CHARACTERS = 500

/** Shortens a message, or a path in it, to at most `MAX_MESSAGE_CHARACTERS`. */
export function cut(message: string): string {
  return message.length > MAX_MESSAGE_CHARACTERS ? `${message.slice(0, MAX_MESSAGE_CHARACTERS - 1)}…` : message
}

/**
 * The rules of the organization have changed since the principal of this call was read. Read the principal again and
 * repeat the call. Only between services: clients get `service_unavailable`.
 */
export class StalePrincipal extends ServiceUnavailable {
  constructor() {
    super('Billing', { retryAfterMs: 0 })
  }

  override get extensions(): StaleExtensions {
    return { ...super.extensions, isStalePrincipal: true }
  }
}

interface StaleExtensions extends ErrorExtensions {
  readonly isStalePrincipal: true
}

/**
 * A limit or a deadline of this service has ended the embedding of a batch of a document after `tokens` of its input
 * were sent. The vendor bills these tokens. Only between services.
 */
export class EmbeddingStopped extends KisError {
  readonly tokens: number

  constructor(error: KisError, tokens: number) {
    super(error.code, error.message, error)
    this.tokens = tokens
  }

  override get extensions(): StoppedExtensions {
    return { ...super.extensions, tokens: this.tokens }
  }
}

interface StoppedExtensions extends ErrorExtensions {
  readonly tokens: number
}

/**
 * The error of a replica without data that another replica may have. Only between services: a remote link calls the
 * other replicas, and clients get the error itself if no replica has the data.
 */
export class NotHere extends KisError {
  constructor(error: KisError) {
    super(error.code, error.message, error)
  }

  override get extensions(): NotHereExtensions {
    return { ...super.extensions, isNotHere: true }
  }
}

interface NotHereExtensions extends ErrorExtensions {
  readonly isNotHere: true
}

/** Returns true for a `NotHere` that another process sent over GraphQL. */
export function isNotHere(errors: unknown): boolean {
  return Array.isArray(errors) && errors[0]?.extensions?.isNotHere === true
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/**
 * Returns true for the error of an aborted signal, whether from Node, undici or `signal.throwIfAborted()`, also inside
 * the `GraphQLError` that an executor wraps around it.
 */
export function isAbort(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { name, code, originalError } = error as { name: string; code?: unknown; originalError?: unknown }
  return name === 'AbortError' || code === 'ABORT_ERR' || isAbort(originalError)
}

/**
 * The reason with which the signal of a request aborts when its connection closes or its response was sent. A constant:
 * each `abort()` without a reason creates an exception with a stack trace, 2 to 3 % of the CPU of a small request.
 */
export const REQUEST_OVER = new DOMException('The request is over.', 'AbortError')

/**
 * The problems of the configuration. Each problem is a sentence on one line that names the variable or the path in a
 * file.
 */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}
