import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { JobCancelled, StepQueue } from './step-queue.ts'

it('serves a short job before the rest of a long one that came first', async () => {
  const queue = new StepQueue()
  const order: string[] = []
  const long = queue.run(1, 'a', 20, (index) => void order.push(`long ${index}`))
  await nextTurn()
  const short = queue.run(2, 'a', 1, () => void order.push('short'))
  await short
  expect(order.length).toBeLessThan(20)
  await long
  expect(order.filter((entry) => entry !== 'short')).toEqual(Array.from({ length: 20 }, (_, index) => `long ${index}`))
})

/** A queue whose steps take as long as they say. */
function timed() {
  let nowMs = 0
  const queue = new StepQueue(() => nowMs)
  const order: string[] = []
  let jobs = 0
  const run = (organizationId: string, steps: number, stepMs: number) =>
    queue.run(jobs++, organizationId, steps, () => {
      nowMs += stepMs
      order.push(organizationId)
    })
  return { queue, order, run }
}

it('shares the time between organizations, however much one has asked for', async () => {
  const { queue, order, run } = timed()
  const flood = Array.from({ length: 50 }, (_, i) => run('a', 1 + (i % 20), 40))
  await nextTurn()
  const before = order.length
  await run('b', 16, 20)
  expect(order.slice(before).filter((id) => id === 'a').length).toBeLessThanOrEqual(16 / 2 + 1)
  // One that comes back does not get the time for which it was away.
  await run('c', 3, 40)
  expect(order.slice(-6).filter((id) => id === 'c')).toHaveLength(3)
  queue.cancelAll()
  await Promise.allSettled(flood)
})

it('lets who asks for little wait for one step, however many others are busy, and again each time', async () => {
  const { queue, order, run } = timed()
  const flood = Array.from({ length: 20 }, (_, i) => run(`busy ${i}`, 1_000, 40))
  await nextTurn()
  for (let search = 0; search < 10; search++) {
    for (let turn = 0; turn < 30; turn++) await nextTurn()
    const before = order.length
    await run('search', 12, 1)
    expect(order.slice(before).filter((id) => id !== 'search').length).toBeLessThanOrEqual(1)
  }
  queue.cancelAll()
  await Promise.allSettled(flood)
})

it('gives nobody more than a share who comes again and again', async () => {
  const { queue, order, run } = timed()
  const flood = run('a', 1_000, 40)
  await nextTurn()
  for (let again = 0; again < 50; again++) await run('b', 1, 40)
  expect(order.filter((id) => id === 'a').length).toBeGreaterThanOrEqual(45)
  queue.cancelAll()
  await Promise.allSettled([flood])
})

it('finishes a long job although short ones never end', async () => {
  const queue = new StepQueue()
  let over = false
  let id = 2
  const feed = async () => {
    while (!over) await queue.run(id++, 'a', 1, () => undefined)
  }
  const feeding = [feed(), feed()]
  await queue.run(1, 'a', 30, () => undefined)
  over = true
  await Promise.all(feeding)
})

it('begins no step of a cancelled job and goes on with the others', async () => {
  const queue = new StepQueue()
  let steps = 0
  const cancelled = queue.run(1, 'a', 100, () => {
    steps += 1
    if (steps === 2) queue.cancel(1)
  })
  const other = queue.run(2, 'a', 150, () => undefined)
  await expect(cancelled).rejects.toBeInstanceOf(JobCancelled)
  await other
  expect(steps).toBe(2)
})

it('fails the job whose step fails, and only that', async () => {
  const queue = new StepQueue()
  const failing = queue.run(1, 'a', 3, (index) => {
    if (index === 1) throw new Error('no')
  })
  const other = queue.run(2, 'a', 3, () => undefined)
  await expect(failing).rejects.toThrow('no')
  await other
})
