import type { ErrorCode } from '../../../../schema/errors.ts'
import { type ErrorDetail, KisError } from '../../../common/errors.ts'

/**
 * A fault that only the operator can fix: the engine refuses the service's key or has no more credit, or lacks a model
 * of the catalog.
 */
export type OperatorFault = 'account' | 'model'

/** A failure of an engine about which its adapter knows more than the code says. */
export class EngineFailure extends KisError {
  /**
   * Whether the call may be repeated at the same engine at once. False when the vendor may have begun work that it
   * bills, and gave no error.
   */
  readonly isRepeatable: boolean

  constructor(code: ErrorCode, message: string, { isRepeatable, ...detail }: ErrorDetail & { readonly isRepeatable: boolean }) {
    super(code, message, detail)
    this.isRepeatable = isRepeatable
  }
}

/**
 * A limit or a deadline of ours has ended a call that the engine had begun. The vendor bills its work so far, so what
 * was counted is charged.
 */
export class StoppedByLimit extends KisError {
  /** What the call was charged, in nano-USD. */
  charged = 0n
}

/** The response of an engine is larger than any that was admitted, so it has at least all of the output that is held. */
export class ResponseTooLarge extends StoppedByLimit {}
