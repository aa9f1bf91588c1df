import { describe, expect, it, vi } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import type { KeyRates } from '../../../common/identity/principal.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { silentLog } from '../../../common/process/log.ts'
import { type KeyRateRecord, openCollections } from '../tables.ts'
import { isFree } from './rate-usage.ts'
import { SharedRates } from './shared-rates.ts'

const key = (requestsPerMinute: number | null, tokensPerMinute: number | null = null): KeyRates => ({
  apiKeyId: 'key_a',
  requestsPerMinute,
  tokensPerMinute,
})

/** Processes on one store and one clock, which the test moves. */
function processes(count: number) {
  const records = openCollections(new MemoryDocumentStore()).keyRates
  let now = 1_000_000
  let storeCalls = 0
  let isAway = false
  let hangs: Promise<void> | undefined
  const watched = new Proxy(records, {
    get(target, property) {
      const found = Reflect.get(target, property)
      if (typeof found !== 'function') return found
      return async (...args: unknown[]) => {
        storeCalls++
        await hangs
        if (isAway) throw new Error('the store is away')
        return found.apply(target, args)
      }
    },
  }) as DocumentCollection<KeyRateRecord>
  const clock = { ...systemClock, now: () => new Date(now) }
  const all = Array.from({ length: count }, () => new SharedRates(watched, () => count, clock, silentLog))
  return {
    all,
    records,
    advance(ms: number) {
      now += ms
    },
    setAway(away: boolean) {
      isAway = away
    },
    hang(until: Promise<void> | undefined) {
      hangs = until
    },
    get storeCalls() {
      return storeCalls
    },
  }
}

/** Waits until the processes have written their reports to the store in the background. */
const backgroundSync = () => new Promise((resolve) => setTimeout(resolve, 20))

async function countAdmitted(calls: Iterable<SharedRates>, rates: KeyRates, tokens = 0): Promise<number> {
  const waits = await Promise.all(Array.from(calls, (process) => process.consume(rates, tokens)))
  return waits.filter(isFree).length
}

function* roundRobin(all: readonly SharedRates[], calls: number) {
  for (let i = 0; i < calls; i++) yield all[i % all.length]!
}

describe('Shared request limits of a key', () => {
  it.each([
    { limit: 1, processes: 3 },
    { limit: 7, processes: 2 },
    { limit: 60, processes: 3 },
    { limit: 600, processes: 3 },
    { limit: 6_000, processes: 3 },
  ])('of $limit a minute admit as many over $processes processes, on any process', async ({ limit, processes: count }) => {
    for (const spread of ['all at once', 'one after the other', 'at one process'] as const) {
      const { all } = processes(count)
      let admitted = 0
      if (spread === 'all at once') admitted = await countAdmitted(roundRobin(all, limit * 2), key(limit))
      else
        for (const process of roundRobin(spread === 'at one process' ? all.slice(0, 1) : all, limit + 200))
          if (isFree(await process.consume(key(limit), 0))) admitted++
      expect(Math.abs(admitted - limit), spread).toBeLessThanOrEqual(limit * 0.05)
    }
  })

  it('then admit at the rate of the limit, whichever process had the first minute', async () => {
    const { all, advance } = processes(3)
    expect(await countAdmitted(roundRobin(all.slice(0, 1), 1_000), key(600))).toBeGreaterThanOrEqual(570)
    let admitted = 0
    for (let second = 0; second < 60; second++) {
      advance(1_000)
      for (const process of roundRobin(all, 30)) if (isFree(await process.consume(key(600), 0))) admitted++
    }
    expect(Math.abs(admitted - 600)).toBeLessThanOrEqual(30)
  })

  it('if small, report to every process what is left, and when the next request fits', async () => {
    const { all, advance } = processes(2)
    const [first, second] = all as [SharedRates, SharedRates]
    for (const [process, remaining] of [
      [first, 2],
      [second, 1],
      [first, 0],
    ] as const) {
      expect(isFree(await process.consume(key(3), 0))).toBe(true)
      expect(process.read(key(3))).toEqual({ requests: { limit: 3, remaining, resetMs: (3 - remaining) * 20_000 }, tokens: null })
    }
    for (const process of all) expect(await process.consume(key(3), 0)).toEqual({ requestMs: 20_000, tokenMs: 0 })
    advance(19_999)
    for (const process of all) expect(await process.consume(key(3), 0)).toEqual({ requestMs: 1, tokenMs: 0 })
    advance(1)
    expect(isFree(await second.consume(key(3), 0))).toBe(true)
    expect(await first.consume(key(3), 0)).toEqual({ requestMs: 20_000, tokenMs: 0 })
  })

  it('if large, report what is left, whichever process took it', async () => {
    const { all, advance } = processes(2)
    const [first, second] = all as [SharedRates, SharedRates]
    await second.consume(key(6_000), 0)
    await countAdmitted(roundRobin([first], 3_000), key(6_000))
    advance(501)
    await second.consume(key(6_000), 0)
    await backgroundSync()
    for (const process of all) expect(Math.abs(process.read(key(6_000))!.requests!.remaining - 3_049)).toBeLessThanOrEqual(300)
  })

  it('need no store query for each call, nor for each refusal', async () => {
    const under = processes(2)
    for (const process of roundRobin(under.all, 6_000)) await process.consume(key(6_000), 0)
    expect(under.storeCalls).toBeLessThan(600)
    const before = under.storeCalls
    for (const process of roundRobin(under.all, 5_000)) await process.consume(key(6_000), 0)
    expect(under.storeCalls - before).toBeLessThan(300)
    const without = processes(2)
    for (const process of roundRobin(without.all, 100)) await process.consume(key(null), 0)
    expect(without.storeCalls).toBe(0)
  })

  it('free returned requests for all processes', async () => {
    const { all } = processes(2)
    const [first, second] = all as [SharedRates, SharedRates]
    expect(isFree(await first.consume(key(1), 0))).toBe(true)
    first.correct(key(1), -1, 0)
    await backgroundSync()
    expect(isFree(await second.consume(key(1), 0))).toBe(true)
  })
})

