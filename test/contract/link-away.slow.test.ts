import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, type TestContext } from 'vitest'
import { principalTokens } from '../../cli/links/principal-token.ts'
import { remoteLink } from '../../cli/links/remote-link.ts'
import { serveSubgraph } from '../../cli/links/serve-subgraph.ts'
import type { Caller } from '../../subgraphs/common/identity/principal.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { TcpProxy } from '../support/engines/tcp-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { probe, somebody } from './link.ts'

const tokens = principalTokens(randomBytes(32), systemClock)
const context = () => ({ caller: somebody, requestId: 'req_1', signal: new AbortController().signal })
const STREAM = { query: 'subscription { chatCompletion(input: {}) { textDelta } }' }
const READ = { query: '{ model(id: "any") { id } }' }
const CALL = { query: 'mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { id } }', variables: { input: {} } }

/** Ends what a test has begun. */
type OnFinished = TestContext['onTestFinished']

/** A process that takes requests and answers them when it is told to, as one that was stopped. */
async function silentReplica(onTestFinished: OnFinished) {
  const requests: string[] = []
  const requestedAtMs: number[] = []
  let isResponding = false
  let isRespondingToPings = false
  const server: Server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    requestedAtMs.push(performance.now())
    if (isResponding || (isRespondingToPings && request.url === '/healthz')) response.end('{"data":{"model":null}}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    /** When each request came. */
    requestedAtMs,
    /** From now on it answers pings. */
    wakePings: () => {
      isRespondingToPings = true
    },
    wake: () => {
      isResponding = true
    },
  }
}

async function serve(onTestFinished: OnFinished, subgraph: ReturnType<typeof probe>['subgraph'], clock = systemClock) {
  const server = await serveSubgraph(subgraph, { host: '127.0.0.1', port: 0, clock, drainMs: 0, tokens, log: silentLog })
  onTestFinished(() => server[Symbol.asyncDispose]())
  return server
}

function linkTo(onTestFinished: OnFinished, urls: readonly string[]) {
  const link = remoteLink<Caller | null>({
    urls,
    what: 'Inference',
    authorization: async (caller) => `Bearer ${await tokens.sign(caller!, 'inference')}`,
    socketKey: (caller) => JSON.stringify(caller),
  })
  onTestFinished(() => link[Symbol.asyncDispose]())
  return link
}

const timed = async (work: Promise<unknown>) => {
  const at = performance.now()
  const error = await work.then(
    () => undefined,
    (reason) => reason,
  )
  return { ms: performance.now() - at, error }
}

