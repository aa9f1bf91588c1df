import { connect as connectTo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type RequestParams } from 'graphql-sse'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Json } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { handClock } from './support/clock.ts'
import { collect, connect, KEY, OTHER_KEY, startGateway, UNKNOWN_KEY } from './support/start.ts'

const IDLE = 'subscription { ticks(count: 1, mode: "idle") { n } }'

/** Runs one operation by the official client of graphql-sse, and notes what comes. */
function stream(url: string, params: RequestParams, key = KEY) {
  const client = createClient({ url, headers: { authorization: `Bearer ${key}` }, retryAttempts: 0 })
  onTestFinished(() => client.dispose())
  const results: Json[] = []
  let error: Json
  let cancel = () => {}
  const over = new Promise<void>((resolve) => {
    cancel = client.subscribe(params, {
      next: (result) => void results.push(result),
      error: (reason) => {
        error = reason
        resolve()
      },
      complete: resolve,
    })
  })
  return { results, over, cancel: () => cancel(), error: () => error }
}

describe('GraphQL over server-sent events', () => {
  it('executes queries, mutations and subscriptions with entities of other subgraphs', async () => {
    const { url } = await startGateway()
    const query = stream(url, { query: 'query ($n: Int) { ping(n: $n) }', variables: { n: 7 } })
    const mutation = stream(url, { query: 'mutation { poke }' })
    const ticks = stream(url, { query: 'subscription { ticks(count: 3) { n documents { title } } }' })
    await Promise.all([query.over, mutation.over, ticks.over])
    expect(query.results).toEqual([{ data: { ping: 7 } }])
    expect(mutation.results).toMatchObject([{ data: { poke: expect.any(Number) } }])
    expect(ticks.results).toHaveLength(3)
    expect(ticks.results[0].data.ticks.documents[0].title).toEqual(expect.any(String))
  })

  it('responds with events, whatever is wrong with the operation', async () => {
    const { url } = await startGateway()
    for (const query of ['{ absent }', '{ ping', 'subscription { ticks(count: 1, mode: 7) { n } }']) {
      const { results, over, error } = stream(url, { query })
      await over
      expect(results).toMatchObject([{ errors: [{ message: expect.any(String), extensions: { code: expect.any(String) } }] }])
      expect(error()).toBeUndefined()
    }
  })

  it('requires a key', async () => {
    const { url, seen } = await startGateway()
    const { over, error, results } = stream(url, { query: '{ ping }' }, UNKNOWN_KEY)
    await over
    expect(error()).toMatchObject({ response: { status: 401 } })
    expect([results, seen.operations]).toEqual([[], []])
  })

  it('accepts GET as well, without mutations', async () => {
    const { url, seen } = await startGateway()
    const get = async (query: string) => {
      const headers = { authorization: `Bearer ${KEY}`, accept: 'text/event-stream' }
      const response = await fetch(`${url}?query=${encodeURIComponent(query)}`, { headers })
      expect(response.headers.get('content-type')).toContain('text/event-stream')
      return response.text()
    }
    expect(await get('{ ping }')).toBe('event: next\ndata: {"data":{"ping":1}}\n\nevent: complete\ndata: \n\n')
    expect(await get('mutation { poke }')).toContain('INVALID_REQUEST')
    expect(seen.operations.filter((operation) => operation.includes('poke'))).toEqual([])
  })

  it.each(['variables', 'extensions'])('accepts the %s of a POST as an object, never as JSON in a string', async (name) => {
    const { url, seen } = await startGateway()
    const headers = { authorization: `Bearer ${KEY}`, accept: 'text/event-stream', 'content-type': 'application/json' }
    const body = JSON.stringify({ query: 'query ($n: Int) { ping(n: $n) }', [name]: '{"n":7}' })
    const response = await fetch(url, { method: 'POST', headers, body })
    expect([response.status, seen.operations]).toEqual([400, []])
    expect(await response.text()).toContain(name)
    const byGet = await fetch(`${url}?${new URLSearchParams(JSON.parse(body))}`, { headers })
    expect(await byGet.text()).toContain(name === 'variables' ? '"ping":7' : '"ping"')
  })

  it('is used only for subscriptions if the client accepts JSON as well', async () => {
    const { url } = await startGateway()
    const subscribe = async (query: string) => {
      const headers = {
        authorization: `Bearer ${KEY}`,
        accept: 'application/graphql-response+json, application/json, text/event-stream',
        'content-type': 'application/json',
      }
      return (await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) })).headers.get('content-type')
    }
    expect(await subscribe('{ ping }')).toContain('json')
    expect(await subscribe('{ absent }')).toContain('json')
    expect(await subscribe('subscription { ticks(count: 1) { n } }')).toContain('text/event-stream')
  })
})

