import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { FairQueue } from './fair-queue.ts'

const NEVER = new AbortController().signal

/** A queue whose jobs take a scripted time. */
function timed() {
  let nowMs = 0
  const queue = new FairQueue(() => nowMs)
  const ending = new AbortController()
  const order: string[] = []
  /** Runs a call with this many jobs. */
  const run = (
    organizationId: string,
    jobs: number,
    jobMs: number,
    { isQuery = false, name = organizationId, signal = ending.signal } = {},
  ) =>
    Promise.all(
      Array.from({ length: jobs }, () =>
        queue.run({ organizationId, isQuery, size: jobs }, signal, async () => {
          await nextTick()
          nowMs += jobMs
          order.push(name)
        }),
      ),
    )
  return { end: () => ending.abort(), order, run }
}

it('serves a small call before the rest of an earlier large one', async () => {
  const { order, run } = timed()
  const large = run('a', 20, 40, { name: 'large' })
  await nextTick()
  const before = order.length
  await run('a', 2, 40, { name: 'small' })
  expect(order.slice(before).filter((name) => name === 'large').length).toBeLessThanOrEqual(1)
  await large
  expect(order).toHaveLength(22)
})

it('shares the time fairly between organizations, whatever the size of their queues', async () => {
  const { end, order, run } = timed()
  const flood = Array.from({ length: 50 }, (_, i) => run('a', 1 + (i % 20), 40))
  await nextTick()
  const before = order.length
  await run('b', 16, 20)
  expect(order.slice(before).filter((id) => id === 'a').length).toBeLessThanOrEqual(16 / 2 + 1)
  // An organization that comes back does not get the time of its absence.
  await run('c', 3, 40)
  expect(order.slice(-6).filter((id) => id === 'c')).toHaveLength(3)
  end()
  await Promise.allSettled(flood)
})

it('makes a light user wait for one job at most, every time and with any number of busy users', async () => {
  const { end, order, run } = timed()
  const flood = Array.from({ length: 20 }, (_, i) => run(`busy ${i}`, 1_000, 40))
  await nextTick()
  for (let search = 0; search < 10; search++) {
    for (let tick = 0; tick < 30; tick++) await nextTick()
    const before = order.length
    await run('search', 12, 1)
    expect(order.slice(before).filter((id) => id !== 'search').length).toBeLessThanOrEqual(1)
  }
  end()
  await Promise.allSettled(flood)
})

it('makes a query wait for the running job only, even for a busy organization and among many queries', async () => {
  const { end, order, run } = timed()
  const flood = Array.from({ length: 20 }, (_, i) => run(`busy ${i}`, 1_000, 80))
  for (let tick = 0; tick < 30; tick++) await nextTick()
  const before = order.length
  await Promise.all(Array.from({ length: 20 }, (_, i) => run(`busy ${i}`, 1, 10, { isQuery: true, name: 'query' })))
  expect(order.slice(before).filter((id) => id !== 'query').length).toBeLessThanOrEqual(1)
  end()
  await Promise.allSettled(flood)
})

it('runs documents beside endless queries, with a fair share of the time', async () => {
  const { end, order, run } = timed()
  const queries = Array.from({ length: 1_000 }, () => run('a', 1, 100, { isQuery: true, name: 'query' }))
  await nextTick()
  const before = order.length
  await run('b', 10, 80)
  expect(order.slice(before).filter((id) => id === 'query').length).toBeLessThanOrEqual(10 * 3 + 1)
  end()
  await Promise.allSettled(queries)
})

it('limits repeated callers to their share', async () => {
  const { end, order, run } = timed()
  const flood = run('a', 1_000, 40)
  await nextTick()
  for (let again = 0; again < 50; again++) await run('b', 1, 40)
  expect(order.filter((id) => id === 'a').length).toBeGreaterThanOrEqual(45)
  end()
  await Promise.allSettled([flood])
})

it('finishes a large call beside endless small ones', async () => {
  const { run } = timed()
  let isOver = false
  const feed = async () => {
    while (!isOver) await run('a', 1, 1)
  }
  const feeding = [feed(), feed()]
  await run('a', 30, 1)
  isOver = true
  await Promise.all(feeding)
})

it('starts no job of a cancelled call and continues with the others', async () => {
  const { order, run } = timed()
  const controller = new AbortController()
  const reason = new Error('the caller has disconnected')
  const cancelled = run('a', 100, 1, { name: 'cancelled', signal: controller.signal })
  const other = run('a', 150, 1, { name: 'other' })
  while (order.length < 2) await nextTick()
  controller.abort(reason)
  await expect(cancelled).rejects.toBe(reason)
  await other
  expect(order.filter((name) => name === 'cancelled').length).toBeLessThanOrEqual(3)
  await expect(run('a', 1, 1, { signal: controller.signal })).rejects.toBe(reason)
})

it('fails only the job that fails', async () => {
  const queue = new FairQueue()
  const job = { organizationId: 'a', isQuery: false, size: 1 }
  const failing = queue.run(job, NEVER, () => {
    throw new Error('no')
  })
  const other = queue.run(job, NEVER, () => 'done')
  await expect(failing).rejects.toThrow('no')
  expect(await other).toBe('done')
})
