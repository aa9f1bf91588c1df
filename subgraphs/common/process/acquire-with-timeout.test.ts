import { expect, it } from 'vitest'
import { acquireWithTimeout, CapacityExceeded, FairSemaphore } from './fair-semaphore.ts'

const LONG_MS = 60_000

it('gives a place at once, or when it becomes free', async () => {
  const places = new FairSemaphore(1, 1)
  const leave = await acquireWithTimeout(places, 'a', LONG_MS)
  const waiting = acquireWithTimeout(places, 'b', LONG_MS)
  expect(places.waitingOf('b')).toBe(1)
  leave()
  ;(await waiting)()
  expect(places.isFull).toBe(false)
})

it('refuses a call that waits too long, one too many, and one whose caller has left', async () => {
  const places = new FairSemaphore(1, 1)
  const leave = await acquireWithTimeout(places, 'a', LONG_MS)
  const caller = new AbortController()
  const late = acquireWithTimeout(places, 'b', 1)
  await expect(acquireWithTimeout(places, 'b', LONG_MS)).rejects.toThrow(CapacityExceeded)
  await expect(late).rejects.toThrow(CapacityExceeded)
  const left = expect(acquireWithTimeout(places, 'b', LONG_MS, caller.signal)).rejects.toThrow('left')
  caller.abort(new Error('left'))
  await left
  await expect(acquireWithTimeout(places, 'b', LONG_MS, caller.signal)).rejects.toThrow('left')
  expect(places.waitingOf('b')).toBe(0)
  leave()
  expect(places.isFull).toBe(false)
})
