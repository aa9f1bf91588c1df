import { expect, it } from 'vitest'
import { SharedClock } from './shared-clock.ts'

const MINUTE_MS = 60_000
const ahead = (ms: number) => new Date(Date.now() + ms)

it("is the machine's clock until another is seen", () => {
  expect(Math.abs(new SharedClock().now().getTime() - Date.now())).toBeLessThan(1_000)
})

it('follows a clock that is minutes away, and tolerates a second or two', () => {
  const clock = new SharedClock()
  clock.observe(ahead(10 * MINUTE_MS), performance.now())
  const offset = () => Math.round((clock.now().getTime() - Date.now()) / 1_000)
  expect(offset()).toBe(600)
  clock.observe(ahead(10 * MINUTE_MS + 2_000), performance.now())
  expect(offset()).toBe(600)
  clock.observe(ahead(-10 * MINUTE_MS), performance.now())
  expect(offset()).toBe(-600)
})

it('ignores invalid readings, and slow ones unless they differ by more than their error', () => {
  const clock = new SharedClock()
  const tookMs = 10_000
  clock.observe(ahead(-12_000), performance.now() - tookMs)
  clock.observe(ahead(2_000), performance.now() - tookMs)
  clock.observe(new Date('undefined'), performance.now())
  expect(Math.abs(clock.now().getTime() - Date.now())).toBeLessThan(1_000)
  // A first response may be slow while the machine is busy. Until then the clock would be minutes wrong.
  clock.observe(ahead(10 * MINUTE_MS), performance.now() - tookMs)
  expect(clock.now().getTime() - Date.now()).toBeCloseTo(10 * MINUTE_MS + tookMs / 2, -3)
})
