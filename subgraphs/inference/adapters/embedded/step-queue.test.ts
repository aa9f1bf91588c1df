import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { JobCancelled, StepQueue } from './step-queue.ts'

it('serves a short job before the rest of a long one that came first', async () => {
  const queue = new StepQueue()
  const order: string[] = []
  const long = queue.run(1, 20, (index) => void order.push(`long ${index}`))
  await nextTurn()
  const short = queue.run(2, 1, () => void order.push('short'))
  await short
  expect(order.length).toBeLessThan(20)
  await long
  expect(order.filter((entry) => entry !== 'short')).toEqual(Array.from({ length: 20 }, (_, index) => `long ${index}`))
})

it('finishes a long job although short ones never end', async () => {
  const queue = new StepQueue()
  let over = false
  let id = 2
  const feed = async () => {
    while (!over) await queue.run(id++, 1, () => undefined)
  }
  const feeding = [feed(), feed()]
  await queue.run(1, 30, () => undefined)
  over = true
  await Promise.all(feeding)
})

it('begins no step of a cancelled job and goes on with the others', async () => {
  const queue = new StepQueue()
  let steps = 0
  const cancelled = queue.run(1, 100, () => {
    steps += 1
    if (steps === 2) queue.cancel(1)
  })
  const other = queue.run(2, 150, () => undefined)
  await expect(cancelled).rejects.toBeInstanceOf(JobCancelled)
  await other
  expect(steps).toBe(2)
})

it('fails the job whose step fails, and only that', async () => {
  const queue = new StepQueue()
  const failing = queue.run(1, 3, (index) => {
    if (index === 1) throw new Error('no')
  })
  const other = queue.run(2, 3, () => undefined)
  await expect(failing).rejects.toThrow('no')
  await other
})
