import { expect, it } from 'vitest'
import { FairPlaces, NoPlace } from './fair-places.ts'
import { takeInTime } from './take-in-time.ts'

const LONG_MS = 60_000

it('gives a place at once, or when it becomes free', async () => {
  const places = new FairPlaces(1, 1)
  const leave = await takeInTime(places, 'a', LONG_MS)
  const waiting = takeInTime(places, 'b', LONG_MS)
  expect(places.waitingOf('b')).toBe(1)
  leave()
  ;(await waiting)()
  expect(places.isFull).toBe(false)
})

it('refuses a call that waits too long, one too many, and one whose caller has left', async () => {
  const places = new FairPlaces(1, 1)
  const leave = await takeInTime(places, 'a', LONG_MS)
  const caller = new AbortController()
  const late = takeInTime(places, 'b', 1)
  await expect(takeInTime(places, 'b', LONG_MS)).rejects.toThrow(NoPlace)
  await expect(late).rejects.toThrow(NoPlace)
  const left = expect(takeInTime(places, 'b', LONG_MS, caller.signal)).rejects.toThrow('left')
  caller.abort(new Error('left'))
  await left
  await expect(takeInTime(places, 'b', LONG_MS, caller.signal)).rejects.toThrow('left')
  expect(places.waitingOf('b')).toBe(0)
  leave()
  expect(places.isFull).toBe(false)
})
