import { setImmediate as nextTick } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { LoadShedder } from './load-shedder.ts'

/** Returns a key of one repeated letter. */
const createKey = (letter: string) => `kis_live_${letter.repeat(36)}`
const BUSY = createKey('b')
const QUIET = createKey('q')

function loadShedder() {
  const queue = { ageMs: 0, isStanding: false, stands: () => queue.isStanding }
  const time = { nowMs: 0 }
  const it = new LoadShedder(queue, () => time.nowMs)
  for (const key of [BUSY, QUIET]) it.recognise(key)
  // Requests of one key, none of which ends.
  for (let i = 0; i < 8; i++) it.enter(BUSY, '', () => {})
  const isRefused = (key = BUSY, address = '192.0.2.1') => {
    try {
      it.enter(key, address, () => {})
      return false
    } catch (error) {
      expect(error).toMatchObject({ code: 'service_unavailable', retryAfterMs: 2_000, shouldRetry: true })
      return true
    }
  }
  return { loadShedder: it, queue, time, isRefused }
}

describe('Load shedder', () => {
  it('admits a whole burst, however old its queue gets', () => {
    const { queue, isRefused } = loadShedder()
    queue.ageMs = 2_500
    expect(Array.from({ length: 1_000 }, () => isRefused())).not.toContain(true)
  })

  it('starts a burst in order, eight requests per event-loop tick', async () => {
    const { loadShedder: it } = loadShedder()
    const started: number[] = []
    const releases = Array.from({ length: 20 }, (_, i) => it.enter(BUSY, '', () => started.push(i)))
    const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)
    expect(started).toEqual(numbers(8))
    // This client disconnects.
    releases[9]!()
    await nextTick()
    expect(started).toEqual(numbers(17).filter((i) => i !== 9))
    await nextTick()
    expect(started).toEqual(numbers(20).filter((i) => i !== 9))
    it.enter(BUSY, '', () => started.push(20))
    expect(started.at(-1)).toBe(20)
  })

  it('starts requests of a key with few running ones immediately, whatever waits', () => {
    const { loadShedder: it, isRefused } = loadShedder()
    for (let i = 0; i < 100; i++) isRefused()
    let isStarted = false
    it.enter(QUIET, '', () => {
      isStarted = true
    })
    expect(isStarted).toBe(true)
  })

  it('refuses while a standing queue is older than 300 ms', () => {
    const { queue, isRefused } = loadShedder()
    Object.assign(queue, { isStanding: true, ageMs: 900 })
    expect(isRefused()).toBe(true)
    queue.ageMs = 150
    expect(isRefused()).toBe(false)
  })

  it('queues 32 requests while it sheds a queue, and others when those have started', async () => {
    const { queue, isRefused } = loadShedder()
    queue.isStanding = true
    const refused = () => Array.from({ length: 50 }, () => isRefused()).filter(Boolean).length
    expect(refused()).toBe(50 - 8 - 32)
    await nextTick()
    expect(refused()).toBe(50 - 8)
  })

  it('refuses while its own queue is older than 300 ms', () => {
    const { queue, time, isRefused } = loadShedder()
    queue.isStanding = true
    const refused = () => Array.from({ length: 10 }, () => isRefused()).filter(Boolean).length
    expect(refused()).toBe(0)
    time.nowMs += 301
    expect(refused()).toBe(10)
  })

  it('admits a key that has few requests in flight, whatever the others do', () => {
    const { loadShedder: it, queue, isRefused } = loadShedder()
    Object.assign(queue, { isStanding: true, ageMs: 900 })
    const ends = Array.from({ length: 8 }, () => it.enter(QUIET, '', () => {}))
    expect([isRefused(QUIET), isRefused(BUSY)]).toEqual([true, true])
    ends[0]!()
    ends[0]!()
    expect([isRefused(QUIET), isRefused(QUIET)]).toEqual([false, true])
  })

  it('counts an accepted access token by itself, and invented ones as one', () => {
    const { loadShedder: it, queue, isRefused } = loadShedder()
    Object.assign(queue, { isStanding: true, ageMs: 900 })
    const token = (name: string) => `Bearer eyJhbGciOiJSUzI1NiJ9.${Buffer.from(name).toString('base64url')}.c2lnbmF0dXJl`
    for (const name of ['a', 'b']) it.recognise(token(name))
    it.recognise('invented')
    expect(Array.from({ length: 100 }, (_, i) => isRefused(token(`invented ${i}`))).filter((refused) => !refused)).toHaveLength(8)
    for (const name of ['a', 'b']) {
      const refused = Array.from({ length: 10 }, (_, i) => isRefused(i % 2 ? token(name) : token(name).replace('Bearer ', '')))
      expect(refused.filter((each) => !each)).toHaveLength(8)
    }
    expect(isRefused('x.'.repeat(10_000))).toBe(true)
  })

  it('counts invented keys and sessions by client network, and an accepted one by itself', () => {
    const { loadShedder: it, queue, isRefused } = loadShedder()
    Object.assign(queue, { isStanding: true, ageMs: 900 })
    const accepted = (sent: readonly string[], address?: string) => sent.filter((key) => !isRefused(key, address)).length
    const letters = [...'cdefghijklmnop']
    const keys = letters.map((letter) => `Bearer ${createKey(letter)}`)
    const sessions = letters.map((letter) => `kis_session_${letter.repeat(43)}`)
    expect(accepted([...keys, ...sessions])).toBe(8)
    expect(accepted(keys, '192.0.2.2')).toBe(8)
    expect(accepted(sessions, '2001:db8::1')).toBe(8)
    expect(accepted(keys, '2001:db8::2')).toBe(0)
    it.recognise(keys[0]!)
    expect(accepted(Array.from({ length: 10 }, () => keys[0]!))).toBe(8)
  })

  it('continues to shed until nothing was refused for a second', () => {
    const { queue, time, isRefused } = loadShedder()
    Object.assign(queue, { isStanding: true, ageMs: 400 })
    expect(isRefused()).toBe(true)
    queue.isStanding = false
    time.nowMs += 900
    expect(isRefused()).toBe(true)
    time.nowMs += 1_001
    expect(isRefused()).toBe(false)
  })

  it('counts a key as one however it is sent, and everything that is not a key as one', () => {
    const { queue, isRefused } = loadShedder()
    Object.assign(queue, { isStanding: true, ageMs: 900 })
    for (const sent of [BUSY, `Bearer ${BUSY}`, `bEARER   ${BUSY} `, `Bearer\t${BUSY}`]) expect(isRefused(sent)).toBe(true)
    expect(Array.from({ length: 10 }, (_, i) => isRefused(`invented ${i}`)).filter(Boolean)).toHaveLength(2)
  })
})
