import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import fastify from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../process/clock.ts'
import { LargeBodies } from './admission/large-bodies.ts'
import { type Admit, APP_OPTIONS, listen } from './listen.ts'

/** Longer than a test may take: a test that waits for the end of the drain fails. */
const DRAIN_MS = 600_000

async function server({ hasPeers = false } = {}) {
  const app = fastify(APP_OPTIONS)
  app.get('/', async () => 'answered')
  const listening = await listen(app, { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: DRAIN_MS, hasPeers }, [])
  const connection = async () => {
    const accepted = once(app.server, 'connection')
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(listening.url).port) })
    await accepted
    return socket
  }
  return { listening, connection }
}

it.each([{ hasPeers: false }, { hasPeers: true }])('stops although clients hold connections without a request: %o', async (options) => {
  const { listening, connection } = await server(options)
  const spare = await connection()
  const used = await connection()
  used.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  await once(used, 'data')
  const ends = [once(spare, 'close'), once(used, 'close')]
  for (const socket of [spare, used]) socket.resume()
  await listening[Symbol.asyncDispose]()
  await Promise.all(ends)
})

it('closes a connection that sends very many requests and reads no response', async () => {
  let received = 0
  const app = fastify(APP_OPTIONS)
  app.get('/', () => {
    received += 1
    return new Promise(() => undefined)
  })
  const { url } = await listen(app, { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, hasPeers: false }, [])
  onTestFinished(() => app.server.closeAllConnections())
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) })
  // The connection may be reset.
  socket.on('error', () => undefined)
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(20_000))
  await closed
  expect(received).toBeLessThanOrEqual(64)
})

it('responds to the request of a connection that was opened just before the stop', async () => {
  const { listening, connection } = await server()
  const late = await connection()
  const stopped = listening[Symbol.asyncDispose]()
  late.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  const reply = await text(late)
  expect(reply).toContain('answered')
  expect(reply).toMatch(/^connection: close/im)
  await stopped
})

