import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { principalTokens } from '../../cli/links/principal-token.ts'
import { remoteLink } from '../../cli/links/remote-link.ts'
import { serveSubgraph } from '../../cli/links/serve-subgraph.ts'
import type { Caller } from '../../subgraphs/common/identity/principal.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { eventually } from '../support/eventually.ts'
import { full } from '../support/soak.ts'
import { probe, somebody } from './link.ts'

const tokens = principalTokens(randomBytes(32), systemClock)
const context = () => ({ caller: somebody, requestId: 'req_1', signal: new AbortController().signal })
const MODEL = { query: '{ model(id: "any") { id } }' }
const stream = (model: string, count: number) => ({
  query: 'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { textDelta } }',
  variables: { input: { request: { model, count } } },
})

/** A replica that can be stopped and started again on its port. */
class Replica {
  readonly #drainMs: number
  #port = 0
  #running: Awaited<ReturnType<Replica['start']>> | undefined
  seen = probe().seen

  constructor(drainMs = 5_000) {
    this.#drainMs = drainMs
  }

  async start() {
    const { subgraph, seen } = probe()
    this.seen = seen
    const server = await serveSubgraph(subgraph, {
      host: '127.0.0.1',
      port: this.#port,
      clock: systemClock,
      drainMs: this.#drainMs,
      tokens,
      log: silentLog,
    })
    this.#port = Number(new URL(server.url).port)
    this.#running = server
    return server
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`
  }

  async stop() {
    const running = this.#running
    this.#running = undefined
    await running?.[Symbol.asyncDispose]()
  }
}

async function replicas(count: number, drainMs?: number) {
  const all = Array.from({ length: count }, () => new Replica(drainMs))
  for (const replica of all) await replica.start()
  const link = remoteLink<Caller | null>({
    urls: all.map(({ url }) => url),
    what: 'Inference',
    authorization: async (caller) => caller && `Bearer ${await tokens.sign(caller, 'inference')}`,
    socketKey: (caller) => JSON.stringify(caller),
  })
  return {
    link,
    all,
    async [Symbol.asyncDispose]() {
      await link[Symbol.asyncDispose]()
      await Promise.all(all.map((replica) => replica.stop()))
    },
  }
}

type Link = Awaited<ReturnType<typeof replicas>>['link']

async function streamed(link: Link, model: string, count: number): Promise<string[]> {
  const deltas: string[] = []
  for await (const { data, errors } of link.subscribe(stream(model, count), context()))
    deltas.push(errors ? String(errors[0]?.extensions?.code) : (data as { chatCompletion: { textDelta: string } }).chatCompletion.textDelta)
  return deltas
}

it('sends each call to the replica with the fewest in flight', async () => {
  await using parts = await replicas(3)
  const open = Array.from({ length: 9 }, () => parts.link.subscribe(stream('idle', 1), context()))
  for (const events of open) await events.next()
  expect(parts.all.map(({ seen }) => seen.opened)).toEqual([3, 3, 3])
  await Promise.all(open.map((events) => events.return!()))
  for (let i = 0; i < 9; i++) await parts.link.execute(MODEL, context())
  expect(parts.all.map(({ seen }) => seen.callers.length)).toEqual([3, 3, 3])
})

it('continues with the remaining replicas, and rediscovers the others', async () => {
  await using parts = await replicas(2)
  const [first, second] = parts.all as [Replica, Replica]
  await first.stop()
  for (let i = 0; i < 10; i++) {
    expect((await parts.link.execute(MODEL, context())).errors).toBeUndefined()
    expect(await streamed(parts.link, 'any', 2)).toEqual(['1', '2'])
  }
  await first.start()
  await second.stop()
  await eventually(async () => (await parts.link.execute(MODEL, context())).data !== undefined)
  expect(await streamed(parts.link, 'any', 2)).toEqual(['1', '2'])
  await first.stop()
  await expect(parts.link.execute(MODEL, context())).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(await streamed(parts.link, 'any', 2)).toEqual(['SERVICE_UNAVAILABLE'])
})

it('finds what only one replica has, and reports a miss only after all were asked', async () => {
  await using parts = await replicas(3)
  expect(await streamed(parts.link, 'kept', 2)).toEqual(['NOT_FOUND'])
  expect(parts.all.map(({ seen }) => seen.opened)).toEqual([1, 1, 1])
  for (const replica of parts.all) {
    replica.seen.hasStored = true
    for (let i = 0; i < 3; i++) expect(await streamed(parts.link, 'kept', 2)).toEqual(['1', '2'])
    replica.seen.hasStored = false
  }
  await parts.all[0]!.stop()
  expect(await streamed(parts.link, 'kept', 2)).toEqual(['SERVICE_UNAVAILABLE'])
})

it('resolves a name to all of its addresses', async () => {
  const replica = new Replica()
  await replica.start()
  // On most machines the name has an IPv6 address too, at which nobody listens here.
  await using link = remoteLink<Caller | null>({
    urls: [replica.url.replace('127.0.0.1', 'localhost')],
    what: 'Inference',
    authorization: async (caller) => caller && `Bearer ${await tokens.sign(caller, 'inference')}`,
    socketKey: () => '',
  })
  for (let i = 0; i < 4; i++) expect((await link.execute(MODEL, context())).errors).toBeUndefined()
  expect(await streamed(link, 'any', 2)).toEqual(['1', '2'])
  await replica.stop()
})

it('sends nothing to a replica whose stores are not open yet', async () => {
  const opening = Promise.withResolvers<void>()
  const late = probe()
  const options = { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, tokens, log: silentLog }
  await using server = await serveSubgraph(late.subgraph, { ...options, opened: opening.promise })
  const other = new Replica()
  await other.start()
  await using link = remoteLink<Caller | null>({
    urls: [server.url, other.url],
    what: 'Inference',
    authorization: async (caller) => caller && `Bearer ${await tokens.sign(caller, 'inference')}`,
    socketKey: () => '',
  })
  for (let i = 0; i < 4; i++) {
    expect((await link.execute(MODEL, context())).errors).toBeUndefined()
    expect(await streamed(link, 'any', 2)).toEqual(['1', '2'])
  }
  expect(late.seen).toMatchObject({ callers: [], opened: 0 })
  await other.stop()
  await expect(link.execute(MODEL, context())).rejects.toMatchObject({ code: 'service_unavailable' })
  opening.resolve()
  await eventually(async () => (await link.execute(MODEL, context()).catch(() => null)) !== null)
  expect(await streamed(link, 'any', 2)).toEqual(['1', '2'])
})

it('a stopping replica finishes what is in flight and starts nothing new', async () => {
  await using parts = await replicas(2)
  const [first, second] = parts.all as [Replica, Replica]
  const slow = [parts.link.subscribe(stream('idle', 1), context()), parts.link.subscribe(stream('idle', 1), context())]
  for (const events of slow) await events.next()
  const stopped = first.stop()
  for (let i = 0; i < 20; i++) {
    expect(await streamed(parts.link, 'any', 3)).toEqual(['1', '2', '3'])
    expect((await parts.link.execute(MODEL, context())).errors).toBeUndefined()
  }
  expect(first.seen.opened).toBe(1)
  expect(second.seen.opened).toBe(21)
  await Promise.all(slow.map((events) => events.return!()))
  await stopped
})

it('a call longer than the drain ends with an error, and is not restarted elsewhere', async () => {
  await using parts = await replicas(2, 300)
  const [first, second] = parts.all as [Replica, Replica]
  const open = ['idle', 'idle'].map((model) => parts.link.subscribe(stream(model, 0), context()))
  const results = open.map((events) => events.next())
  await eventually(() => first.seen.opened + second.seen.opened === 2)
  await first.stop()
  const ended = await Promise.race(results)
  expect(ended.value?.errors?.[0]?.extensions?.code).toBe('SERVICE_UNAVAILABLE')
  expect(first.seen).toMatchObject({ opened: 1, ended: 1 })
  expect(second.seen.opened).toBe(1)
  await Promise.all(open.map((events) => events.return!()))
})

it('no call fails or runs twice during a rolling restart of all replicas', async () => {
  await using parts = await replicas(2)
  const done = { calls: 0, streams: 0 }
  const failures: unknown[] = []
  let isOver = false
  const work = Array.from({ length: 8 }, async (_, i) => {
    while (!isOver) {
      if (i % 2) {
        const { data, errors } = await parts.link.execute(MODEL, context()).catch((error) => ({ errors: [error], data: null }))
        if (data) done.calls++
        else failures.push(errors)
      } else {
        const deltas = await streamed(parts.link, 'any', 3)
        if (deltas.join() === '1,2,3') done.streams++
        else failures.push(deltas)
      }
    }
  })
  const counted = { calls: 0, streams: 0 }
  const count = ({ seen }: Replica) => {
    counted.calls += seen.callers.length
    counted.streams += seen.opened
  }
  for (let round = 0; round < full(20); round++) {
    for (const replica of parts.all) {
      await replica.stop()
      count(replica)
      await replica.start()
      // It counts as gone for a second.
      await eventually(() => replica.seen.callers.length + replica.seen.opened > 0)
    }
  }
  isOver = true
  await Promise.all(work)
  parts.all.forEach(count)
  expect(failures).toEqual([])
  expect(counted).toEqual(done)
}, 300_000)
