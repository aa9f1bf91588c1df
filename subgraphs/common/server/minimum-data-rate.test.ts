import type { IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { MINIMUM_DATA_RATE, MinimumDataRate } from './minimum-data-rate.ts'

it('does not count the time in which nobody reads a body', () => {
  const pace = new MinimumDataRate(MINIMUM_DATA_RATE)
  const request = { readableFlowing: true, complete: false, socket: { bytesRead: 0 } }
  let nowMs = 0
  const checkFor = (seconds: number) => {
    const slow: unknown[] = []
    for (const endMs = nowMs + seconds * 1_000; nowMs < endMs; nowMs += 1_000)
      slow.push(...pace.check([request as IncomingMessage], [], nowMs).slowBodies)
    return slow.length
  }
  checkFor(2)
  request.readableFlowing = false
  checkFor(30)
  request.readableFlowing = true
  expect(checkFor(10)).toBe(0)
  expect(checkFor(2)).toBe(1)
})
