import { expect, it } from 'vitest'
import { acquireWithTimeout, CapacityExceeded, FairSemaphore } from './fair-semaphore.ts'

const LONG_MS = 60_000

it('acquires a slot immediately, or when one becomes free', async () => {
  const semaphore = new FairSemaphore(1, 1)
  const release = await acquireWithTimeout(semaphore, 'a', LONG_MS)
  const waiting = acquireWithTimeout(semaphore, 'b', LONG_MS)
  expect(semaphore.waitingOf('b')).toBe(1)
  release()
  ;(await waiting)()
  expect(semaphore.isFull).toBe(false)
})

it('refuses a call that waits too long, one above the limit, and one whose caller has disconnected', async () => {
  const semaphore = new FairSemaphore(1, 1)
  const release = await acquireWithTimeout(semaphore, 'a', LONG_MS)
  const caller = new AbortController()
  const late = acquireWithTimeout(semaphore, 'b', 1)
  await expect(acquireWithTimeout(semaphore, 'b', LONG_MS)).rejects.toThrow(CapacityExceeded)
  await expect(late).rejects.toThrow(CapacityExceeded)
  const left = expect(acquireWithTimeout(semaphore, 'b', LONG_MS, caller.signal)).rejects.toThrow('left')
  caller.abort(new Error('left'))
  await left
  await expect(acquireWithTimeout(semaphore, 'b', LONG_MS, caller.signal)).rejects.toThrow('left')
  expect(semaphore.waitingOf('b')).toBe(0)
  release()
  expect(semaphore.isFull).toBe(false)
})
