/**
 * Returns the result of `work`, or rejects with the signal's reason if the signal aborts first. The work then
 * continues, and its result or failure is dropped.
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
