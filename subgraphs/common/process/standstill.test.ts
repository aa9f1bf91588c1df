import { expect, it, onTestFinished, vi } from 'vitest'
import { hasJustStoodStill } from './standstill.ts'

it('knows for a moment after a long standstill, and not after a short one', () => {
  vi.useFakeTimers({ toFake: ['setInterval'] })
  let nowMs = 1_000
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  onTestFinished(() => {
    clock.mockRestore()
    vi.useRealTimers()
  })
  const after = (ms: number) => {
    nowMs += ms
    return hasJustStoodStill()
  }
  expect([after(0), after(3_000), after(3_000)]).toEqual([false, false, false])
  expect([after(5_000), after(500), after(600)]).toEqual([true, true, false])
})
