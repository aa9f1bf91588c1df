import type { IncomingHttpHeaders } from 'node:http'
import { errors } from 'undici'
import { ERRORS, type ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { EngineFailure, type OperatorFault, ResponseTooLarge, StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { redactorOf } from '../../domain/redact-secrets.ts'

/** Longest part of a vendor's message that is passed on, in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 1_000
/** The form of a vendor's code. Other codes are not passed on: clients and dashboards group by code. */
const CODE = /^[\w.-]{1,64}$/
/** The form of a parameter's path, such as `messages[0].content`. */
const PARAM = /^[\w.[\]-]{1,64}$/
/** Longest wait that is passed on. */
const MAX_RETRY_AFTER_MS = 24 * 3_600_000

/** Account numbers and keys in vendors' messages. They belong to the operator, not the caller. */
const SECRETS = /\b(?:(?:sk|gsk|org|proj)[-_][\w*.-]{4,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|arn:aws[\w-]*:[\w:./-]+)/g

/**
 * Messages about an input that is too long, of vendors without a code for it: Anthropic, Gemini, Bedrock, Mistral,
 * Cohere.
 */
const TOO_LONG =
  /prompt is too long|input token count.{0,100}exceeds|input is too long|too large for model with|maximum context length|too many tokens/i

/**
 * How vendors report, with a less specific status, that the account is out of credit: OpenAI, Groq, Azure and DeepSeek
 * by the code, Anthropic in words.
 */
const EMPTY_ACCOUNT = /^(insufficient_quota|billing_hard_limit_reached|billing_not_active|billing_error|insufficient_balance)$/i
const EMPTY_ACCOUNT_TEXT = /credit balance is too low|insufficient balance/i
/**
 * How vendors report under 400 that a model does not exist (any more): OpenAI and Groq by the code, Mistral and Bedrock
 * in words.
 */
const NO_MODEL = /^(model_not_found|model_decommissioned|deploymentnotfound|invalid_model)$/i
const NO_MODEL_TEXT = /^invalid model\b|model identifier is invalid|model .{0,200}\b(decommissioned|end of its life)/i

/** Other codes for a violation of a vendor's policy: Azure's, and OpenAI's for reasoning models. */
const CONTENT_POLICY = /^(content_filter|responsibleaipolicyviolation|invalid_prompt)$/i

/** Called with a fault that only the operator can fix. `said`: the vendor's own words, without secrets. */
export type OnOperatorFault = (fault: OperatorFault, said: string | null) => void

interface VendorError {
  readonly message: string | null
  readonly code: string | null
  readonly param: string | null
}

/**
 * Creates the errors of one engine. Their texts never contain the operator's key or address; those are only in `cause`,
 * for the log.
 */
export class EngineErrors {
  readonly #name: string
  readonly #redactKnown: (text: string) => string | null
  readonly #clock: Clock
  readonly #onOperatorFault: OnOperatorFault

  /** `secrets`: texts that no field of an error may contain. */
  constructor(name: string, secrets: readonly string[], clock: Clock, onOperatorFault: OnOperatorFault = () => undefined) {
    this.#name = name
    this.#redactKnown = redactorOf(secrets)
    this.#clock = clock
    this.#onOperatorFault = onOperatorFault
  }

  /** The error for a response whose status is not 200. `body` is the part of the body that was read. */
  ofResponse(status: number, headers: IncomingHttpHeaders, body: Buffer): KisError {
    const vendor = this.#read(parse(body), status)
    // Bedrock's code is in a header, followed by an address.
    const code = vendor.code ?? this.#toCode(text(headers['x-amzn-errortype'])?.split(':', 1)[0])
    return this.#ofVendor(status, { ...vendor, code }, this.#retryAfterMs(headers))
  }

  /** The error that the vendor reports inside a response, with the status that it stands for. */
  ofEvent(status: number, value: unknown): KisError {
    return this.#ofVendor(status, this.#read(value, status), null)
  }

  #ofVendor(status: number, vendor: VendorError, retryAfterMs: number | null): KisError {
    const vendorCode = vendor.code
    const fault = classifyFault(status, vendor)
    if (fault) return this.#ofFault(fault, vendor)
    if (status === 400 || status === 413 || status === 422) {
      const own = toOwnCode(vendor.code) ?? (TOO_LONG.test(vendor.message ?? '') ? 'context_length_exceeded' : null)
      return this.#ofRefusal(own ?? 'invalid_request', vendor)
    }
    if (status === 429)
      return new KisError('rate_limit_exceeded', `${this.#engine} accepts no more requests at the moment.`, { retryAfterMs, vendorCode })
    if (status === 408 || status === 504)
      return new EngineFailure('engine_timeout', `${this.#engine} did not finish in time.`, {
        retryAfterMs,
        vendorCode,
        isRepeatable: true,
      })
    // Some vendors send 529 for "overloaded".
    if (status === 503 || status === 529)
      return new KisError('engine_unavailable', `${this.#engine} is unavailable at the moment.`, { retryAfterMs, vendorCode })
    // 409 is a lock that was not free in time (openai-node retries it, too).
    const isRepeatable = status === 409 || status >= 500
    return new EngineFailure('engine_error', `${this.#engine} returned status ${status}.`, { retryAfterMs, vendorCode, isRepeatable })
  }

  /** An error that the caller caused, in the vendor's words. */
  #ofRefusal(code: ErrorCode, vendor: VendorError): KisError {
    return new KisError(code, vendor.message ?? `${this.#engine} refused the request as invalid.`, {
      param: vendor.param,
      vendorCode: code === vendor.code ? null : vendor.code,
    })
  }

  /**
   * An error that is neither the caller's fault nor an outage: another engine may succeed, but a retry at this one is
   * useless.
   */
  #ofFault(fault: OperatorFault, { code: vendorCode, message }: VendorError): KisError {
    this.#onOperatorFault(fault, message)
    if (fault === 'account')
      return new EngineFailure('engine_unavailable', `${this.#engine} is unavailable at the moment.`, { vendorCode, isRepeatable: false })
    const text = `${this.#engine} does not have the model that the catalog names. Choose another model.`
    return new EngineFailure('engine_error', text, { vendorCode, isRepeatable: false, shouldRetry: false })
  }

  /** The error for `{"error": …}` in place of a response: in a stream, or under status 200. */
  ofErrorObject(value: unknown): KisError {
    const vendor = this.#read(value, 200)
    const fault = classifyFault(200, vendor)
    if (fault) return this.#ofFault(fault, vendor)
    const { message, code } = vendor
    const own = toOwnCode(code)
    if (own) return this.#ofRefusal(own, vendor)
    return new KisError('engine_error', message ? `${this.#engine} failed: ${message}` : `${this.#engine} failed.`, {
      vendorCode: code,
    })
  }

  /** The error for a body under status 200 that is not an event stream. */
  notAStream(body: Buffer): KisError {
    const response = record(parse(body))
    return response.error ? this.ofErrorObject(response) : this.invalidResponse('returned no event stream')
  }

  /** `what` completes the sentence "The engine … ". */
  invalidResponse(what: string, cause?: unknown): KisError {
    return new KisError('engine_error', `${this.#engine} ${what}.`, { cause })
  }

  /** The error for a response that exceeds a limit of the service. `what` completes the sentence "The engine … ". */
  stopped(what: string, cause?: unknown): KisError {
    return new StoppedByLimit('engine_error', `${this.#engine} ${what}.`, { cause, shouldRetry: false })
  }

  /** The error for a response of too many bytes. */
  tooLarge(): KisError {
    return new ResponseTooLarge('engine_error', `${this.#engine} returned a response that is too large.`, { shouldRetry: false })
  }

  /** The error for a response or event with more or deeper values than a valid one has. */
  excessive(): KisError {
    return this.stopped('returned a response of too many or too deep values')
  }

  /** The error for a response that had started, and then sent nothing for too long. */
  silent(): KisError {
    return new StoppedByLimit('engine_timeout', `${this.#engine} did not continue its response in time.`)
  }

  /** The error for a compressed response although the service requests none. Decompressed, it could have any size. */
  packed(): KisError {
    return this.invalidResponse('returned a compressed response')
  }

  busy(): KisError {
    return new KisError('engine_unavailable', `${this.#engine} has too many concurrent calls.`, { retryAfterMs: 1_000 })
  }

  /** The error for a failed connection. `answering`: the response had started. */
  ofConnection(cause: unknown, answering: boolean): KisError {
    if (cause instanceof KisError) return cause
    if (cause instanceof errors.HeadersTimeoutError || cause instanceof errors.BodyTimeoutError)
      return new StoppedByLimit('engine_timeout', `${this.#engine} did not respond in time.`, { cause })
    if (cause instanceof errors.HeadersOverflowError) return this.stopped('returned headers that are too large', cause)
    if (cause instanceof errors.HTTPParserError) return this.invalidResponse('returned a response that is not HTTP', cause)
    if (answering) return new KisError('engine_error', `${this.#engine} broke off its response.`, { cause })
    const isRepeatable = !hasBeenReached(cause)
    return new EngineFailure('engine_unavailable', `${this.#engine} cannot be reached at the moment.`, { cause, isRepeatable })
  }

  get #engine(): string {
    return `The engine \`${this.#name}\``
  }

  /**
   * Reads a vendor's error, without secrets. Understands OpenAI's shape, and those of vLLM, Mistral, Cohere and Bedrock
   * (fields at the top), TEI (`error` is a text), FastAPI (`detail`), Google (in a list; its code is the `status`) and
   * Anthropic (its code is the `type`, where others have a family).
   */
  #read(value: unknown, status: number): VendorError {
    const response = record(Array.isArray(value) ? value[0] : value)
    const error = typeof response.error === 'object' && response.error ? record(response.error) : response
    const detail = Array.isArray(response.detail) ? record(response.detail[0]).msg : response.detail
    const code = [error.code, error.status, 'code' in error ? null : error.type].find((candidate) => isCode(candidate, status))
    const message = text(error.message ?? detail) ?? text(response.error)
    return { message: this.#toText(message), code: this.#toCode(code), param: this.#toName(text(error.param), PARAM) }
  }

  /** Redacts the text before cutting it: half a secret would not be found. */
  #toText(text: string | null): string | null {
    return text === null ? null : (this.#redact(text)?.slice(0, MAX_MESSAGE_LENGTH) ?? null)
  }

  #toCode(value: unknown): string | null {
    return this.#toName(String(value ?? ''), CODE)
  }

  #toName(name: string | null, pattern: RegExp): string | null {
    return name !== null && pattern.test(name) && this.#redact(name) === name ? name : null
  }

  #redact(text: string): string | null {
    return this.#redactKnown(text)?.replace(SECRETS, '…') ?? null
  }

  /** Reads `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, section 10.2.3). */
  #retryAfterMs(headers: IncomingHttpHeaders): number | null {
    const milliseconds = String(headers['retry-after-ms'] ?? '').trim()
    const seconds = String(headers['retry-after'] ?? '').trim()
    let ms = Number.NaN
    if (milliseconds) ms = Number(milliseconds)
    else if (/^\d+(\.\d+)?$/.test(seconds)) ms = Number(seconds) * 1_000
    else if (seconds) ms = Date.parse(seconds) - this.#clock.now().getTime()
    return Number.isFinite(ms) ? Math.min(Math.max(Math.ceil(ms), 0), MAX_RETRY_AFTER_MS) : null
  }
}

