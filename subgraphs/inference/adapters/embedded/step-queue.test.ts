import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { StepQueue } from './step-queue.ts'

const NEVER = new AbortController().signal

it('serves a short job before the rest of a long one that came first', async () => {
  const queue = new StepQueue()
  const order: string[] = []
  const long = queue.run('a', 20, 20, NEVER, (index) => void order.push(`long ${index}`))
  await nextTurn()
  const short = queue.run('a', 1, 1, NEVER, () => void order.push('short'))
  await short
  expect(order.length).toBeLessThan(20)
  await long
  expect(order.filter((entry) => entry !== 'short')).toEqual(Array.from({ length: 20 }, (_, index) => `long ${index}`))
})

/** A queue whose steps take as long as they say. */
function timed() {
  let nowMs = 0
  const queue = new StepQueue(() => nowMs)
  const ending = new AbortController()
  const order: string[] = []
  const run = (organizationId: string, steps: number, stepMs: number) =>
    queue.run(organizationId, steps, steps, ending.signal, () => {
      nowMs += stepMs
      order.push(organizationId)
    })
  return { end: () => ending.abort(), order, run }
}

it('shares the time between organizations, however much one has asked for', async () => {
  const { end, order, run } = timed()
  const flood = Array.from({ length: 50 }, (_, i) => run('a', 1 + (i % 20), 40))
  await nextTurn()
  const before = order.length
  await run('b', 16, 20)
  expect(order.slice(before).filter((id) => id === 'a').length).toBeLessThanOrEqual(16 / 2 + 1)
  // One that comes back does not get the time for which it was away.
  await run('c', 3, 40)
  expect(order.slice(-6).filter((id) => id === 'c')).toHaveLength(3)
  end()
  await Promise.allSettled(flood)
})

it('lets who asks for little wait for one step, however many others are busy, and again each time', async () => {
  const { end, order, run } = timed()
  const flood = Array.from({ length: 20 }, (_, i) => run(`busy ${i}`, 1_000, 40))
  await nextTurn()
  for (let search = 0; search < 10; search++) {
    for (let turn = 0; turn < 30; turn++) await nextTurn()
    const before = order.length
    await run('search', 12, 1)
    expect(order.slice(before).filter((id) => id !== 'search').length).toBeLessThanOrEqual(1)
  }
  end()
  await Promise.allSettled(flood)
})

it('gives nobody more than a share who comes again and again', async () => {
  const { end, order, run } = timed()
  const flood = run('a', 1_000, 40)
  await nextTurn()
  for (let again = 0; again < 50; again++) await run('b', 1, 40)
  expect(order.filter((id) => id === 'a').length).toBeGreaterThanOrEqual(45)
  end()
  await Promise.allSettled([flood])
})

it('finishes a long job although short ones never end', async () => {
  const queue = new StepQueue()
  let over = false
  const feed = async () => {
    while (!over) await queue.run('a', 1, 1, NEVER, () => undefined)
  }
  const feeding = [feed(), feed()]
  await queue.run('a', 30, 30, NEVER, () => undefined)
  over = true
  await Promise.all(feeding)
})

it('begins no step of a cancelled job and goes on with the others', async () => {
  const queue = new StepQueue()
  const controller = new AbortController()
  const reason = new Error('the caller has left')
  let steps = 0
  const cancelled = queue.run('a', 100, 100, controller.signal, () => {
    steps += 1
    if (steps === 2) controller.abort(reason)
  })
  const other = queue.run('a', 150, 150, NEVER, () => undefined)
  await expect(cancelled).rejects.toBe(reason)
  await other
  expect(steps).toBe(2)
})

it('serves small work before a part of large work, although the part is small', async () => {
  const queue = new StepQueue()
  const order: string[] = []
  const parts = [60, 54, 48].map((size) => queue.run('a', 6, size, NEVER, () => void order.push('part')))
  await nextTurn()
  const before = order.length
  await queue.run('a', 6, 6, NEVER, () => void order.push('small'))
  expect(order.slice(before).filter((entry) => entry === 'part').length).toBeLessThanOrEqual(2)
  await Promise.all(parts)
})

it('fails the job whose step fails, and only that', async () => {
  const queue = new StepQueue()
  const failing = queue.run('a', 3, 3, NEVER, (index) => {
    if (index === 1) throw new Error('no')
  })
  const other = queue.run('a', 3, 3, NEVER, () => undefined)
  await expect(failing).rejects.toThrow('no')
  await other
})
