import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { FairThreads, Thread, ThreadLimitExceeded, type ThreadLimits, type ThreadOptions, ThreadUnavailable } from './thread.ts'

const fixture = (name: string) => new URL(`./__fixtures__/${name}.ts`, import.meta.url)
const QUESTIONS = fixture('questions')
const COUNTER = fixture('counter')

const { signal } = new AbortController()

const LIMITS = { cpuMs: 20_000, wallMs: 20_000, heapMb: 64 }

interface TestOptions extends Omit<ThreadOptions, 'limits'> {
  readonly file?: URL
  readonly maxThreads?: number
  readonly limits?: Partial<ThreadLimits>
}

function startThreads({ file = QUESTIONS, maxThreads = 1, limits, ...options }: TestOptions = {}) {
  const threads = new FairThreads('test', { maxThreads, limits: { ...LIMITS, ...limits }, ...options })
  return {
    ask: (organizationId: string, question: string, maxWaiting = 3, its = signal) =>
      threads.call<number>(file, question, { organizationId, maxWaiting, signal: its }),
    [Symbol.asyncDispose]: () => threads[Symbol.asyncDispose](),
  }
}

describe('Worker threads with fair turns', () => {
  it('run one call after another, and continue after one that throws', async () => {
    await using threads = startThreads()
    expect(await threads.ask('org_a', 'count')).toBe(1)
    await expect(threads.ask('org_a', 'throw')).rejects.toMatchObject({ name: 'RangeError', message: 'no answer', data: { code: 7 } })
    expect(await threads.ask('org_b', 'count')).toBe(2)
  })

  it.each([
    ['time', 'spin'],
    ['memory', 'fill'],
  ])('a call that uses too much %s ends the thread, and the next has a new one', async (limit, question) => {
    await using threads = startThreads({ limits: limit === 'time' ? { cpuMs: 200 } : { cpuMs: 60_000, wallMs: 60_000 } })
    expect(await threads.ask('org_a', 'count')).toBe(1)
    const failed = threads.ask('org_a', question)
    const next = threads.ask('org_b', 'count')
    await expect(failed).rejects.toSatisfy((error) => error instanceof ThreadLimitExceeded && error.limit === limit)
    expect(await next).toBe(1)
  })

  it('limit wall time as well', async () => {
    await using threads = startThreads({ limits: { wallMs: 200 } })
    await expect(threads.ask('org_a', 'spin')).rejects.toBeInstanceOf(ThreadLimitExceeded)
  })

  it('serve organizations in turns', async () => {
    await using threads = startThreads()
    const order: string[] = []
    const request = (organizationId: string) => threads.ask(organizationId, 'count').then(() => order.push(organizationId))
    await Promise.all([request('org_a'), request('org_a'), request('org_a'), request('org_b'), request('org_b')])
    expect(order).toEqual(['org_a', 'org_a', 'org_b', 'org_a', 'org_b'])
  })

  it('leave one thread free of the organization that uses all others', async () => {
    let spinning: Promise<unknown>[]
    {
      await using threads = startThreads({ maxThreads: 3, limits: { wallMs: 5_000 } })
      spinning = ['org_a', 'org_a', 'org_a'].map((organizationId) => threads.ask(organizationId, 'spin').catch(() => 'ended'))
      expect(await Promise.race([...spinning, threads.ask('org_b', 'count')])).toBe(1)
    }
    expect(await Promise.all(spinning)).toEqual(['ended', 'ended', 'ended'])
  })

  it('refuse a call while its organization has too many waiting, and no other', async () => {
    await using threads = startThreads()
    const requests = Array.from({ length: 5 }, () => threads.ask('org_a', 'count'))
    const refused = expect(requests[4]).rejects.toMatchObject({
      code: 'service_unavailable',
      message: 'Too many calls of your organization wait for the test. Repeat the request in a moment.',
    })
    expect(await threads.ask('org_b', 'count')).toBeGreaterThan(0)
    expect(await threads.ask('org_a', 'count', 5)).toBeGreaterThan(0)
    await refused
    expect(await Promise.all(requests.slice(0, 4))).toHaveLength(4)
  })

  it('drop a call whose caller has disconnected, and run the others', async () => {
    await using threads = startThreads({ limits: { cpuMs: 200 } })
    const leaving = new AbortController()
    const left = ['spin', 'count'].map((question) => threads.ask('org_a', question, 3, leaving.signal))
    const next = threads.ask('org_a', 'count')
    leaving.abort(new Error('left'))
    for (const call of left) await expect(call).rejects.toThrow('left')
    expect(await next).toBe(1)
  })

  it('end an idle thread, and restart it for the next call', async () => {
    await using threads = startThreads({ idleMs: 1 })
    expect(await threads.ask('org_a', 'count')).toBe(1)
    await sleep(100)
    expect(await threads.ask('org_a', 'count')).toBe(1)
  })

  it('are unavailable when their code does not load or their thread dies', async () => {
    const unavailable = { code: 'service_unavailable', message: 'The test is unavailable at the moment.' }
    for (const name of ['fails', 'fills']) {
      await using broken = startThreads({ file: fixture(name) })
      await expect(broken.ask('org_a', 'count')).rejects.toMatchObject(unavailable)
    }
    await using threads = startThreads()
    await expect(threads.ask('org_a', 'exit')).rejects.toMatchObject(unavailable)
    expect(await threads.ask('org_a', 'count')).toBe(1)
  })

  it('fail running and waiting calls on close, and run no more', async () => {
    const threads = startThreads()
    await threads.ask('org_a', 'count')
    const requests = [threads.ask('org_a', 'spin'), threads.ask('org_a', 'count')].map((each) =>
      expect(each).rejects.toMatchObject({ code: 'service_unavailable' }),
    )
    await threads[Symbol.asyncDispose]()
    await Promise.all(requests)
    await expect(threads.ask('org_a', 'count')).rejects.toMatchObject({ code: 'service_unavailable' })
  })

  it('wait for a running call without limits on close', async () => {
    const threads = new FairThreads('test', { maxThreads: 1 })
    const running = threads.call<number>(QUESTIONS, 'count', { organizationId: 'org_a' })
    await threads[Symbol.asyncDispose]()
    expect(await running).toBe(1)
  })
})