function classifyFault(status: number, { code, message }: VendorError): OperatorFault | null {
  if (status === 401 || status === 402 || status === 403) return 'account'
  if (EMPTY_ACCOUNT.test(code ?? '') || EMPTY_ACCOUNT_TEXT.test(message ?? '')) return 'account'
  if (status === 404 || status === 410) return 'model'
  return NO_MODEL.test(code ?? '') || (status === 400 && NO_MODEL_TEXT.test(message ?? '')) ? 'model' : null
}

/** Whether a response is compressed. */
export function isPacked(headers: IncomingHttpHeaders): boolean {
  return !/^(identity)?$/i.test(headers['content-encoding'] ?? '')
}

/** Whether the connection was open when it broke, so that the vendor may have the request. */
function hasBeenReached(cause: unknown): boolean {
  const { code, syscall } = (cause ?? {}) as { readonly code?: unknown; readonly syscall?: unknown }
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || syscall === 'read' || syscall === 'write'
}

/** The service's error code that the vendor's code equals, with status 400, or means the same as. */
function toOwnCode(code: string | null): ErrorCode | null {
  if (code === null) return null
  if (CONTENT_POLICY.test(code)) return 'content_policy_violation'
  return code in ERRORS && ERRORS[code as ErrorCode].status === 400 ? (code as ErrorCode) : null
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}

