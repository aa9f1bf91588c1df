import { afterEach, describe, expect, it } from 'vitest'
import { storesAndMongo } from '../../../test/support/document-stores.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import type { DocumentStore } from '../ports/document-store.ts'
import { PrometheusMetrics } from '../telemetry/metrics.ts'
import type { Clock } from './clock.ts'
import { type Log, silentLog } from './log.ts'
import { TASK_LEASES, type Task, type TaskLease, Tasks } from './tasks.ts'

const DAY_MS = 24 * 3_600_000
/** Longer than a lease. */
const LEASE_OVER_MS = 31_000

/** A clock that stands still until the test moves it. */
class SteppedClock implements Clock {
  ms = 1_000_000
  /** The requested pauses, in milliseconds. */
  readonly pauses: number[] = []
  readonly #sleepers = new Set<{ readonly until: number; readonly wake: () => void }>()

  now() {
    return new Date(this.ms)
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.pauses.push(ms)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#sleepers.add({ until: this.ms + ms, wake: resolve })
    signal?.addEventListener('abort', () => reject(signal.reason))
    return promise
  }

  async advance(ms: number): Promise<void> {
    this.ms += ms
    for (const sleeper of this.#sleepers)
      if (sleeper.until <= this.ms) {
        this.#sleepers.delete(sleeper)
        sleeper.wake()
      }
  }

  /** Waits until all of `count` loops pause. */
  async paused(count = 1): Promise<void> {
    await eventually(() => this.#sleepers.size === count)
  }
}

const stops: (() => PromiseLike<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

/** Starts a process that runs the task until the test ends, or until it is stopped. */
function start(
  store: DocumentStore,
  clock: Clock,
  task: Task,
  { isExclusive = false, log = silentLog }: { isExclusive?: boolean; log?: Log } = {},
) {
  const metrics = new PrometheusMetrics()
  const stopping = new AbortController()
  const leases = store.collection<TaskLease>(TASK_LEASES)
  const running = new Tasks({ part: 'part', leases, isExclusive, clock, log, metrics }).run([task], stopping.signal)
  const stop = async () => {
    stopping.abort(new Error('the service stops'))
    await running
  }
  stops.push(stop)
  return { metrics, stop, leases }
}

describe('Task of each process', () => {
  it('is repeated with pauses that vary by a tenth, until the process stops', async () => {
    const clock = new SteppedClock()
    let rounds = 0
    const { stop } = start(new MemoryDocumentStore(), clock, { name: 'work', everyMs: 1_000, run: () => void rounds++ })
    for (let round = 1; round <= 50; round++) {
      await clock.paused()
      expect(rounds).toBe(round)
      await clock.advance(1_101)
    }
    await clock.paused()
    await stop()
    expect(Math.min(...clock.pauses)).toBeGreaterThanOrEqual(900)
    expect(Math.max(...clock.pauses)).toBeLessThanOrEqual(1_100)
    expect(new Set(clock.pauses).size).toBeGreaterThan(10)
    await clock.advance(5_000)
    expect(rounds).toBe(51)
  })

  it('continues after failures with longer pauses, reports them, and is late until it succeeds', async () => {
    const clock = new SteppedClock()
    const reported: string[] = []
    const log: Log = { ...silentLog, info: () => reported.push('info'), warn: () => reported.push('warn') }
    let isWell = false
    const run = async () => {
      if (!isWell) throw new Error('away')
    }
    const { metrics } = start(new MemoryDocumentStore(), clock, { name: 'work', everyMs: 500, run }, { log })
    for (let failures = 1; failures <= 7; failures++) {
      await clock.paused()
      const pause = clock.pauses.at(-1)!
      const due = Math.min(500 * 2 ** failures, 10_000)
      expect(pause).toBeGreaterThanOrEqual(due * 0.9)
      expect(pause).toBeLessThanOrEqual(due * 1.1)
      if (failures < 7) await clock.advance(12_000)
    }
    expect(reported).toEqual(['info', 'info', 'info', 'warn', 'warn', 'warn', 'warn'])
    expect(await metrics.text()).toContain('kis_task_late_seconds{task="part.work"} 71.45')
    expect(await metrics.text()).toContain('kis_task_seconds_count{task="part.work",outcome="failed"} 7')
    isWell = true
    await clock.advance(12_000)
    await clock.paused()
    expect(await metrics.text()).toContain('kis_task_late_seconds{task="part.work"} 0')
    expect(await metrics.text()).toContain('kis_task_seconds_count{task="part.work",outcome="done"} 1')
    expect(reported).toHaveLength(7)
  })

  it('ends immediately when the process stops during a round, and reports no failure', async () => {
    const begun = Promise.withResolvers<void>()
    const run = (signal: AbortSignal) => {
      begun.resolve()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }
    const log: Log = { ...silentLog, info: () => expect.unreachable() }
    const { stop } = start(new MemoryDocumentStore(), new SteppedClock(), { name: 'work', everyMs: 500, run }, { log })
    await begun.promise
    await stop()
  })

  it('takes no lease if no other process uses the store, unless it is so rare that a restart must remember it', async () => {
    const store = new MemoryDocumentStore()
    const leases = store.collection<TaskLease>(TASK_LEASES)
    const clock = new SteppedClock()
    let rounds = 0
    const task = { name: 'work', everyMs: 60_000, isShared: true, run: () => void rounds++ }
    const first = start(store, clock, task, { isExclusive: true })
    await clock.paused()
    expect([rounds, await leases.findOne({ _id: 'part.work' })]).toEqual([1, null])
    await first.stop()
    const rare = { ...task, everyMs: DAY_MS }
    for (const restart of [1, 2]) {
      const next = new SteppedClock()
      next.ms += restart
      const { stop } = start(store, next, rare, { isExclusive: true })
      await next.paused()
      await stop()
    }
    expect(rounds).toBe(2)
  })
})

function shared(name: string, open: () => Promise<DocumentStore>) {
  describe(`Shared task: ${name}`, () => {
    const opened = async () => {
      const store = await open()
      stops.push(() => store[Symbol.asyncDispose]())
      return store
    }
    const ofDay = (run: Task['run']): Task => ({ name: 'work', everyMs: DAY_MS, isShared: true, run })

    it('is run by one of several processes each time, and none of them is late', async () => {
      const store = await opened()
      const clock = new SteppedClock()
      let rounds = 0
      const processes = [1, 2, 3].map(() =>
        start(
          store,
          clock,
          ofDay(() => void rounds++),
        ),
      )
      await clock.paused(3)
      expect(rounds).toBe(1)
      await clock.advance(DAY_MS - 1_000)
      await clock.paused(3)
      expect(rounds).toBe(1)
      await clock.advance(DAY_MS * 0.2)
      await clock.paused(3)
      expect(rounds).toBe(2)
      await clock.advance(700_000)
      await clock.paused(3)
      for (const { metrics } of processes) expect(await metrics.text()).toContain('kis_task_late_seconds{task="part.work"} 0')
    })

    it('is run by another process when its own is killed', async () => {
      const store = await opened()
      const clock = new SteppedClock()
      let rounds = 0
      // The task never ends, and no code renews its lease on this clock: to the other processes it looks killed.
      start(
        store,
        clock,
        ofDay((signal) => new Promise((resolve) => signal.addEventListener('abort', resolve))),
      )
      const leases = store.collection<TaskLease>(TASK_LEASES)
      await eventually(async () => ((await leases.findOne({ _id: 'part.work' }))?.holder ?? null) !== null)
      start(
        store,
        clock,
        ofDay(() => void rounds++),
      )
      await clock.paused()
      expect(rounds).toBe(0)
      await clock.advance(LEASE_OVER_MS * 1.1)
      await clock.paused()
      expect(rounds).toBe(1)
    })

    it('is due again soon after a failure, in any process', async () => {
      const store = await opened()
      const [one, other] = [new SteppedClock(), new SteppedClock()]
      let rounds = 0
      const failing = start(
        store,
        one,
        ofDay(() => Promise.reject(new Error('no node serves'))),
      )
      await one.paused()
      await failing.stop()
      start(
        store,
        other,
        ofDay(() => void rounds++),
      )
      await other.paused()
      expect(rounds).toBe(0)
      await other.advance(700_000)
      await other.paused()
      expect(rounds).toBe(1)
    })

    it('is released by a process that stops', async () => {
      const store = await opened()
      const clock = new SteppedClock()
      const begun = Promise.withResolvers<void>()
      const run = (signal: AbortSignal) => {
        begun.resolve()
        return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      }
      const first = start(store, clock, ofDay(run))
      await begun.promise
      await first.stop()
      let rounds = 0
      start(
        store,
        clock,
        ofDay(() => void rounds++),
      )
      await eventually(() => rounds === 1)
    })

    it('runs although a wrong clock has scheduled it far ahead', async () => {
      const store = await opened()
      const clock = new SteppedClock()
      clock.ms = Date.UTC(2090, 0, 1)
      let rounds = 0
      const first = start(
        store,
        clock,
        ofDay(() => void rounds++),
      )
      await clock.paused()
      await first.stop()
      const right = new SteppedClock()
      start(
        store,
        right,
        ofDay(() => void rounds++),
      )
      await right.paused()
      expect(rounds).toBe(2)
    })
  })
}

for (const { name, open } of await storesAndMongo('Shared tasks')) if (name !== 'the fake') shared(name, open)
