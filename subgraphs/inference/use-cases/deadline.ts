import { NeverSent } from '../ports/engines.ts'

/**
 * Does the work under a signal that aborts with the given one, or after `ms` milliseconds. If the work fails after the
 * deadline, it fails with `tooLate()`, which is the `cause` where it fails with `NeverAsked`. `AbortSignal.timeout` is not used, because it keeps about a kilobyte per call
 * until its time is over, which would be a gigabyte at the rate of this service.
 */
export async function withDeadline<T>(
  ms: number,
  tooLate: () => Error,
  signal: AbortSignal | null,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const onAbort = () => controller.abort(signal?.reason)
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  let late: Error | undefined
  const timer = setTimeout(() => {
    late = tooLate()
    controller.abort(late)
  }, ms)
  try {
    return await work(controller.signal)
  } catch (error) {
    throw error instanceof NeverSent ? error : (late ?? error)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}