/**
 * The error inside a response, or a chunk of one, in place of its text: at its top, or as with OpenRouter in a choice.
 * Null: there is none.
 */
export function findVendorError(response: object): object | null {
  const { error, choices } = response as { readonly error?: unknown; readonly choices?: unknown }
  if (error) return response
  const failed = Array.isArray(choices) ? choices.find(hasFailed) : undefined
  return failed ? { error: failed.error ?? {} } : null
}

interface MaybeFailed {
  readonly error?: unknown
  readonly finish_reason?: unknown
}

/** Some routers report an error only as the finish reason. */
function hasFailed(choice: MaybeFailed | null): boolean {
  return Boolean(choice?.error) || choice?.finish_reason === 'error'
}

/** Whether a code is informative. Some vendors repeat the status as the code, or set the type to `error`. */
function isCode(value: unknown, status: number): boolean {
  return (
    (typeof value === 'string' && value !== '' && value !== 'error' && value !== String(status)) ||
    (typeof value === 'number' && value !== status)
  )
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

interface AnyError {
  readonly error?: unknown
  readonly detail?: unknown
  readonly msg?: unknown
  readonly status?: unknown
  readonly type?: unknown
  readonly message?: unknown
  readonly param?: unknown
  readonly code?: unknown
}

function record(value: unknown): AnyError {
  return typeof value === 'object' && value !== null ? value : {}
}