describe('Shared token limits of a key', () => {
  it('count the tokens of all processes, corrected by the use', async () => {
    const { all, advance } = processes(2)
    const [first, second] = all as [SharedRates, SharedRates]
    const rates = key(null, 1_000)
    expect(isFree(await first.consume(rates, 600))).toBe(true)
    // The first process has reserved 12 tokens ahead.
    expect(await second.consume(rates, 600)).toEqual({ requestMs: 0, tokenMs: 12_720 })
    first.correct(rates, 0, -500)
    await backgroundSync()
    // A process does not query the store for each call that it refuses.
    advance(100)
    expect(isFree(await second.consume(rates, 600))).toBe(true)
    second.correct(rates, 0, 900)
    await backgroundSync()
    // 100 + 600 + 900 exceed the limit by 600.
    const { tokenMs } = await first.consume(rates, 100)
    expect(tokenMs).toBeGreaterThanOrEqual(41_900)
    expect(tokenMs).toBeLessThanOrEqual(43_500)
  })

  it('remain taken during calls of descendants, which know only the other limit', async () => {
    const { all, advance } = processes(3)
    const [first, second, third] = all as [SharedRates, SharedRates, SharedRates]
    expect(isFree(await first.consume(key(600, 1_000), 600))).toBe(true)
    for (const process of [first, second]) for (let i = 0; i < 20; i++) expect(isFree(await process.consume(key(600), 0))).toBe(true)
    await backgroundSync()
    expect((await third.consume(key(600, 1_000), 600)).tokenMs).toBeGreaterThan(10_000)
    // The meters drain meanwhile, too.
    advance(12_000)
    expect(isFree(await second.consume(key(600), 0))).toBe(true)
    await backgroundSync()
    advance(3_000)
    expect(isFree(await third.consume(key(600, 1_000), 600))).toBe(true)
  })

  it('are taken together with the request or not at all', async () => {
    const { all } = processes(2)
    const [first, second] = all as [SharedRates, SharedRates]
    const rates = key(10, 100)
    await first.consume(rates, 90)
    for (let i = 0; i < 10; i++) await second.consume(rates, 50)
    expect(second.read(rates)!.requests!.remaining).toBe(9)
  })
})

describe('Shared rate limits without the store', () => {
  it('a process admits its share of the last known rest, and reports it when the store is back', async () => {
    const { all, setAway, advance } = processes(2)
    const [first, second] = all as [SharedRates, SharedRates]
    expect(await countAdmitted(roundRobin(all, 20), key(60))).toBe(20)
    advance(200)
    for (const process of all) await process.consume(key(60), 0)
    setAway(true)
    advance(200)
    for (const process of all) expect(await countAdmitted(roundRobin([process], 60), key(60))).toBeLessThanOrEqual(20)
    advance(2_000)
    setAway(false)
    expect(await countAdmitted(roundRobin([first], 60), key(60))).toBeLessThanOrEqual(5)
    expect(await countAdmitted(roundRobin([second], 60), key(60))).toBeLessThanOrEqual(5)
    advance(60_000)
    expect(await countAdmitted(roundRobin(all, 100), key(60))).toBe(60)
  })

  it('a call waits for the store half a second, and the next ones not at all', async () => {
    const under = processes(2)
    const { all, hang, advance } = under
    const back = Promise.withResolvers<void>()
    hang(back.promise)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const first = all[0]!.consume(key(60), 0)
      await vi.advanceTimersByTimeAsync(500)
      expect(isFree(await first)).toBe(true)
    } finally {
      vi.useRealTimers()
    }
    const next = Array.from({ length: 60 }, () => all[0]!.consume(key(60), 0))
    expect(next.some((waits) => waits instanceof Promise)).toBe(false)
    expect(next.filter((waits) => isFree(waits as Exclude<typeof waits, Promise<unknown>>))).toHaveLength(29)
    hang(undefined)
    back.resolve()
    await backgroundSync()
    advance(1_001)
    // The process has admitted 30, each of which counts for two processes.
    expect(await countAdmitted(roundRobin(all, 60), key(60))).toBeLessThanOrEqual(2)
  })
})

it('deletes keys that have nothing taken', async () => {
  const { all, records, advance } = processes(1)
  await all[0]!.consume(key(60), 0)
  await all[0]!.purgeIdle()
  expect(await records.countDocuments({}, { limit: 10 })).toBe(1)
  advance(62_000)
  await all[0]!.purgeIdle()
  expect(await records.countDocuments({}, { limit: 10 })).toBe(0)
  expect(await countAdmitted(roundRobin(all, 100), key(60))).toBe(60)
})

it('drains nothing twice when the clocks of processes differ', async () => {
  const records = openCollections(new MemoryDocumentStore()).keyRates
  const all = [0, 2_000].map(
    (aheadMs) => new SharedRates(records, () => 2, { ...systemClock, now: () => new Date(1_000_000 + aheadMs) }, silentLog),
  )
  expect(Math.abs((await countAdmitted(roundRobin(all, 200), key(60))) - 60)).toBeLessThanOrEqual(3)
})
