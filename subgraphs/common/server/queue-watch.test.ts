import { describe, expect, it, vi } from 'vitest'
import { silentLog } from '../process/log.ts'
import { QueueWatch } from './queue-watch.ts'

/** A watch whose clock and checks the test controls. */
function watched() {
  let nowMs = 0
  const warn = vi.fn()
  const info = vi.fn()
  const watch = new QueueWatch({ ...silentLog, warn, info } as never, () => nowMs)
  watch[Symbol.dispose]()
  return {
    watch,
    warn,
    info,
    /** Lets time pass, with a check every 20 ms. */
    pass(ms: number) {
      for (const endMs = nowMs + ms; nowMs < endMs; ) {
        nowMs += 20
        watch.check()
      }
    },
    /** Blocks the event loop for this time. */
    block(ms: number) {
      nowMs += ms
      watch.check()
    },
  }
}

describe('Queue watch', () => {
  it('finds no queue in a process that handles everything in time', () => {
    const { watch, pass } = watched()
    pass(10_000)
    expect([watch.ageMs, watch.stands()]).toEqual([0, false])
  })

  it('reports how long the oldest waiting request has waited', () => {
    const { watch, pass } = watched()
    watch.wait()()
    const first = watch.wait()
    pass(100)
    const second = watch.wait()
    pass(100)
    expect(watch.ageMs).toBe(200)
    first()
    expect(watch.ageMs).toBe(100)
    second()
    expect(watch.ageMs).toBe(0)
  })

  it('finds no queue if each wait is long by itself, as with a remote store', () => {
    const { watch, pass } = watched()
    const waitFor = (ms: number) => {
      const ended = watch.wait()
      pass(ms)
      ended()
    }
    for (let i = 0; i < 10; i++) waitFor(400)
    const ended = watch.wait()
    pass(800)
    expect(watch.ageMs).toBe(0)
    pass(100)
    expect(watch.ageMs).toBe(100)
    ended()
  })

  it('uses the shortest of five waits as the time without a queue, at most half a second', () => {
    const { watch, pass } = watched()
    const ageAfter = (ms: number) => {
      const ended = watch.wait()
      pass(ms)
      const { ageMs } = watch
      ended()
      return ageMs
    }
    ageAfter(100)
    for (let i = 0; i < 4; i++) ageAfter(2_000)
    expect(ageAfter(2_000)).toBe(1_800)
    expect(ageAfter(2_000)).toBe(1_000)
  })

  it('does not learn from requests that waited behind others', () => {
    const { watch, pass } = watched()
    const first = watch.wait()
    pass(100)
    const second = watch.wait()
    first()
    pass(1_000)
    const third = watch.wait()
    second()
    pass(400)
    expect(watch.ageMs).toBe(200)
    third()
  })

  it('reports a standing queue after 1.5 s of old requests, and no longer a second after it is empty', () => {
    const { watch, pass } = watched()
    pass(5_000)
    const ended = watch.wait()
    pass(1_700)
    expect(watch.stands()).toBe(false)
    pass(200)
    expect(watch.stands()).toBe(true)
    ended()
    pass(1_100)
    expect(watch.stands()).toBe(false)
  })

  it('reports one that empties between clients who return together, and none that is rare', () => {
    const often = watched()
    for (let i = 0; i < 5; i++) {
      often.block(600)
      often.pass(400)
    }
    expect(often.watch.stands()).toBe(true)

    const seldom = watched()
    for (let i = 0; i < 5; i++) {
      seldom.block(600)
      seldom.pass(1_200)
    }
    expect(seldom.watch.stands()).toBe(false)
  })

  it('does not mistake one long pause for a standing queue', () => {
    const { watch, pass, block } = watched()
    pass(5_000)
    block(8_000)
    pass(100)
    expect(watch.stands()).toBe(false)
  })

  it('does not mistake the pauses of a start for a queue', () => {
    const { watch, pass, block } = watched()
    for (const pauseMs of [400, 1_800, 350, 900]) {
      block(pauseMs)
      pass(100)
    }
    for (let request = 0; request < 100; request++) expect(watch.stands()).toBe(false)
  })

  it('does not mistake a small constant event-loop delay for a queue', () => {
    const { watch, block } = watched()
    for (let i = 0; i < 100; i++) block(100)
    expect(watch.stands()).toBe(false)
  })

  it('logs what was in flight when the event loop was blocked, the newest first, at most once a second', () => {
    const { watch, warn, pass, block } = watched()
    watch.start('ListModels')
    pass(100)
    watch.start('Search')
    watch.start('ListKeys')()
    block(500)
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      { blockedMs: 480, operations: ['Search (500 ms)', 'ListKeys (500 ms)', 'ListModels (600 ms)'], inFlight: 2 },
      'the event loop was blocked',
    )
    block(300)
    expect(warn).toHaveBeenCalledTimes(1)
    pass(1_000)
    block(300)
    expect(warn).toHaveBeenCalledTimes(2)
  })

  it('warns of nothing while there is nothing to name, as at a start', () => {
    const { watch, warn, info, pass, block } = watched()
    block(2_000)
    expect([warn.mock.calls.length, info.mock.calls.length]).toEqual([0, 1])
    pass(1_000)
    watch.start('Search')
    block(2_000)
    expect([warn.mock.calls.length, info.mock.calls.length]).toEqual([1, 1])
  })

  it('names a real pause', async () => {
    const warn = vi.fn()
    using watch = new QueueWatch({ ...silentLog, warn } as never)
    watch.start('Slow')
    for (const until = performance.now() + 400; performance.now() < until; );
    await vi.waitFor(() => expect(warn).toHaveBeenCalled(), { timeout: 10_000 })
    expect(warn.mock.calls[0]![0].operations[0]).toMatch(/^Slow \(\d+ ms\)$/)
  })
})