it('refuses a request before the app sees it, even one that waits to send its body, and keeps the connection open', async () => {
  const app = fastify(APP_OPTIONS)
  let heard = 0
  app.addHook('onRequest', async () => void heard++)
  app.post('/', async () => 'answered')
  const admit: Admit = ({ headers }, response, start) => {
    if (headers.authorization === 'good') start()
    else response.writeHead(503, { 'content-length': 7 }).end('refused')
  }
  await using listening = await listen(
    app,
    { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: DRAIN_MS, hasPeers: false, admit },
    [],
  )
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(listening.url).port) })
  let received = ''
  socket.on('data', (data) => {
    received += data
  })
  const post = (headers: string) => socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${headers}\r\n\r\n`)
  post('content-length: 3')
  socket.write('abc')
  await eventually(() => received.endsWith('refused'))
  post('authorization: good\r\ncontent-length: 0')
  await eventually(() => received.endsWith('answered'))
  post('expect: 100-continue\r\ncontent-length: 3')
  await eventually(() => received.endsWith('refused'))
  expect(received).not.toContain('100 Continue')
  expect(heard).toBe(1)
  socket.destroy()
})

const MINIMUM_DATA_RATE = {
  leastBytesPerSecond: 16 * 1024,
  bodyWindowMs: 200,
  responseWindowMs: 200,
  maxUnreadBytes: 512 * 1024 * 1024,
  checkMs: 20,
}
/** More than the kernel's buffers take from a client that does not read. */
const LARGE_RESPONSE = 'x'.repeat(32 * 1024 * 1024)

async function rateLimitedServer(
  options: { readonly dataRate?: Partial<typeof MINIMUM_DATA_RATE>; readonly maxConnections?: number } = {},
) {
  const app = fastify(APP_OPTIONS)
  const bodies = new LargeBodies({ largestBytes: 500_000, waitMs: 30_000 })
  let closedResponses = 0
  app.addHook('onRequest', async (request, reply) => {
    reply.raw.once('close', () => closedResponses++)
    await bodies.admit(request, reply, () => 'org_1', 1_000_000)
  })
  app.post('/', { bodyLimit: 1_000_000 }, async () => 'read')
  app.get('/large', async () => LARGE_RESPONSE)
  app.get('/', async () => 'answered')
  const dataRate = { ...MINIMUM_DATA_RATE, ...options.dataRate }
  const listening = await listen(
    app,
    { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, hasPeers: false, ...options, dataRate },
    [],
  )
  onTestFinished(() => listening[Symbol.asyncDispose]())
  const client = (text: string) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(listening.url).port) })
    socket.on('error', () => undefined)
    socket.write(text)
    onTestFinished(() => void socket.destroy())
    return socket
  }
  return { client, closedResponses: () => closedResponses }
}

const post = (bytes: number) => `POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`

it('counts unread responses for the organization of the client, and not for others', async () => {
  const app = fastify({ ...APP_OPTIONS, forceCloseConnections: true })
  const bodies = new LargeBodies({ largestBytes: 500_000, waitMs: 50 })
  const organizationOf = ({ headers }: { readonly headers: IncomingHttpHeaders }) => String(headers.authorization)
  app.addHook('onRequest', (request, reply) => bodies.admit(request, reply, () => organizationOf(request), 1_000_000))
  app.addHook('onSend', (request, reply, payload) => bodies.admitResponse(reply, payload, () => organizationOf(request)))
  app.post('/', { bodyLimit: 1_000_000 }, async () => 'read')
  app.get('/large', async () => LARGE_RESPONSE)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const send = (path: string, organization: string, body?: string) =>
    fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: organization, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body }),
    })
  const body = JSON.stringify('x'.repeat(100_000))
  const unread = await send('/large', 'org_1')
  // The bare app has no status for it.
  expect((await send('/', 'org_1', body)).status).toBe(500)
  expect((await send('/', 'org_2', body)).status).toBe(200)
  // A response is not refused, although it exceeds the capacity of its organization.
  const second = await send('/large', 'org_1')
  expect([second.status, (await second.text()).length]).toEqual([200, LARGE_RESPONSE.length])
  await unread.body!.cancel()
  await eventually(async () => (await send('/', 'org_1', body)).status === 200)
})

it('counts a response of unknown length, which waits before it is read', async () => {
  const app = fastify({ ...APP_OPTIONS, forceCloseConnections: true })
  const bodies = new LargeBodies({ largestBytes: 4 * 1024 * 1024, waitMs: 50 })
  app.addHook('onSend', (_request, reply, payload) => bodies.admitResponse(reply, payload, () => 'org_1'))
  let isOver = false
  app.get('/', async () =>
    Readable.from(
      (async function* () {
        yield 'begun'
        while (!isOver) await new Promise((resolve) => setImmediate(resolve))
      })(),
    ),
  )
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const first = await Promise.all([fetch(url), fetch(url)])
  // The bare app has no status for it.
  expect((await fetch(url)).status).toBe(500)
  isOver = true
  for (const response of first) expect(await response.text()).toBe('begun')
  await eventually(async () => (await fetch(url)).status === 200)
})

it('attributes a queue that its own downloads have filled to the organization', async () => {
  const app = fastify({ ...APP_OPTIONS, forceCloseConnections: true })
  // Two responses leave 1 MiB, into which the body would fit.
  const bodies = new LargeBodies({ largestBytes: 4.5 * 1024 * 1024, waitMs: 30_000 })
  let waiting = 0
  app.addHook('onRequest', (request, reply) => bodies.admit(request, reply, () => 'org_1', 1_000_000))
  app.addHook('onSend', (_request, reply, payload) => {
    if (payload instanceof Readable) waiting++
    return bodies.admitResponse(reply, payload, () => 'org_1')
  })
  app.get('/', async () => new Readable({ read() {} }))
  app.post('/', { bodyLimit: 1_000_000 }, async () => 'read')
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  for (let download = 0; download < 2 + 64; download++) fetch(url).catch(() => undefined)
  await eventually(() => waiting === 2 + 64)
  const body = JSON.stringify('x'.repeat(100_000))
  const refused = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  expect(await refused.text()).toContain('Your organization has reached its limit')
})

describe('Slow client', () => {
  it.each([
    ['sends nothing more', 0],
    ['sends a byte occasionally', 20],
  ])('with a body gets an error, and its slot is free: it %s', async (_what, everyMs) => {
    const { client } = await rateLimitedServer()
    // Two bodies use all the capacity.
    const slow = [client(post(500_000)), client(post(500_000))]
    const trickling = setInterval(() => {
      if (everyMs > 0) for (const socket of slow) socket.write(' ')
    }, everyMs || 1_000)
    onTestFinished(() => clearInterval(trickling))
    const replies = slow.map(async (socket) => String((await once(socket, 'data'))[0]))
    const waiting = client(post(400_000))
    waiting.write(`"${'x'.repeat(400_000 - 2)}"`)
    const [reply] = await once(waiting, 'data')
    expect(String(reply)).toContain('200 OK')
    for (const text of await Promise.all(replies)) expect(text).toContain('The request arrived too slowly')
  })

  it('is served while it sends at the minimum rate', async () => {
    // The body takes longer than a window, and a window is long enough for a busy machine.
    const { client } = await rateLimitedServer({ dataRate: { bodyWindowMs: 2_000 } })
    const steady = client(post(300_002))
    steady.write('"')
    let left = 300_000
    const sending = setInterval(() => {
      steady.write('x'.repeat(Math.min(left, 3_000)))
      left -= 3_000
      if (left > 0) return
      clearInterval(sending)
      steady.write('"')
    }, 30)
    onTestFinished(() => clearInterval(sending))
    expect(String((await once(steady, 'data'))[0])).toContain('200 OK')
  })

  it('that does not read a response is disconnected', async () => {
    const { client, closedResponses } = await rateLimitedServer()
    const deaf = client('GET /large HTTP/1.1\r\nhost: a\r\n\r\n')
    deaf.pause()
    await eventually(() => closedResponses() === 1)
    let bytes = 0
    for await (const piece of deaf) bytes += piece.length
    expect(bytes).toBeLessThan(LARGE_RESPONSE.length)
  })

  it('that reads gets all of a large response', async () => {
    // The kernel takes megabytes at a time.
    const { client } = await rateLimitedServer({ dataRate: { responseWindowMs: 3_000 } })
    const reader = client('GET /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    let bytes = 0
    for await (const piece of reader) {
      bytes += piece.length
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    expect(bytes).toBeGreaterThan(LARGE_RESPONSE.length)
  })

  it('is disconnected before the others when unread responses exceed the limit', async () => {
    const { client, closedResponses } = await rateLimitedServer({
      dataRate: { responseWindowMs: 600_000, maxUnreadBytes: 70 * 1024 * 1024 },
    })
    const deaf = Array.from({ length: 4 }, () => client('GET /large HTTP/1.1\r\nhost: a\r\n\r\n').pause())
    await eventually(() => closedResponses() >= 1)
    expect(closedResponses()).toBeLessThan(deaf.length)
  })
})

it('idle connections are closed for a new one', async () => {
  const { client } = await rateLimitedServer({ maxConnections: 3 })
  const idle = Array.from({ length: 3 }, () => client('GET / HTTP/1.1\r\nhost: a\r\n\r\n'))
  for (const socket of idle) await once(socket, 'data')
  const readReply = async () => text(client('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')).catch(() => '')
  await eventually(async () => (await readReply()).includes('answered'))
})

it('a client with Expect: 100-continue sends its body when there is room, and not before', async () => {
  const { client } = await rateLimitedServer({ dataRate: { bodyWindowMs: 600_000 } })
  const filling = [client(post(500_000)), client(post(500_000))]
  const socket = client(post(400_000).replace('\r\n\r\n', '\r\nexpect: 100-continue\r\n\r\n'))
  const reply = once(socket, 'data')
  await text(client('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'))
  expect(socket.bytesRead).toBe(0)
  filling[0]!.destroy()
  expect(String((await reply)[0])).toContain('100 Continue')
})
