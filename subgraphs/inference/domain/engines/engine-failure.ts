import type { ErrorCode } from '../../../../schema/errors.ts'
import { type ErrorDetail, KisError } from '../../../common/errors.ts'

/** What only the operator can mend: the engine takes the service's key or money no more, or lacks what the catalog names. */
export type OperatorFault = 'account' | 'model'

/** An engine's failure of which its adapter knows more than the code says. */
export class EngineFailure extends KisError {
  /** Whether the same engine may be asked again at once: false where the vendor may have begun what it bills, and answered no error. */
  readonly isRepeatable: boolean

  constructor(code: ErrorCode, message: string, { isRepeatable, ...detail }: ErrorDetail & { readonly isRepeatable: boolean }) {
    super(code, message, detail)
    this.isRepeatable = isRepeatable
  }
}
