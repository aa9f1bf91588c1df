import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { renewWhile } from './renew-while.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

it('renews until it is disposed, and reports lost and failed renewals', async () => {
  const reported: string[] = []
  const outcomes = [async () => true, async () => Promise.reject(new Error('away')), async () => false, async () => true]
  const renew = () => {
    reported.push('renewed')
    return outcomes.shift()!()
  }
  const failed = (error: unknown) => reported.push((error as Error).message)
  const renewing = renewWhile({ everyMs: 1_000, renew, lost: () => reported.push('lost'), failed })
  for (let round = 0; round < 3; round++) await vi.advanceTimersByTimeAsync(1_000)
  renewing[Symbol.dispose]()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(reported).toEqual(['renewed', 'renewed', 'away', 'renewed', 'lost'])
})
