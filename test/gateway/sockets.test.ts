import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { OrganizationSuspended } from '../../subgraphs/common/errors.ts'
import { eventually } from '../support/eventually.ts'
import { handClock } from './support/clock.ts'
import { type Closed, collect, connect, createPrincipal, KEY, OTHER_KEY, startGateway, UNKNOWN_KEY } from './support/start.ts'

const IDLE = 'subscription { ticks(count: 1, mode: "idle") { n } }'

/** Opens a client's socket and gives how it closed, or undefined while it is open after an answer. */
async function outcome(wsUrl: string, connectionParams: Record<string, unknown>): Promise<Closed | undefined> {
  const { client, closed } = connect(wsUrl, connectionParams)
  const result = collect(client, '{ ping }')
  return Promise.race([closed, result.over.then(() => (result.results.length ? undefined : closed))])
}

describe('WebSocket authentication', () => {
  for (const [what, params] of [
    ['authorization with Bearer', { authorization: `Bearer ${KEY}` }],
    ['Authorization without', { Authorization: KEY }],
  ] as const) {
    it(`accepts a key in connectionParams (${what})`, async () => {
      const { wsUrl } = await startGateway()
      expect(await outcome(wsUrl, params)).toBeUndefined()
    })
  }

  it('accepts a key in the header of the upgrade', async () => {
    const { wsUrl } = await startGateway()
    const socket = new WebSocket(wsUrl, 'graphql-transport-ws', { headers: { authorization: `Bearer ${KEY}` } })
    const messages: string[] = []
    socket.on('message', (message) => messages.push(String(message)))
    socket.on('open', () => socket.send('{"type":"connection_init"}'))
    await eventually(() => messages.length === 1)
    expect(JSON.parse(messages[0]!)).toEqual({ type: 'connection_ack' })
    socket.terminate()
  })

  for (const [what, params, code] of [
    ['no key', {}, 4401],
    ['a key that is not text', { authorization: 7 }, 4401],
    ['a malformed key', { authorization: 'Bearer sk-123' }, 4401],
    ['an unknown key', { authorization: `Bearer ${UNKNOWN_KEY}` }, 4401],
  ] as const) {
    it(`refuses ${what}: ${code}`, async () => {
      const { wsUrl, lookups } = await startGateway()
      expect(await outcome(wsUrl, params)).toMatchObject({ code })
      expect(lookups).toEqual(what === 'an unknown key' ? [UNKNOWN_KEY] : [])
    })
  }

  it('closes with 1013 while keys cannot be verified', async () => {
    const { wsUrl } = await startGateway({ authenticate: () => Promise.reject(new Error('billing is down')) })
    expect(await outcome(wsUrl, { authorization: KEY })).toMatchObject({ code: 1013 })
  })

  it('closes with 4401 on an operation before the key was accepted', async () => {
    const { wsUrl, seen } = await startGateway()
    const socket = new WebSocket(wsUrl, 'graphql-transport-ws')
    const closed = new Promise<number>((resolve) => socket.on('close', resolve))
    socket.on('open', () => socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: '{ ping }' } })))
    expect(await closed).toBe(4401)
    expect(seen.operations).toEqual([])
  })

  it('is served only at /graphql', async () => {
    const { wsUrl } = await startGateway()
    const socket = new WebSocket(`${wsUrl}/other`, 'graphql-transport-ws')
    const error = await new Promise<Error>((resolve) => socket.on('error', resolve))
    expect(error.message).toContain('404')
  })
})

