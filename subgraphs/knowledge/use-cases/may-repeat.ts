import type { ErrorCode } from '../../../schema/errors.ts'
import { KisError } from '../../common/errors.ts'

/** Errors that are not the job's fault. The job waits until they end, however long that takes. */
const WAITS: readonly ErrorCode[] = ['service_unavailable', 'index_rebuilding', 'organization_suspended']

/** Whether a retry of the job may succeed. */
export function mayRepeat(error: unknown): boolean {
  return !(error instanceof KisError) || error.shouldRetry || isOutage(error)
}

/** Whether the error is one for whose end a job waits, without counting it as a failure. */
export function isOutage(error: unknown): boolean {
  return error instanceof KisError && WAITS.includes(error.code)
}
