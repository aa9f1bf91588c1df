import { describe, expect, it } from 'vitest'
import { type Log, silentLog } from '../../subgraphs/common/process/log.ts'
import { eventually } from '../support/eventually.ts'
import type { Seen } from './support/shop.ts'
import { collect, connect, KEY, startGateway } from './support/start.ts'

const TICKS = 'subscription ($count: Int!, $mode: String) { ticks(count: $count, mode: $mode) { n } }'
/** With fields of other subgraphs, so that each event is completed by a plan. */
const COMPLETED = 'subscription ($count: Int!, $mode: String) { ticks(count: $count, mode: $mode) { n documents { title } } }'

/** What the upstream is told of its client: that it may come back. */
const isCut = ({ contexts }: Seen) => contexts.at(-1)!.isCut?.()

describe('Abandoned subscription ends upstream immediately', () => {
  for (const [what, query] of [
    ['one subgraph', TICKS],
    ['several subgraphs', COMPLETED],
  ] as const) {
    it(`when the client cancels it while it is idle (${what})`, async () => {
      const { wsUrl, seen } = await startGateway()
      const stream = collect(connect(wsUrl).client, query, { count: 1, mode: 'idle' })
      await eventually(() => stream.results.length === 1 && seen.pulled === 2)
      stream.cancel()
      await eventually(() => seen.ended === 1)
      expect([seen.opened, isCut(seen)]).toEqual([1, false])
    })
  }

  it('when the client cancels before the upstream has begun', async () => {
    const { wsUrl, seen, start } = await startGateway()
    const { client } = connect(wsUrl)
    const stream = collect(client, TICKS, { count: 1, mode: 'slow start' })
    await eventually(() => seen.operations.length === 1)
    stream.cancel()
    // The answer to a later operation tells that the cancellation was read.
    await collect(client, '{ ping }').over
    start()
    await eventually(() => seen.ended === 1)
    expect(seen).toMatchObject({ opened: 1, pulled: 0 })
    expect(stream.results).toEqual([])
  })

  it('when its socket dies', async () => {
    const { wsUrl, seen } = await startGateway()
    const { client, socket } = connect(wsUrl)
    const streams = [collect(client, TICKS, { count: 1, mode: 'idle' }), collect(client, COMPLETED, { count: 1, mode: 'idle' })]
    await eventually(() => streams.every(({ results }) => results.length === 1))
    socket().terminate()
    await eventually(() => seen.ended === 2)
    expect(isCut(seen)).toBe(true)
  })

  it('when its client closes the socket in order', async () => {
    const { wsUrl, seen } = await startGateway()
    const { client, socket } = connect(wsUrl)
    const stream = collect(client, TICKS, { count: 1, mode: 'idle' })
    await eventually(() => stream.results.length === 1)
    socket().close(1000)
    await eventually(() => seen.ended === 1)
    expect(isCut(seen)).toBe(false)
  })

  it('when the gateway stops, which closes sockets with 1001', async () => {
    const { wsUrl, seen, stop } = await startGateway()
    const { client, closed } = connect(wsUrl)
    const stream = collect(client, TICKS, { count: 1, mode: 'idle' })
    await eventually(() => stream.results.length === 1)
    await stop()
    expect([seen.ended, isCut(seen)]).toEqual([1, true])
    expect(await closed).toMatchObject({ code: 1001 })
  })

  for (const [how, stop] of [
    ['return()', (events: AsyncIterator<unknown>) => events.return?.()],
    ['its signal', (_events: AsyncIterator<unknown>, controller: AbortController) => controller.abort()],
  ] as const) {
    it(`when a part of the process ends it by ${how}`, async () => {
      const { gateway, seen } = await startGateway()
      const controller = new AbortController()
      const events = gateway.link.subscribe(
        { query: COMPLETED, variables: { count: 1, mode: 'idle' } },
        { caller: KEY, requestId: 'req_1', signal: controller.signal },
      )
      await events.next()
      const pending = events.next()
      await eventually(() => seen.pulled === 2)
      await stop(events, controller)
      expect(await pending).toEqual({ done: true, value: undefined })
      await eventually(() => seen.ended === 1)
    })
  }
})

it('a subscription that ends before its first next() sends nothing to a subgraph', async () => {
  const { gateway, seen } = await startGateway()
  const events = gateway.link.subscribe(
    { query: TICKS, variables: { count: 1 } },
    { caller: KEY, requestId: 'req_1', signal: new AbortController().signal },
  )
  await events.return?.()
  expect(await events.next()).toEqual({ done: true, value: undefined })
  expect(seen.operations).toEqual([])
})

it('notifies the resolver of a query when its client disconnects, on every transport, and logs no defect', async () => {
  const logged: unknown[] = []
  const note = (...line: unknown[]) => void logged.push(line)
  const { gateway, seen, wsUrl, url } = await startGateway({ log: { ...silentLog, warn: note, error: note } as Log })
  const query = collect(connect(wsUrl).client, '{ slow }')
  await eventually(() => seen.opened === 1)
  query.cancel()
  await eventually(() => seen.aborted === 1)

  const http = new AbortController()
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${KEY}` }
  const response = fetch(url, { method: 'POST', headers, body: '{"query":"{ slow }"}', signal: http.signal })
  await eventually(() => seen.opened === 2)
  http.abort()
  await expect(response).rejects.toMatchObject({ name: 'AbortError' })
  await eventually(() => seen.aborted === 2)

  const local = new AbortController()
  const result = gateway.link.execute({ query: '{ slow }' }, { caller: KEY, requestId: 'req_1', signal: local.signal })
  await eventually(() => seen.opened === 3)
  local.abort()
  await expect(result).rejects.toMatchObject({ name: 'AbortError' })
  // The last of the abandoned requests is over once the next one has its result.
  expect(
    await gateway.link.execute({ query: '{ ping }' }, { caller: KEY, requestId: 'req_2', signal: new AbortController().signal }),
  ).toEqual({
    data: { ping: 1 },
  })
  expect(logged).toEqual([])
})