describe('Revoked key', () => {
  it('closes its open sockets with 4401 within 5 s, ends what runs on them, and leaves others open', async () => {
    const clock = handClock()
    const { wsUrl, seen, revoked } = await startGateway({ clock })
    const doomed = connect(wsUrl)
    const other = connect(wsUrl, { authorization: OTHER_KEY })
    const streams = [doomed, other].map(({ client }) => collect(client, IDLE))
    await eventually(() => streams.every(({ results }) => results.length === 1))
    revoked.add(KEY)
    let closed: Closed | undefined
    void doomed.closed.then((event) => {
      closed = event
    })
    for (let second = 0; second < 5; second++) {
      clock.advance(1_000)
      // One turn of the loop that looks at sockets: the next operation of the other key is answered after it.
      await collect(other.client, '{ ping }').over
    }
    await eventually(() => closed !== undefined)
    expect(closed).toMatchObject({ code: 4401 })
    await eventually(() => seen.ended === 1)
    expect(seen.contexts.map(({ isCut }) => isCut?.())).not.toContain(true)
    expect(other.socket().readyState).toBe(WebSocket.OPEN)
  })

  it('reports that its organization is suspended, on open sockets and new ones', async () => {
    const clock = handClock()
    let isSuspended = false
    const authenticate = async (apiKey: string) => {
      if (isSuspended) throw new OrganizationSuspended()
      return createPrincipal(apiKey)
    }
    const { wsUrl } = await startGateway({ clock, authenticate })
    const { client, closed } = connect(wsUrl)
    const { results } = collect(client, IDLE)
    await eventually(() => results.length === 1)
    isSuspended = true
    const expected = { code: 4401, reason: 'The organization is suspended' }
    let event: Closed | undefined
    void closed.then((closeEvent) => {
      event = closeEvent
    })
    await eventually(() => {
      clock.advance(1_000)
      return event !== undefined
    })
    expect(event).toMatchObject(expected)
    expect(await outcome(wsUrl, { authorization: KEY })).toMatchObject(expected)
  })

  it('is refused by HTTP and in the process within 5 s', async () => {
    const clock = handClock()
    const { gateway, post, revoked } = await startGateway({ clock })
    const ping = () =>
      gateway.link.execute({ query: '{ ping }' }, { caller: KEY, requestId: 'req_1', signal: new AbortController().signal })
    expect((await ping()).data).toEqual({ ping: 1 })
    revoked.add(KEY)
    clock.advance(5_000)
    expect((await ping()).errors?.[0]?.extensions.code).toBe('INVALID_API_KEY')
    expect((await post({ query: '{ ping }' })).status).toBe(401)
  })

  it('keeps its sockets open while it cannot be verified', async () => {
    const clock = handClock()
    let down = false
    let lookupCount = 0
    const { wsUrl, seen } = await startGateway({
      clock,
      authenticate: async () => {
        lookupCount++
        if (down) throw new Error('billing is down')
        return createPrincipal(KEY)
      },
    })
    const stream = collect(connect(wsUrl).client, IDLE)
    await eventually(() => stream.results.length === 1)
    down = true
    const before = lookupCount
    clock.advance(10_000)
    await eventually(() => lookupCount > before)
    expect(seen.ended).toBe(0)
    stream.cancel()
  })
})

describe('WebSocket limits per key', () => {
  it('allow 20 sockets; the next is closed with 1013, and there is room when one closes', async () => {
    const { wsUrl } = await startGateway()
    const clients = Array.from({ length: 20 }, () => connect(wsUrl))
    const streams = clients.map(({ client }) => collect(client, IDLE))
    await eventually(() => streams.every(({ results }) => results.length === 1))
    expect(await outcome(wsUrl, { authorization: KEY })).toMatchObject({ code: 1013 })
    expect(await outcome(wsUrl, { authorization: OTHER_KEY })).toBeUndefined()
    clients[0]!.socket().terminate()
    await eventually(async () => (await outcome(wsUrl, { authorization: KEY })) === undefined)
  })

  it('allow 50 operations over all its sockets; the next is refused without another effect', async () => {
    const { wsUrl, seen } = await startGateway()
    const [one, two] = [connect(wsUrl), connect(wsUrl)]
    const streams = Array.from({ length: 50 }, (_, i) => collect((i % 2 ? one : two).client, IDLE))
    await eventually(() => streams.every(({ results }) => results.length === 1))
    const refused = collect(one.client, IDLE)
    await refused.over
    expect(refused.error()[0].extensions).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', shouldRetry: true, retryAfterMs: 1_000 })
    expect(seen.opened).toBe(50)
    streams[0]!.cancel()
    await eventually(() => seen.ended === 1)
    const allowed = collect(two.client, '{ ping }')
    await allowed.over
    expect(allowed.results).toEqual([{ data: { ping: 1 } }])
  })

  it('free the slot of an operation, however it ended', async () => {
    const clock = handClock()
    const { wsUrl } = await startGateway({ clock })
    const { client } = connect(wsUrl)
    const queries = [
      '{ ping }',
      '{ nothing }',
      'subscription { ticks(count: 2) { n } }',
      'subscription { ticks(count: 0, mode: "refused") { n } }',
    ]
    for (let round = 0; round < 6; round++) {
      const collected = Array.from({ length: 12 }, (_, i) => collect(client, queries[i % queries.length]!))
      await Promise.all(collected.map(({ over }) => over))
      for (const { results, error } of collected) expect(JSON.stringify([results, error()])).not.toContain('RATE_LIMIT')
      clock.advance(1_000)
    }
  })
})

