import type { IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { MINIMUM_DATA_RATE, MinimumDataRate } from './minimum-data-rate.ts'

it('does not count the time in which nobody reads a body', () => {
  const pace = new MinimumDataRate(MINIMUM_DATA_RATE)
  const request = { readableFlowing: true, complete: false, socket: { bytesRead: 0 } }
  let nowMs = 0
  const lookFor = (seconds: number) => {
    const slow: unknown[] = []
    for (const endMs = nowMs + seconds * 1_000; nowMs < endMs; nowMs += 1_000)
      slow.push(...pace.check([request as IncomingMessage], [], nowMs).slowBodies)
    return slow.length
  }
  lookFor(2)
  request.readableFlowing = false
  lookFor(30)
  request.readableFlowing = true
  expect(lookFor(10)).toBe(0)
  expect(lookFor(2)).toBe(1)
})
