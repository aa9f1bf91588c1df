import { KisError } from '../../../common/errors.ts'
import type { EngineErrors } from '../vendor/engine-errors.ts'

/** Deeper than any chain of causes that the SDK makes. */
const MAX_CAUSES = 8

/** What the SDK throws and streams as errors, of which it has many shapes. */
interface SdkFailure {
  readonly name?: unknown
  readonly message?: unknown
  readonly statusCode?: unknown
  /** Of an error inside a stream. */
  readonly type?: unknown
  readonly code?: unknown
  readonly responseBody?: unknown
  readonly cause?: unknown
  /** An event that is none of the kinds that the SDK knows, such as a vendor's error. */
  readonly value?: unknown
}

/** The failure of a call in our words. Ours came from the connection, and passes through the SDK as a cause. */
export function failureOf(thrown: unknown, errors: EngineErrors): KisError {
  let failure = thrown
  for (let depth = 0; depth < MAX_CAUSES && typeof failure === 'object' && failure !== null; depth++) {
    if (failure instanceof KisError) return failure
    const { name, message, statusCode, type, code, responseBody, value, cause } = failure as SdkFailure
    if (name === 'AI_UnsupportedFunctionalityError' || name === 'AI_InvalidPromptError')
      return new KisError('invalid_request', `The engine cannot take this request: ${String(message)}`, { cause: thrown })
    // An answer's status is 200 where the vendor's own error stands inside it.
    if (typeof statusCode === 'number' && statusCode >= 400)
      return errors.ofEvent(statusCode, type ? { error: { message, code: code ?? type } } : (parsed(responseBody) ?? { message }))
    if (isVendorError(value)) return errors.ofErrorObject(value)
    failure = cause
  }
  return errors.invalidAnswer('gave an answer that cannot be read', thrown)
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
