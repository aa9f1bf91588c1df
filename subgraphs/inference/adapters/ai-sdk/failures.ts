import { KisError } from '../../../common/errors.ts'
import type { EngineErrors } from '../vendor/engine-errors.ts'

/** Deeper than any chain of causes in the SDK. */
const MAX_CAUSES = 8

/** The many shapes of the errors that the SDK throws or streams. */
interface SdkFailure {
  readonly name?: unknown
  readonly message?: unknown
  readonly statusCode?: unknown
  /** Set on an error inside a stream. */
  readonly type?: unknown
  readonly code?: unknown
  readonly responseBody?: unknown
  readonly cause?: unknown
  /** An event of a kind that the SDK does not know, such as a vendor's error. */
  readonly value?: unknown
}

/**
 * Converts the failure of a call to a `KisError`. Failures of the connection are `KisError`s already, and pass through
 * the SDK as a cause.
 */
export function toFailure(thrown: unknown, errors: EngineErrors): KisError {
  let failure = thrown
  for (let depth = 0; depth < MAX_CAUSES && typeof failure === 'object' && failure !== null; depth++) {
    if (failure instanceof KisError) return failure
    const { name, message, statusCode, type, code, responseBody, value, cause } = failure as SdkFailure
    if (name === 'AI_UnsupportedFunctionalityError' || name === 'AI_InvalidPromptError')
      return new KisError('invalid_request', `The engine cannot take this request: ${String(message)}`, { cause: thrown })
    // The status is 200 if the vendor's error was inside the response.
    if (typeof statusCode === 'number' && statusCode >= 400)
      return errors.ofEvent(statusCode, type ? { error: { message, code: code ?? type } } : (parsed(responseBody) ?? { message }))
    if (isVendorError(value)) return errors.ofErrorObject(value)
    failure = cause
  }
  return errors.invalidResponse('returned a response that cannot be read', thrown)
}

function parsed(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : null
  } catch {
    return null
  }
}

/** `{error: …}` as most vendors write it, or Mistral's `{object: 'error', …}`. */
export function isVendorError(value: unknown): value is object {
  return isRecord(value) && (Boolean(value.error) || value.object === 'error')
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
