import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import type { RemoteError } from '../../../common/worker-rpc.ts'

/** Result codes of SQLite by which the file cannot serve at the moment: busy, locked, no memory, I/O error, corrupt, full, cannot open. */
const UNAVAILABLE: ReadonlySet<number> = new Set([5, 6, 7, 10, 11, 13, 14])

/** An expected failure inside a thread; `data` is what crosses to the main thread, where it becomes a `KisError` again. */
class Refusal extends Error {
  readonly data: { readonly code: ErrorCode }

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.data = { code }
  }
}

export function refuse(code: ErrorCode, message: string): never {
  throw new Refusal(code, message)
}

/** Runs in a thread, and names the failures of SQLite that a repeat can overcome. */
export function withRefusals<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0
    throw UNAVAILABLE.has(code) ? new Refusal('service_unavailable', String(error), error) : error
  }
}

export function reviveRefusal(error: RemoteError): Error | undefined {
  const { code } = (error.data ?? {}) as Partial<Refusal['data']>
  if (code === undefined) return undefined
  return code === 'service_unavailable' ? new ServiceUnavailable('The chunk index', { cause: error }) : new KisError(code, error.message)
}
