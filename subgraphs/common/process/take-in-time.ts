import { type FairPlaces, NoPlace } from './fair-places.ts'

const NEVER = new AbortController().signal

/**
 * Waits for a place for `maxWaitMs` at most, and gives the function that frees it.
 * @throws {NoPlace} too many calls already wait, or no place became free in time
 * @throws the reason of the aborted signal
 */
export async function takeInTime(places: FairPlaces, organizationId: string, maxWaitMs: number, signal = NEVER): Promise<() => void> {
  signal.throwIfAborted()
  const leave = places.tryTake(organizationId)
  if (leave) return leave
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new NoPlace('no place became free in time')), maxWaitMs)
  try {
    return await places.take(organizationId, AbortSignal.any([signal, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}
