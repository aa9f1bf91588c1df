import { type ErrorCode, type ErrorExtensions, toErrorCode } from '../../../../schema/errors.ts'

/** Why something failed. `unreachable`: no response came. */
export interface Failure {
  readonly code: ErrorCode | 'unreachable'
  /** The service's message, in English. */
  readonly message: string
  readonly param: string | null
  readonly shouldRetry: boolean
  readonly retryAfterMs: number | null
}

/** The common fields of urql's `CombinedError` and a socket's errors. */
interface Failed {
  readonly message?: string
  readonly networkError?: unknown
  readonly graphQLErrors?: readonly { readonly message: string; readonly extensions?: unknown }[]
}

export const UNREACHABLE: Failure = { code: 'unreachable', message: '', param: null, shouldRetry: true, retryAfterMs: null }

/** Returns the first error of an operation. */
export function toFailure({ networkError, graphQLErrors = [] }: Failed): Failure {
  const first =
    graphQLErrors[0] ?? (Array.isArray(networkError) ? (networkError[0] as { message: string; extensions?: unknown }) : undefined)
  if (!first) return UNREACHABLE
  const { code, param = null, shouldRetry = false, retryAfterMs = null } = (first.extensions ?? {}) as Partial<ErrorExtensions>
  return { code: toErrorCode(code) ?? 'internal', message: first.message, param, shouldRetry, retryAfterMs }
}

/** Returns the stored failure of background work, such as a run. */
export function failureOfWork({ code, message }: { readonly code: string; readonly message: string }): Failure {
  return { code: toErrorCode(code) ?? 'internal', message, param: null, shouldRetry: false, retryAfterMs: null }
}

/** Returns the failure of a plain HTTP response, such as that of `/session`. */
export async function failureOf(response: Response): Promise<Failure> {
  const body = (await response.json().catch(() => null)) as { error?: { code?: unknown; message?: unknown; param?: unknown } } | null
  const { code, message, param } = body?.error ?? {}
  return {
    code: toErrorCode(code) ?? (response.status === 401 ? 'invalid_api_key' : 'internal'),
    message: typeof message === 'string' ? message : '',
    param: typeof param === 'string' ? param : null,
    shouldRetry: response.headers.get('x-should-retry') === 'true',
    retryAfterMs: null,
  }
}
