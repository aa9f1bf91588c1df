import { expect, it } from 'vitest'
import { WorkerClient } from '../../../common/process/threads/worker-rpc.ts'
import { ReaderPool } from './chunk-index-reader-pool.ts'

const COUNTER = new URL('../../../common/process/threads/__fixtures__/counter.ts', import.meta.url)

/** A pool of one thread for each of `places`, which a call keeps until `finish`. */
function makePool(places: number) {
  const started: string[] = []
  const ends: (() => void)[] = []
  let threads = 0
  const start = () => {
    threads += 1
    const thread = {
      call: (name: string) => {
        started.push(name)
        return new Promise<string>((resolve) => ends.push(() => resolve(name)))
      },
      [Symbol.asyncDispose]: async () => undefined,
    }
    return thread as unknown as WorkerClient
  }
  const pool = new ReaderPool(start, places)
  const settled = () => new Promise(setImmediate)
  return {
    pool,
    started,
    call: (name: string, caller: { maxWaiting?: number; signal?: AbortSignal } = {}) =>
      pool.call<string>(name, [], { organizationId: `org_${name[0]}`, ...caller }),
    settled,
    /** Ends the running call that began first. */
    finish: async () => {
      ends.shift()!()
      await settled()
    },
    threads: () => threads,
  }
}

it('one organization uses all threads but one, which the next finds free', async () => {
  const { pool, started, call, settled, finish, threads } = makePool(3)
  const calls = ['a1', 'a2', 'a3', 'a4'].map((name) => call(name))
  await settled()
  expect([started, threads()]).toEqual([['a1', 'a2'], 2])
  calls.push(call('b1'))
  await settled()
  expect([started, threads()]).toEqual([['a1', 'a2', 'b1'], 3])
  for (let i = 0; i < 5; i++) await finish()
  expect(await Promise.all(calls)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1'])
  await pool[Symbol.asyncDispose]()
})

it('organizations take turns, each in the order of its calls', async () => {
  const { started, call, settled, finish } = makePool(1)
  const calls = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => call(name))
  await settled()
  for (let i = 0; i < 6; i++) await finish()
  await Promise.all(calls)
  expect(started).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
})

it('refuses a call when as many of its organization wait as it says, and no other', async () => {
  const { call, settled, finish } = makePool(1)
  const bounded = { maxWaiting: 2 }
  const calls = ['a1', 'a2', 'a3'].map((name) => call(name, bounded))
  await expect(call('a4', bounded)).rejects.toMatchObject({
    code: 'service_unavailable',
    message: 'Too many calls of your organization wait for the chunk index. Repeat the request in a moment.',
  })
  calls.push(call('a5'), call('b1', bounded))
  await settled()
  for (let i = 0; i < 5; i++) await finish()
  calls.push(call('a6', bounded))
  await settled()
  await finish()
  expect(await Promise.all(calls)).toEqual(['a1', 'a2', 'a3', 'a5', 'b1', 'a6'])
})

it('a call whose signal aborts leaves the queue, or gives its thread back once that has finished', async () => {
  const { started, call, settled, finish, threads } = makePool(1)
  const leaving = new AbortController()
  const left = ['a1', 'a2', 'a3'].map((name) => call(name, { signal: leaving.signal, maxWaiting: 2 }))
  await settled()
  leaving.abort(new Error('left'))
  for (const each of left) await expect(each).rejects.toThrow('left')
  const next = [call('a4', { maxWaiting: 2 }), call('a5', { maxWaiting: 2 })]
  await settled()
  expect(started).toEqual(['a1'])
  for (let i = 0; i < 3; i++) await finish()
  expect(await Promise.all(next)).toEqual(['a4', 'a5'])
  expect([started, threads()]).toEqual([['a1', 'a4', 'a5'], 1])
})

it('refuses calls once it is closed, also those that wait', async () => {
  const pool = new ReaderPool(() => new WorkerClient(COUNTER, 'The counter', { from: 1 }), 1)
  const caller = { organizationId: 'org_a' }
  const running = pool.call<number>('next', [], caller)
  const waiting = pool.call<number>('next', [], caller)
  const refused = expect(waiting).rejects.toMatchObject({ code: 'service_unavailable' })
  await pool[Symbol.asyncDispose]()
  expect(await running).toBe(1)
  await refused
  await expect(pool.call('next', [], caller)).rejects.toMatchObject({ code: 'service_unavailable' })
})