describe('Worker thread for files', () => {
  const start = () => {
    const thread = new Thread()
    return {
      call: (file: string, method: string) => thread.call<number>(COUNTER, { file, method, args: [] }),
      [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
    }
  }

  it('preserves the state of each file, and batches calls that arrive together', async () => {
    await using thread = start()
    expect(await Promise.all(['a', 'abc', 'a', 'a', 'a'].map((file) => thread.call(file, 'next')))).toEqual([1, 3, 2, 3, 4])
    expect(await Promise.all([thread.call('a', 'batches'), thread.call('abc', 'batches')])).toEqual([3, 2])
  })

  it('a call that fails fails alone', async () => {
    await using thread = start()
    const [first, failed, last] = await Promise.allSettled(['next', 'fail', 'next'].map((method) => thread.call('a', method)))
    expect([first, last]).toMatchObject([{ value: 1 }, { value: 2 }])
    expect(failed).toMatchObject({ reason: { name: 'RangeError', message: 'no number' } })
  })

  it('closes a file after the earlier calls, and reopens it', async () => {
    await using thread = start()
    expect(await Promise.all([thread.call('a', 'next'), thread.call('a', 'next'), thread.call('a', 'close')])).toEqual([1, 2, undefined])
    expect(await thread.call('a', 'next')).toBe(1)
  })

  it('fails all calls of a thread that dies, and runs the next in a new one', async () => {
    await using thread = start()
    const calls = ['next', 'exit', 'next'].map((method) => thread.call('a', method))
    for (const call of calls.slice(1)) await expect(call).rejects.toBeInstanceOf(ThreadUnavailable)
    await calls[0]!.catch(() => undefined)
    expect(await thread.call('a', 'next')).toBe(1)
  })

  it('waits for all calls on close, and runs no more', async () => {
    const thread = start()
    const calls = Array.from({ length: 10 }, () => thread.call('a', 'next'))
    await thread[Symbol.asyncDispose]()
    expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    await expect(thread.call('a', 'next')).rejects.toBeInstanceOf(ThreadUnavailable)
  })
})
