import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MAX_TRIES, retryWaitMs } from './retry.ts'

const DAY_MS = 86_400_000

it('the retry delay grows up to a day, and ends after the last attempt', () => {
  const longest = Array.from({ length: MAX_TRIES }, (_, i) => retryWaitMs(i + 1, 1_000, null, 1))
  expect(longest).toEqual([5_000, 30_000, 180_000, 1_080_000, 6_480_000, 38_880_000, DAY_MS, DAY_MS, DAY_MS, null])
})

it('the retry delay has full jitter, unless `retry-after` of the endpoint is longer', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: MAX_TRIES - 1 }),
      fc.integer({ min: 1, max: 10_000 }),
      fc.option(fc.integer({ min: 0, max: 10 * DAY_MS })),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, firstStepMs, retryAfterMs, random) => {
        const wait = retryWaitMs(failures, firstStepMs, retryAfterMs, random)!
        expect(wait).toBeGreaterThanOrEqual(Math.min(retryAfterMs ?? 0, DAY_MS))
        expect(wait).toBeLessThanOrEqual(Math.max(retryWaitMs(failures, firstStepMs, null, 1)!, Math.min(retryAfterMs ?? 0, DAY_MS)))
      },
    ),
  )
})