// Each waits for the time that a silent process is given.
describe.concurrent('Link to unresponsive processes', () => {
  it('ends a read at its time limit, then sends nothing to a process without pings, until it responds', async ({ onTestFinished }) => {
    const replica = await silentReplica(onTestFinished)
    const link = linkTo(onTestFinished, [replica.url])
    const first = await timed(link.execute(READ, context()))
    expect(first.error).toMatchObject({ code: 'service_unavailable' })
    expect(first.ms).toBeLessThan(8_000)
    const countPosts = () => replica.requests.filter((each) => each === 'POST /graphql').length
    expect(countPosts()).toBe(1)
    for (const operation of [READ, CALL]) {
      const next = await timed(link.execute(operation, context()))
      expect(next.error).toMatchObject({ code: 'service_unavailable' })
      expect(next.ms).toBeLessThan(1_000)
    }
    const stream = link.subscribe(STREAM, context())
    expect((await stream.next()).value?.errors?.[0]?.extensions?.code).toBe('SERVICE_UNAVAILABLE')
    expect(countPosts()).toBe(1)
    replica.wake()
    await eventually(async () => (await timed(link.execute(READ, context()))).error === undefined)
  }, 30_000)

  it('leaves a slow call alone while the process answers pings', async ({ onTestFinished }) => {
    const { subgraph, seen } = probe()
    const server = await serve(onTestFinished, subgraph)
    const link = linkTo(onTestFinished, [server.url])
    const slow = await timed(link.execute({ query: '{ model(id: "slow") { id } }' }, context()))
    expect(slow.error).toMatchObject({ code: 'service_unavailable' })
    expect(slow.ms).toBeGreaterThan(3_000)
    await eventually(() => seen.aborted === 1)
    expect((await link.execute(READ, context())).data).toEqual({ model: { id: 'any' } })
  }, 30_000)

  it('ends a call to a silent process, and retries it nowhere else', async ({ onTestFinished }) => {
    const { subgraph } = probe()
    const server = await serve(onTestFinished, subgraph)
    const asleep = await silentReplica(onTestFinished)
    const link = linkTo(onTestFinished, [asleep.url, server.url])
    const ended = await Promise.all([1, 2].map(() => timed(link.execute(CALL, context()))))
    expect(ended.flatMap(({ error }) => error ?? [])).toMatchObject([
      { code: 'service_unavailable', message: 'Inference is unavailable at the moment: it sends no heartbeat.' },
    ])
    expect(asleep.requests.filter((each) => each === 'POST /graphql')).toHaveLength(1)
  }, 30_000)

  it('retries a read at another process when its own is lost', async ({ onTestFinished }) => {
    const lost = createServer((request) => request.socket.destroy())
    await new Promise<void>((resolve) => lost.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void lost.close())
    const { subgraph } = probe()
    const server = await serve(onTestFinished, subgraph)
    const link = linkTo(onTestFinished, [`http://127.0.0.1:${(lost.address() as AddressInfo).port}`, server.url])
    for (let i = 0; i < 4; i++) expect((await link.execute(READ, context())).data).toEqual({ model: { id: 'any' } })
  }, 30_000)

  it('reads the clock of the other side', async ({ onTestFinished }) => {
    const { subgraph } = probe()
    const clock = { ...systemClock, now: () => new Date('2031-05-06T07:08:09Z') }
    const server = await serve(onTestFinished, subgraph, clock)
    expect(await linkTo(onTestFinished, [server.url]).readClock(context())).toEqual(clock.now())
  })

  it('uses another replica while one is unavailable', async ({ onTestFinished }) => {
    const replica = await silentReplica(onTestFinished)
    const { subgraph } = probe()
    const server = await serve(onTestFinished, subgraph)
    const link = linkTo(onTestFinished, [replica.url, server.url])
    await Promise.all([1, 2].map(() => timed(link.execute(READ, context()))))
    for (let i = 0; i < 10; i++) expect((await link.execute(READ, context())).data).toEqual({ model: { id: 'any' } })
  }, 30_000)

  it('ends calls on dead connections, retries none elsewhere, and continues over new connections', async ({ onTestFinished }) => {
    const replica = await silentReplica(onTestFinished)
    const through = await TcpProxy.start(replica.url)
    onTestFinished(() => through[Symbol.asyncDispose]())

    const link = linkTo(onTestFinished, [through.url])
    const waiting = timed(link.execute(CALL, context()))
    const posts = () => replica.requests.filter((each) => each === 'POST /graphql').length
    replica.wakePings()
    // At once, not after a beat: a ping over a connection that was made later says nothing of those from before.
    await eventually(() => posts() === 1 && replica.requests.length > 1)
    const [first, second] = replica.requestedAtMs as [number, number]
    expect(second - first).toBeLessThan(300)
    through.halfOpen()
    const ended = await waiting
    expect(ended.error).toMatchObject({ code: 'service_unavailable' })
    expect(ended.ms).toBeLessThan(12_000)
    expect(posts()).toBe(1)
    replica.wake()
    expect((await link.execute(READ, context())).data).toEqual({ model: null })
  }, 30_000)

  it('ends a subscription that is sent over an idle socket which was cut', async ({ onTestFinished }) => {
    const { subgraph } = probe()
    const server = await serve(onTestFinished, subgraph)
    const through = await TcpProxy.start(server.url)
    onTestFinished(() => through[Symbol.asyncDispose]())
    const link = linkTo(onTestFinished, [through.url])
    const events = link.subscribe(STREAM, context())
    await events.next()
    await events.return!()
    // Pings have ended, and the socket has not.
    await sleep(5_000)
    through.halfOpen()
    const { value } = await link.subscribe(STREAM, context()).next()
    expect(value?.errors?.[0]?.extensions?.code).toBe('SERVICE_UNAVAILABLE')
  }, 30_000)
})
