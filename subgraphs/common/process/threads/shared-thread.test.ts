import { expect, it } from 'vitest'
import { SharedThread } from './shared-thread.ts'
import { WorkerClient } from './worker-rpc.ts'

const COUNTER = new URL('./__fixtures__/counter.ts', import.meta.url)

function makeUsers() {
  const shared = new SharedThread('a test')
  const ends: string[] = []
  const use = (name: string, data: object) =>
    new WorkerClient(COUNTER, name, data, { shared, onExit: (error) => ends.push(`${name}: ${(error as Error).message}`) })
  return { use, ends }
}

it('each user has the data and the variables of its own', async () => {
  const { use, ends } = makeUsers()
  await using first = use('first', { from: 1 })
  await using second = use('second', { from: 100 })
  const numbers = [first.call('next', []), second.call('next', []), first.call('next', []), second.call('next', [])]
  expect(await Promise.all(numbers)).toEqual([1, 100, 2, 101])
  expect(ends).toEqual([])
})

it('code that does not load ends its user alone', async () => {
  const { use, ends } = makeUsers()
  await using well = use('well', { from: 1 })
  await using broken = use('broken', { from: 1, fails: true })
  await expect(broken.call('next', [])).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(await well.call('next', [])).toBe(1)
  expect(ends).toEqual(['broken: this code does not load'])
})

it('does not load the code of a user who calls nothing', async () => {
  const { use, ends } = makeUsers()
  {
    await using idle = use('idle', { from: 1, fails: true })
    await using busy = use('busy', { from: 1 })
    expect(await busy.call('next', [])).toBe(1)
    await idle[Symbol.asyncDispose]()
    await expect(idle.call('next', [])).rejects.toMatchObject({ code: 'service_unavailable' })
  }
  expect(ends).toEqual([])
})

it('ends every user when the thread dies, and starts again for the next', async () => {
  const { use, ends } = makeUsers()
  await using first = use('first', { from: 1 })
  await using second = use('second', { from: 1 })
  await first.call('next', [])
  await second.call('next', [])
  first.checkAlive()
  await expect(first.call('die', [])).rejects.toMatchObject({ code: 'service_unavailable' })
  await expect(second.call('next', [])).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(() => second.checkAlive()).toThrow(expect.objectContaining({ code: 'service_unavailable' }))
  expect(ends).toEqual(['first: the thread a test ended with code 3', 'second: the thread a test ended with code 3'])
  await using third = use('third', { from: 7 })
  expect(await third.call('next', [])).toBe(7)
})

it('serves who comes after the last one has left', async () => {
  const { use, ends } = makeUsers()
  for (const from of [1, 2]) {
    await using user = use('user', { from })
    expect(await user.call('next', [])).toBe(from)
  }
  expect(ends).toEqual([])
})
