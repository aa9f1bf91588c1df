import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { RemoteError } from '../../../common/process/worker-rpc.ts'

/** An expected failure inside a thread. `data` is passed to the main thread, which turns it into a `KisError` again. */
class Refusal extends Error {
  readonly data: { readonly code: ErrorCode }

  constructor(code: ErrorCode, message: string) {
    super(message)
    this.name = 'Refusal'
    this.data = { code }
  }
}

export function refuse(code: ErrorCode, message: string): never {
  throw new Refusal(code, message)
}

export function reviveRefusal({ name, message, data }: RemoteError): Error | undefined {
  return name === 'Refusal' ? new KisError((data as Refusal['data']).code, message) : undefined
}
