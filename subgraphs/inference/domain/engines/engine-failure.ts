import type { ErrorCode } from '../../../../schema/errors.ts'
import { type ErrorDetail, KisError } from '../../../common/errors.ts'

/**
 * A fault that only the operator can fix: the engine refuses the service's key, is out of credit, or lacks a model of
 * the catalog.
 */
export type OperatorFault = 'account' | 'model'

/** A failure of an engine about which its adapter knows more than the error code says. */
export class EngineFailure extends KisError {
  /**
   * Whether the call may be retried at the same engine at once. False when the vendor sent no error and may have
   * started work that it bills.
   */
  readonly isRepeatable: boolean

  constructor(code: ErrorCode, message: string, { isRepeatable, ...detail }: ErrorDetail & { readonly isRepeatable: boolean }) {
    super(code, message, detail)
    this.isRepeatable = isRepeatable
  }
}

/**
 * A limit or deadline of the service ended a call that the engine had started. The vendor bills its work so far, so the
 * counted usage is charged.
 */
export class StoppedByLimit extends KisError {
  /** The charge of the call, in nano-USD. */
  charged = 0n
}

/** The response of an engine is larger than admission allows, so the output used at least all that the hold covers. */
export class ResponseTooLarge extends StoppedByLimit {}