describe('WebSocket limits per connection', () => {
  it('close with 1013 above 20 messages a second, of which a long one counts as many, and with 1009 above 1 MiB a message', async () => {
    const clock = handClock()
    const { wsUrl } = await startGateway({ clock })
    const flood = connect(wsUrl)
    await collect(flood.client, '{ ping }').over
    for (let i = 0; i < 130; i++) flood.socket().send('{"type":"ping"}')
    expect(await flood.closed).toMatchObject({ code: 1013 })

    const long = connect(wsUrl)
    await collect(long.client, '{ ping }').over
    for (let i = 0; i < 4; i++) long.socket().send(JSON.stringify({ type: 'ping', payload: { text: 'x'.repeat(1_000_000) } }))
    expect(await long.closed).toMatchObject({ code: 1013 })

    const large = connect(wsUrl)
    collect(large.client, 'query ($text: String!) { echo(text: $text) }', { text: 'x'.repeat(1_100_000) })
    expect(await large.closed).toMatchObject({ code: 1009 })
  })

  it('allow any duration below that rate', async () => {
    const clock = handClock()
    const { wsUrl } = await startGateway({ clock })
    const { client, socket } = connect(wsUrl)
    const results: unknown[] = []
    await collect(client, '{ ping }').over
    socket().on('message', (message) => results.push(message))
    for (let second = 1; second <= 10; second++) {
      clock.advance(1_000)
      for (let i = 0; i < 20; i++) socket().send('{"type":"ping"}')
      await eventually(() => results.length === second * 20)
    }
    expect(socket().readyState).toBe(WebSocket.OPEN)
  })

  it('close a slow consumer with 4413, and end what runs on its socket', async () => {
    const clock = handClock()
    const { wsUrl, seen } = await startGateway({ clock })
    const { client, socket, closed } = connect(wsUrl)
    const stream = collect(client, 'subscription { ticks(count: 1000, mode: "large") { n filler } }')
    await eventually(() => stream.results.length > 0)
    socket().pause()
    const quiet = async () => {
      const before = seen.pulled
      await new Promise((resolve) => setTimeout(resolve, 100))
      return seen.pulled === before
    }
    await eventually(quiet)
    expect(seen.pulled).toBeLessThan(100)
    await eventually(() => {
      clock.advance(1_000)
      return seen.ended === 1
    })
    socket().resume()
    // 1006 when it reads too late for the close frame.
    expect([4413, 1006]).toContain((await closed).code)
  })

  it('differ for a service of the installation', async () => {
    const { wsUrl } = await startGateway({ isService: async ({ headers }) => headers['x-service'] === 'yes' })
    const text = 'x'.repeat(600_000)
    const socket = new WebSocket(wsUrl, 'graphql-transport-ws', { headers: { authorization: `Bearer ${KEY}`, 'x-service': 'yes' } })
    const messages: string[] = []
    socket.on('message', (message) => messages.push(String(message)))
    socket.on('open', () => socket.send('{"type":"connection_init"}'))
    await eventually(() => messages.length === 1)
    for (let i = 0; i < 60; i++) socket.send(JSON.stringify({ id: `${i}`, type: 'subscribe', payload: { query: IDLE } }))
    const echo = { query: 'query ($text: String!) { a: echo(text: $text) b: echo(text: $text) c: ping }', variables: { text, other: text } }
    socket.send(JSON.stringify({ id: 'echo', type: 'subscribe', payload: echo }))
    await eventually(() => messages.length >= 62 && messages.some((message) => message.includes(text)))
    socket.terminate()
  })
})

it('closes with 4408 when the client sends nothing for 3 s after connecting', async () => {
  const { wsUrl } = await startGateway()
  const socket = new WebSocket(wsUrl, 'graphql-transport-ws')
  expect(await new Promise<number>((resolve) => socket.on('close', resolve))).toBe(4408)
})
