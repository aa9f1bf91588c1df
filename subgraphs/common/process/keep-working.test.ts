import { expect, it } from 'vitest'
import { type Clock, systemClock } from './clock.ts'
import { keepWorking } from './keep-working.ts'

/** Records how long each pause was to be, and takes no time. */
function recordingClock() {
  const pauses: number[] = []
  const clock = { now: () => new Date(0), sleep: async (ms: number) => void pauses.push(ms) }
  return { clock, pauses }
}

it('works until the signal aborts, with a pause after each round', async () => {
  const { clock, pauses } = recordingClock()
  const stopping = new AbortController()
  let rounds = 0
  const round = () => {
    if (++rounds === 3) stopping.abort()
  }
  await keepWorking(round, { clock, pauseMs: 7, failed: () => expect.unreachable() }, stopping.signal)
  expect([rounds, pauses]).toEqual([3, [7, 7, 7]])
})

it('goes on after a round that fails, and counts the failures in a row', async () => {
  const { clock, pauses } = recordingClock()
  const stopping = new AbortController()
  const told: unknown[] = []
  const results = [new Error('a'), new Error('b'), null, new Error('c'), null]
  const round = async () => {
    const error = results.shift()
    if (results.length === 0) stopping.abort()
    if (error) throw error
  }
  const failed = (error: unknown, failures: number) => told.push([(error as Error).message, failures])
  await keepWorking(round, { clock, pauseMs: (failures) => 10 * 2 ** failures, failed }, stopping.signal)
  expect(told).toEqual([
    ['a', 1],
    ['b', 2],
    ['c', 1],
  ])
  expect(pauses).toEqual([20, 40, 10, 20, 10])
})

it('does not work once the signal has aborted, and tells of no failure that the abort made', async () => {
  const { clock } = recordingClock()
  const stopping = new AbortController()
  let rounds = 0
  const round = async () => {
    rounds++
    stopping.abort()
    stopping.signal.throwIfAborted()
  }
  const rules = { clock, pauseMs: 1, failed: () => expect.unreachable() }
  await keepWorking(round, rules, stopping.signal)
  await keepWorking(round, rules, stopping.signal)
  expect(rounds).toBe(1)
})

it('ends at once when the signal aborts a pause', async () => {
  const stopping = new AbortController()
  const paused = Promise.withResolvers<void>()
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => {
      paused.resolve()
      return systemClock.sleep(ms, signal)
    },
  }
  const working = keepWorking(() => undefined, { clock, pauseMs: 1e9, failed: () => expect.unreachable() }, stopping.signal)
  await paused.promise
  stopping.abort()
  await working
})