describe('Subscription over server-sent events', () => {
  it('ends upstream when its client disconnects, even if idle', async () => {
    const { url, seen } = await startGateway()
    const idle = stream(url, { query: IDLE })
    await eventually(() => idle.results.length === 1)
    idle.cancel()
    await eventually(() => seen.ended === 1)
  })

  it('ends with an error within 5 s of the revocation of its key, and leaves others running', async () => {
    const clock = handClock()
    const { url, seen, revoked } = await startGateway({ clock })
    const doomed = stream(url, { query: IDLE })
    const other = stream(url, { query: IDLE }, OTHER_KEY)
    await eventually(() => doomed.results.length === 1 && other.results.length === 1)
    revoked.add(KEY)
    for (let second = 0; second < 5; second++) {
      clock.advance(1_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await eventually(() => doomed.results.length === 2)
    await doomed.over
    expect(doomed.results[1].errors[0].extensions.code).toBe('INVALID_API_KEY')
    expect([other.results.length, seen.ended]).toEqual([1, 1])
  })

  it('waits for a slow consumer, and ends when it has not read for half a minute', async () => {
    const clock = handClock()
    const { url, seen } = await startGateway({ clock })
    const { port, host } = new URL(url)
    const query = 'subscription { ticks(count: 1000, mode: "large") { filler } }'
    const body = JSON.stringify({ query })
    const socket = connectTo(Number(port), '127.0.0.1').pause()
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined)
    const headers = [`host: ${host}`, `authorization: Bearer ${KEY}`, 'accept: text/event-stream', 'content-type: application/json']
    socket.write(`POST /graphql HTTP/1.1\r\n${headers.join('\r\n')}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    let before = -1
    await eventually(async () => {
      const isStill = seen.pulled > 1 && seen.pulled === before
      before = seen.pulled
      await sleep(200)
      return isStill
    })
    expect(seen.ended).toBe(0)
    expect(seen.pulled).toBeLessThan(100)
    clock.advance(30_000)
    await eventually(() => seen.ended === 1)
  })

  it('counts together with those that its key has on sockets', async () => {
    const { url, wsUrl } = await startGateway()
    const { client } = connect(wsUrl)
    const onSocket = Array.from({ length: 25 }, () => collect(client, IDLE))
    const streams = Array.from({ length: 25 }, () => stream(url, { query: IDLE }))
    await eventually(() => [...onSocket, ...streams].every(({ results }) => results.length === 1))
    const refused = stream(url, { query: '{ ping }' })
    await refused.over
    expect(refused.results).toMatchObject([{ errors: [{ extensions: { code: 'RATE_LIMIT_EXCEEDED', retryAfterMs: 1_000 } }] }])
    const refusedOnSocket = collect(client, '{ ping }')
    await refusedOnSocket.over
    expect(refusedOnSocket.results).toEqual([])
    const other = stream(url, { query: '{ ping }' }, OTHER_KEY)
    await other.over
    expect(other.results).toEqual([{ data: { ping: 1 } }])
    streams[0]!.cancel()
    await eventually(async () => {
      const again = stream(url, { query: '{ ping }' })
      await again.over
      return again.results[0].data !== undefined
    })
  })

  it('ends with an error when the process cannot wait any longer', async () => {
    const { url, parts, seen } = await startGateway()
    const idle = stream(url, { query: IDLE })
    await eventually(() => idle.results.length === 1)
    for (const part of parts) part.end()
    await idle.over
    expect(idle.results[1].errors[0].extensions.code).toBe('SERVICE_UNAVAILABLE')
    await eventually(() => seen.ended === 1)
  })
})
