import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { ThreadLimitExceeded } from './bounded-thread.ts'
import { BoundedThreads, type BoundedThreadsOptions } from './bounded-threads.ts'

const { signal } = new AbortController()

const startThreads = (options: Partial<BoundedThreadsOptions> = {}) =>
  new BoundedThreads<string, number>({
    file: new URL('./__fixtures__/questions.ts', import.meta.url),
    what: 'test',
    data: { begins: true },
    maxThreads: 1,
    maxWaiting: 3,
    limits: { cpuMs: 200, wallMs: 20_000, heapMb: 64 },
    ...options,
  })

it('one thread answers one question after another, and goes on after one that throws', async () => {
  await using threads = startThreads()
  expect(await threads.ask('org_a', 'count', signal)).toBe(1)
  await expect(threads.ask('org_a', 'throw', signal)).rejects.toMatchObject({ name: 'RangeError', message: 'no answer' })
  expect(await threads.ask('org_b', 'count', signal)).toBe(2)
})

it.each([
  ['time', 'spin'],
  ['memory', 'fill'],
])('a question that takes too much %s ends the thread, and the next has a new one', async (limit, question) => {
  await using threads = startThreads({ limits: { cpuMs: limit === 'time' ? 200 : 60_000, wallMs: 60_000, heapMb: 64 } })
  expect(await threads.ask('org_a', 'count', signal)).toBe(1)
  const failed = threads.ask('org_a', question, signal)
  const next = threads.ask('org_b', 'count', signal)
  await expect(failed).rejects.toSatisfy((error) => error instanceof ThreadLimitExceeded && error.limit === limit)
  expect(await next).toBe(1)
})

it('wall time is a limit too', async () => {
  await using threads = startThreads({ limits: { cpuMs: 60_000, wallMs: 200, heapMb: 64 } })
  await expect(threads.ask('org_a', 'spin', signal)).rejects.toBeInstanceOf(ThreadLimitExceeded)
})

it('organizations take turns', async () => {
  await using threads = startThreads()
  const order: string[] = []
  const ask = (organizationId: string) => threads.ask(organizationId, 'count', signal).then(() => order.push(organizationId))
  await Promise.all([ask('org_a'), ask('org_a'), ask('org_a'), ask('org_b'), ask('org_b')])
  expect(order).toEqual(['org_a', 'org_a', 'org_b', 'org_a', 'org_b'])
})

it('refuses what would wait too long, for that organization alone', async () => {
  await using threads = startThreads()
  const asked = Array.from({ length: 5 }, () => threads.ask('org_a', 'count', signal))
  const refused = expect(asked[4]).rejects.toMatchObject({
    code: 'service_unavailable',
    message: 'Too many calls of your organization wait for the test. Repeat the request in a moment.',
  })
  expect(await threads.ask('org_b', 'count', signal)).toBeGreaterThan(0)
  await refused
  expect(await Promise.all(asked.slice(0, 4))).toHaveLength(4)
})

it('forgets a question whose caller has left, and answers the others', async () => {
  await using threads = startThreads()
  const leaving = new AbortController()
  const left = ['spin', 'count'].map((question) => threads.ask('org_a', question, leaving.signal))
  const next = threads.ask('org_a', 'count', signal)
  leaving.abort(new Error('left'))
  for (const question of left) await expect(question).rejects.toThrow('left')
  expect(await next).toBe(1)
})

it('ends a thread that rests, and starts it again for the next question', async () => {
  await using threads = startThreads({ idleMs: 1 })
  expect(await threads.ask('org_a', 'count', signal)).toBe(1)
  await sleep(50)
  expect(await threads.ask('org_a', 'count', signal)).toBe(1)
})

it('is unavailable when its code does not load or its thread dies', async () => {
  const unavailable = { code: 'service_unavailable', message: 'The test is unavailable at the moment.' }
  for (const begins of [false, 'with too much memory']) {
    await using broken = startThreads({ data: { begins } })
    await expect(broken.ask('org_a', 'count', signal)).rejects.toMatchObject(unavailable)
  }
  await using threads = startThreads()
  await expect(threads.ask('org_a', 'exit', signal)).rejects.toMatchObject(unavailable)
  expect(await threads.ask('org_a', 'count', signal)).toBe(1)
})

it('fails what runs and what waits when it ends, and answers no more', async () => {
  const threads = startThreads()
  await threads.ask('org_a', 'count', signal)
  const asked = [threads.ask('org_a', 'spin', signal), threads.ask('org_a', 'count', signal)].map((each) =>
    expect(each).rejects.toMatchObject({ code: 'service_unavailable' }),
  )
  await threads[Symbol.asyncDispose]()
  await Promise.all(asked)
  await expect(threads.ask('org_a', 'count', signal)).rejects.toMatchObject({ code: 'service_unavailable' })
})
