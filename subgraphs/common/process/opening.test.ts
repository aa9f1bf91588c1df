import { expect, it } from 'vitest'
import { ServiceUnavailable } from '../errors.ts'
import type { Clock } from './clock.ts'
import { Opening, Unfit } from './opening.ts'

interface Numbers {
  next(): Promise<number>
}

/** A clock that advances only by `step`. It records the requested waits. */
class StepClock implements Clock {
  readonly waits: number[] = []
  #wake: (() => void) | undefined

  now(): Date {
    return new Date(0)
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.waits.push(ms)
    return new Promise((resolve, reject) => {
      this.#wake = resolve
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  }

  /** Wakes the current or next sleeper, and lets the following work finish. */
  async step(): Promise<void> {
    while (!this.#wake) await new Promise(setImmediate)
    this.#wake()
    this.#wake = undefined
    await new Promise(setImmediate)
  }
}

function opening<T>(open: () => Promise<T>, more: { readonly after?: Promise<unknown> } = {}) {
  const clock = new StepClock()
  const stopping = new AbortController()
  return { clock, stopping, opening: new Opening({ part: 'number store', open, clock, signal: stopping.signal, ...more }) }
}

const soon = () => AbortSignal.timeout(30_000)

it('fails with service_unavailable until it is open, then passes on the results of the store', async () => {
  const { promise, resolve } = Promise.withResolvers<Numbers>()
  const { opening: numbers } = opening(() => promise)
  const late = numbers.late((it) => it)
  await expect(late.next()).rejects.toMatchObject({ code: 'service_unavailable', retryAfterMs: expect.any(Number) })
  resolve({ next: async () => 7 })
  await numbers.opened
  expect(await late.next()).toBe(7)
  // The substitute must not be treated as a promise.
  expect(await (await Promise.resolve(late)).next()).toBe(7)
})

it('retries, reports the last failure, and opens without a caller', async () => {
  const found = [new Unfit(['it is too old', 'it is full']), new ServiceUnavailable('The store', { cause: new Error('no route') })]
  const { opening: numbers, clock } = opening(async () => {
    const error = found.shift()
    if (error) throw error
    return 7
  })
  expect(await numbers.problems(soon())).toEqual(['number store: it is too old', 'number store: it is full'])
  await clock.step()
  expect(await numbers.problems(soon())).toEqual(['number store: no route'])
  await clock.step()
  expect(await numbers.opened).toBe(7)
  expect(await numbers.problems(soon())).toEqual([])
})

it('waits longer from retry to retry, up to a limit, with jitter', async () => {
  const { clock, stopping } = opening(() => Promise.reject(new Unfit(['it is not there'])))
  for (let i = 0; i < 20; i++) await clock.step()
  stopping.abort()
  const longest = clock.waits.map((_, i) => Math.min(5_000, 200 * 2 ** i))
  for (const [i, waitMs] of clock.waits.entries()) {
    expect(waitMs).toBeGreaterThanOrEqual(longest[i]! / 2)
    expect(waitMs).toBeLessThanOrEqual(longest[i]!)
  }
  expect(new Set(clock.waits).size).toBe(clock.waits.length)
})

it('fails permanently with an error that waiting cannot fix', async () => {
  const { opening: numbers, clock } = opening(() => Promise.reject(new Error('another process has it')))
  await expect(numbers.opened).rejects.toThrow('another process has it')
  expect(clock.waits).toEqual([])
})

it('waits for the first attempt no longer than configured', async () => {
  const { opening: numbers } = opening(() => new Promise<number>(() => undefined))
  expect(await numbers.problems(AbortSignal.timeout(1))).toEqual(['number store: no response yet'])
})

it('starts after its dependency, whose failure alone is reported until then', async () => {
  const before = Promise.withResolvers<void>()
  const { opening: numbers } = opening(async () => 7, { after: before.promise })
  expect(await numbers.problems(soon())).toEqual([])
  before.resolve()
  expect(await numbers.opened).toBe(7)
})

it('reports when an open store does not respond', async () => {
  let isLost = true
  const { opening: numbers } = opening(async () => ({ ping: async () => (isLost ? Promise.reject(new Error('gone')) : undefined) }))
  await numbers.opened
  expect(await numbers.problems(soon())).toEqual(['number store: it does not respond'])
  isLost = false
  expect(await numbers.problems(soon())).toEqual([])
})

it('ends immediately, and closes what a pending attempt opens later', async () => {
  const { promise, resolve } = Promise.withResolvers<AsyncDisposable>()
  const closed = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const { opening: store, stopping } = opening(() => {
    begun.resolve()
    return promise
  })
  await begun.promise
  stopping.abort(new Error('the service stops'))
  await expect(store.opened).rejects.toThrow('the service stops')
  await store[Symbol.asyncDispose]()
  resolve({ [Symbol.asyncDispose]: async () => closed.resolve() })
  await closed.promise
})

it('closes what it opened', async () => {
  const closed: string[] = []
  const { opening: store } = opening(async () => ({ [Symbol.asyncDispose]: async () => void closed.push('store') }))
  await store.opened
  await store[Symbol.asyncDispose]()
  expect(closed).toEqual(['store'])
})
