import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CapacityExceeded, FairSemaphore } from './fair-semaphore.ts'

/** Resolves after all pending promise callbacks. */
const settled = () => new Promise((resolve) => setImmediate(resolve))
const none = new AbortController().signal

/** Acquires as many permits as the organization gets at once. */
function acquireAll(semaphore: FairSemaphore, organizationId: string): (() => void)[] {
  const releases: (() => void)[] = []
  for (let release = semaphore.tryAcquire(organizationId); release; release = semaphore.tryAcquire(organizationId)) releases.push(release)
  return releases
}

describe('Fair semaphore', () => {
  it('leaves one organization half of the slots, and the next ones half of the rest', () => {
    const semaphore = new FairSemaphore(200)
    expect(['a', 'b', 'c', 'd'].map((id) => acquireAll(semaphore, id).length)).toEqual([100, 50, 25, 13])
    const few = new FairSemaphore(4)
    expect(['a', 'b', 'c', 'd'].map((id) => acquireAll(few, id).length)).toEqual([2, 1, 1, 0])
    expect(few.isFull).toBe(true)
  })

  it('grants slots in turns to organizations that have equally few', async () => {
    const semaphore = new FairSemaphore(1, 10)
    const release = semaphore.tryAcquire('z')!
    const order: string[] = []
    const waiting = ['a', 'a', 'a', 'b', 'b', 'c'].map(async (id) => {
      const free = await semaphore.acquire(id, none)
      order.push(id)
      free()
    })
    release()
    await Promise.all(waiting)
    expect(order.join('')).toBe('abcaba')
  })

  it('informs a holder whether another organization waits', async () => {
    const semaphore = new FairSemaphore(1, 10)
    const release = semaphore.tryAcquire('a')!
    const own = semaphore.acquire('a', none)
    expect(semaphore.isWantedBeside('a')).toBe(false)
    const other = semaphore.acquire('b', none)
    expect([semaphore.isWantedBeside('a'), semaphore.isWantedBeside('b')]).toEqual([true, true])
    release()
    const free = [await own]
    expect([semaphore.isWantedBeside('a'), semaphore.isWantedBeside('b')]).toEqual([true, false])
    free[0]!()
    ;(await other)()
    expect(semaphore.isWantedBeside('a')).toBe(false)
  })

  it('grants slots to organizations without any first', async () => {
    const semaphore = new FairSemaphore(4, 10)
    const [first] = acquireAll(semaphore, 'a')
    const [other] = acquireAll(semaphore, 'b')
    semaphore.tryAcquire('c')
    const order: string[] = []
    for (const id of ['a', 'b', 'c', 'd']) semaphore.acquire(id, none).then(() => order.push(id))
    first!()
    other!()
    await settled()
    expect(order).toEqual(['d', 'b'])
  })

  it('refuses an organization with too many waiting, immediately, and drops disconnected callers', async () => {
    const semaphore = new FairSemaphore(1, 1)
    const release = semaphore.tryAcquire('a')!
    const stop = new AbortController()
    const left = semaphore.acquire('a', stop.signal)
    await expect(semaphore.acquire('a', none)).rejects.toBeInstanceOf(CapacityExceeded)
    const other = semaphore.acquire('b', none)
    stop.abort(new Error('left'))
    await expect(left).rejects.toThrow('left')
    await expect(semaphore.acquire('a', stop.signal)).rejects.toThrow('left')
    release()
    release()
    const free = await other
    expect(semaphore.tryAcquire('a')).toBeNull()
    free()
    expect(acquireAll(semaphore, 'a')).toHaveLength(1)
  })

  it('grants no slot to a caller who disconnects by the same signal', async () => {
    const semaphore = new FairSemaphore(1, 10)
    const caller = new AbortController()
    const release = semaphore.tryAcquire('a')!
    // A listener of the source runs before those of the signals that follow it.
    caller.signal.addEventListener('abort', release)
    const late = semaphore.acquire('a', AbortSignal.any([caller.signal, none]))
    caller.abort(new Error('gone'))
    await expect(late).rejects.toThrow('gone')
    expect(semaphore.tryAcquire('b')).not.toBeNull()
  })

  it('never exceeds its slots or the share of an organization, and everybody gets a turn', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.record({ organization: fc.constantFrom('a', 'b', 'c', 'd', 'e'), isRelease: fc.boolean() }), { maxLength: 60 }),
        async (count, steps) => {
          const semaphore = new FairSemaphore(count, 1_000)
          const held: { readonly organization: string; readonly release: () => void }[] = []
          let served = 0
          for (const { organization, isRelease } of steps) {
            if (isRelease) held.shift()?.release()
            await settled()
            const free = count - held.length
            const own = held.filter((one) => one.organization === organization).length
            const waited = semaphore.acquire(organization, none).then((release) => {
              held.push({ organization, release })
              served += 1
            })
            if (own < free) await waited
            expect(held.length).toBeLessThanOrEqual(count)
          }
          while (held.length > 0) {
            held.shift()!.release()
            await settled()
            expect(held.length).toBeLessThanOrEqual(count)
          }
          expect(served).toBe(steps.length)
        },
      ),
    )
  })
})
