import { ERRORS, type ErrorCode, type ErrorExtensions, errorCodeOf, type RateLimits } from '../../schema/errors.ts'

export interface ErrorDetail {
  /** Path of the offending input in the caller's own request. */
  readonly param?: string | null
  readonly retryAfterMs?: number | null
  readonly vendorCode?: string | null
  readonly cause?: unknown
  /** Replaces the code's own answer to "can a repeat help?". */
  readonly shouldRetry?: boolean
  readonly rateLimits?: RateLimits | null
}

/**
 * An expected failure, one of the closed set. graphql-js copies `extensions` of a thrown error into its answer, so that a
 * resolver only throws. Anything else that is thrown is a defect and leaves the service as a bare `internal`.
 */
export class KisError extends Error {
  readonly code: ErrorCode
  readonly param: string | null
  readonly retryAfterMs: number | null
  readonly vendorCode: string | null
  readonly shouldRetry: boolean
  /** What the caller's key has left, where the call was limited: known only at the call's end, and so added then. */
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

  /** The error that another process sent as GraphQL; one outside the closed set becomes `internal`. */
  static fromGraphQL(error: { readonly message: string; readonly extensions?: Readonly<Record<string, unknown>> | undefined }): KisError {
    const extensions = (error.extensions ?? {}) as Partial<Record<keyof StaleExtensions, unknown>>
    const code = errorCodeOf(extensions.code)
    if (extensions.isStalePrincipal === true) return new StalePrincipal()
    if (!code) return new KisError('internal', 'The service failed to answer.', { cause: error })
    return new KisError(code, error.message, {
      param: typeof extensions.param === 'string' ? extensions.param : null,
      retryAfterMs: typeof extensions.retryAfterMs === 'number' ? extensions.retryAfterMs : null,
      vendorCode: typeof extensions.vendorCode === 'string' ? extensions.vendorCode : null,
      rateLimits: isObject(extensions.rateLimits) ? (extensions.rateLimits as RateLimits) : null,
      ...(typeof extensions.shouldRetry === 'boolean' && { shouldRetry: extensions.shouldRetry }),
    })
  }
}

/** One text for missing, malformed, unknown, revoked and expired keys, so that none tells which keys exist. */
export class InvalidApiKey extends KisError {
  constructor() {
    super('invalid_api_key', 'Incorrect API key provided. Send a valid key as `Authorization: Bearer <API_KEY>`.')
  }
}

export class PermissionDenied extends KisError {
  constructor(scope: string) {
    super('permission_denied', `This API key lacks the scope \`${scope}\`.`)
  }
}

/** Absent, or another organization's: the two look the same. */
export class NotFound extends KisError {
  constructor(kind: string, id: string, param: string | null = null) {
    super('not_found', `No ${kind} with id \`${id}\` in this organization.`, { param })
  }
}

/** The same answer for a model that does not exist and one that is not on the key's allowlist. */
export class ModelNotFound extends KisError {
  constructor(id: string, param = 'model') {
    super('model_not_found', `The model \`${id}\` does not exist or you do not have access to it.`, { param })
  }
}

export class ServiceUnavailable extends KisError {
  /** `why`: what the caller may know of the reason, such as `the disk is full`. */
  constructor(what: string, { why, ...detail }: ErrorDetail & { readonly why?: string } = {}) {
    super('service_unavailable', `${what} is unavailable at the moment${why ? `: ${why}` : ''}.`, { retryAfterMs: 1_000, ...detail })
  }
}

/** The service works, and takes no more of this at once. */
export class TooBusy extends KisError {
  /** `why`: a sentence that says what there is too much of. */
  constructor(why: string, retryAfterMs = 1_000) {
    super('service_unavailable', `${why} Repeat the request in a moment.`, { retryAfterMs })
  }
}

/** Characters of a message, or of a path in it, that leave the service; what they quote may be as long as the request. */
const MAX_MESSAGE_CHARACTERS = 500

/** The message as it may leave the service. */
export function cut(message: string): string {
  return message.length > MAX_MESSAGE_CHARACTERS ? `${message.slice(0, MAX_MESSAGE_CHARACTERS - 1)}…` : message
}

/**
 * The principal of a call was read before its organization's rules were changed; whoever reads it again may ask again. Between services only:
 * clients are told `service_unavailable`.
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

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** True for the error that an aborted signal makes, of Node, undici and `signal.throwIfAborted()` alike. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || (error as { code?: unknown }).code === 'ABORT_ERR')
}
