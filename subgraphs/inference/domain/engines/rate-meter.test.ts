import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { full } from '../../../../test/support/soak.ts'
import { RateMeter } from './rate-meter.ts'

const MINUTE_MS = 60_000

describe('Rate meter', () => {
  it('admits exactly the limit at once, then one call for each part of the minute', () => {
    const meter = new RateMeter()
    for (let i = 0; i < 5; i++) {
      expect(meter.waitMs(1, 5, 0)).toBe(0)
      meter.consume(1, 5, 0)
    }
    expect(meter.waitMs(1, 5, 0)).toBe(12_000)
    expect(meter.waitMs(1, 5, 11_999)).toBe(1)
    expect(meter.waitMs(1, 5, 12_000)).toBe(0)
    expect([meter.remaining(5, 12_000), meter.resetMs(5, 12_000)]).toEqual([1, 48_000])
  })

  it('admits a call larger than the whole limit when it is empty, and recovers before the next', () => {
    const meter = new RateMeter()
    expect(meter.waitMs(150, 100, 0)).toBe(0)
    meter.consume(150, 100, 0)
    expect([meter.remaining(100, 0), meter.waitMs(1, 100, 0)]).toEqual([0, 30_600])
    expect(meter.waitMs(150, 100, 0)).toBe(90_000)
  })

  it('applies a changed limit to what has been taken', () => {
    const meter = new RateMeter()
    meter.consume(10, 10, 0)
    expect(meter.remaining(100, 0)).toBe(90)
    expect(meter.waitMs(1, 5, 0)).toBe(72_000)
  })

  it('drains nothing while its clock is set back, and resumes from there', () => {
    const meter = new RateMeter()
    meter.consume(60, 60, 3_600_000)
    expect(meter.waitMs(1, 60, 0)).toBe(1_000)
    expect(meter.waitMs(1, 60, 1_000)).toBe(0)
  })
})

/** Calls that consume tokens, and their real use some time later. */
const calls = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 20_000 }),
    amount: fc.integer({ min: 1, max: 400 }),
    used: fc.integer({ min: 0, max: 400 }),
  }),
  { maxLength: 60 },
)

describe('Rate meter over any time', () => {
  it('admits at most the limit and the rate of that time, less what was returned, whatever calls used', () => {
    fc.assert(
      fc.property(calls, fc.integer({ min: 1, max: 400 }), fc.integer({ min: 0, max: 30_000 }), (requested, limit, lastsMs) => {
        const meter = new RateMeter()
        const consumed: { readonly at: number; readonly amount: number }[] = []
        const consume = (amount: number, at: number) => {
          meter.consume(amount, limit, at)
          consumed.push({ at, amount })
        }
        let underWay: { readonly endsAt: number; readonly correction: number }[] = []
        let now = 0
        for (const { afterMs, amount, used } of requested) {
          now += afterMs
          for (const { correction } of underWay.filter(({ endsAt }) => endsAt <= now)) consume(correction, now)
          underWay = underWay.filter(({ endsAt }) => endsAt > now)
          if (amount > limit || meter.waitMs(amount, limit, now) > 0) continue
          consume(amount, now)
          underWay.push({ endsAt: now + lastsMs, correction: used - amount })
          let sum = 0
          for (const { at, amount: part } of consumed.toReversed()) {
            sum += part
            expect(sum * MINUTE_MS).toBeLessThanOrEqual(limit * (MINUTE_MS + now - at))
          }
        }
      }),
      { numRuns: full(5_000) },
    )
  })

  it('reports a wait that is enough, and a millisecond less is not', () => {
    fc.assert(
      fc.property(calls, fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 8 }), (requested, limit, replicas) => {
        const meter = new RateMeter()
        let now = 0
        for (const { afterMs, amount } of requested) {
          now += afterMs
          const wait = meter.waitMs(amount * replicas, limit, now)
          if (wait > 0) expect(meter.waitMs(amount * replicas, limit, now + wait - 1)).toBe(1)
          now += wait
          expect(meter.waitMs(amount * replicas, limit, now)).toBe(0)
          meter.consume(amount * replicas, limit, now)
          expect(meter.resetMs(limit, now + meter.resetMs(limit, now))).toBe(0)
        }
      }),
      { numRuns: full(5_000) },
    )
  })

  it('an immediate correction leaves the same state as the actual use alone', () => {
    fc.assert(
      fc.property(calls, fc.integer({ min: 1, max: 400 }), (requested, limit) => {
        const [corrected, exact] = [new RateMeter(), new RateMeter()]
        let now = 0
        for (const { afterMs, amount, used } of requested) {
          now += afterMs
          corrected.consume(amount, limit, now)
          corrected.consume(used - amount, limit, now)
          exact.consume(used, limit, now)
          expect(corrected.resetMs(limit, now)).toBe(exact.resetMs(limit, now))
        }
      }),
      { numRuns: full(5_000) },
    )
  })

  it('a limit of 0 admits nothing, and reports a wait of a minute', () => {
    const meter = new RateMeter()
    for (const now of [0, 1_000_000]) {
      expect([meter.waitMs(1, 0, now), meter.remaining(0, now), meter.resetMs(0, now)]).toEqual([60_000, 0, 60_000])
      meter.consume(1, 0, now)
    }
  })
})
