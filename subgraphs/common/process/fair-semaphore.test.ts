import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CapacityExceeded, FairSemaphore } from './fair-semaphore.ts'

/** All that waits for nothing but promises. */
const settled = () => new Promise((resolve) => setImmediate(resolve))
const none = new AbortController().signal

/** As many as the organization gets at once. */
function takeAll(places: FairSemaphore, organizationId: string): (() => void)[] {
  const taken: (() => void)[] = []
  for (let leave = places.tryAcquire(organizationId); leave; leave = places.tryAcquire(organizationId)) taken.push(leave)
  return taken
}

describe('places that organizations share', () => {
  it('leave one organization half of them, and the next ones half of the rest', () => {
    const places = new FairSemaphore(200)
    expect(['a', 'b', 'c', 'd'].map((id) => takeAll(places, id).length)).toEqual([100, 50, 25, 13])
    const few = new FairSemaphore(4)
    expect(['a', 'b', 'c', 'd'].map((id) => takeAll(few, id).length)).toEqual([2, 1, 1, 0])
    expect(few.isFull).toBe(true)
  })

  it('are given in turns to organizations that have equally few', async () => {
    const places = new FairSemaphore(1, 10)
    const leave = places.tryAcquire('z')!
    const order: string[] = []
    const waiting = ['a', 'a', 'a', 'b', 'b', 'c'].map(async (id) => {
      const free = await places.acquire(id, none)
      order.push(id)
      free()
    })
    leave()
    await Promise.all(waiting)
    expect(order.join('')).toBe('abcaba')
  })

  it('tell who has one whether another organization waits', async () => {
    const places = new FairSemaphore(1, 10)
    const leave = places.tryAcquire('a')!
    const own = places.acquire('a', none)
    expect(places.isWantedBeside('a')).toBe(false)
    const other = places.acquire('b', none)
    expect([places.isWantedBeside('a'), places.isWantedBeside('b')]).toEqual([true, true])
    leave()
    const free = [await own]
    expect([places.isWantedBeside('a'), places.isWantedBeside('b')]).toEqual([true, false])
    free[0]!()
    ;(await other)()
    expect(places.isWantedBeside('a')).toBe(false)
  })

  it('are given to who has none before who has some', async () => {
    const places = new FairSemaphore(4, 10)
    const [first] = takeAll(places, 'a')
    const [other] = takeAll(places, 'b')
    places.tryAcquire('c')
    const order: string[] = []
    for (const id of ['a', 'b', 'c', 'd']) places.acquire(id, none).then(() => order.push(id))
    first!()
    other!()
    await settled()
    expect(order).toEqual(['d', 'b'])
  })

  it('refuse who has too many waiting, at once, and forget who has left', async () => {
    const places = new FairSemaphore(1, 1)
    const leave = places.tryAcquire('a')!
    const stop = new AbortController()
    const left = places.acquire('a', stop.signal)
    await expect(places.acquire('a', none)).rejects.toBeInstanceOf(CapacityExceeded)
    const other = places.acquire('b', none)
    stop.abort(new Error('left'))
    await expect(left).rejects.toThrow('left')
    await expect(places.acquire('a', stop.signal)).rejects.toThrow('left')
    leave()
    leave()
    const free = await other
    expect(places.tryAcquire('a')).toBeNull()
    free()
    expect(takeAll(places, 'a')).toHaveLength(1)
  })

  it('are not given to who has left by the same signal', async () => {
    const places = new FairSemaphore(1, 10)
    const caller = new AbortController()
    const leave = places.tryAcquire('a')!
    // A listener of the source runs before those of the signals that follow it.
    caller.signal.addEventListener('abort', leave)
    const late = places.acquire('a', AbortSignal.any([caller.signal, none]))
    caller.abort(new Error('gone'))
    await expect(late).rejects.toThrow('gone')
    expect(places.tryAcquire('b')).not.toBeNull()
  })

  it('are never more than there are, no organization has more than its share when it takes one, and everybody has a turn', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.record({ organization: fc.constantFrom('a', 'b', 'c', 'd', 'e'), leaves: fc.boolean() }), { maxLength: 60 }),
        async (count, steps) => {
          const places = new FairSemaphore(count, 1_000)
          const held: { readonly organization: string; readonly leave: () => void }[] = []
          let served = 0
          for (const { organization, leaves } of steps) {
            if (leaves) held.shift()?.leave()
            await settled()
            const free = count - held.length
            const own = held.filter((one) => one.organization === organization).length
            const waited = places.acquire(organization, none).then((leave) => {
              held.push({ organization, leave })
              served += 1
            })
            if (own < free) await waited
            expect(held.length).toBeLessThanOrEqual(count)
          }
          while (held.length > 0) {
            held.shift()!.leave()
            await settled()
            expect(held.length).toBeLessThanOrEqual(count)
          }
          expect(served).toBe(steps.length)
        },
      ),
    )
  })
})
