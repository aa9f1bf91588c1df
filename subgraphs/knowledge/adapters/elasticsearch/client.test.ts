import { afterEach, expect, it, vi } from 'vitest'
import { startHeldElasticsearch } from '../../../../test/support/engines/held-elasticsearch.ts'
import { awaitResponse, elasticsearchClient, MAX_CONNECTIONS, REQUEST_TIMEOUT_MS } from './client.ts'

afterEach(() => void vi.useRealTimers())

const start = () => startHeldElasticsearch(() => ({ body: { version: { number: '9.1.0' } }, isHeld: true }))

it('ends a request that waits for a connection at its own time limit, and no longer one', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await using server = await start()
  const client = elasticsearchClient(server.url, undefined)
  const long = Array.from({ length: MAX_CONNECTIONS }, () => client.info({}, { requestTimeout: 3 * REQUEST_TIMEOUT_MS }))
  const ended = Promise.allSettled(long)
  await server.holds(MAX_CONNECTIONS)
  const waiting = expect(awaitResponse(client.info())).rejects.toMatchObject({ code: 'service_unavailable', shouldRetry: true })
  await vi.advanceTimersByTimeAsync(2 * REQUEST_TIMEOUT_MS)
  await waiting
  expect(server.held).toBe(MAX_CONNECTIONS)
  server.release()
  expect(new Set((await ended).map(({ status }) => status))).toEqual(new Set(['fulfilled']))
  await client.close()
})

it('a late request ends no other request with the same signal', async () => {
  await using server = await start()
  const client = elasticsearchClient(server.url, undefined)
  const { signal } = new AbortController()
  const other = awaitResponse(client.info({}, { signal }), signal)
  const late = awaitResponse(client.info({}, { signal, requestTimeout: 1 }), signal)
  await expect(late).rejects.toMatchObject({ code: 'service_unavailable' })
  server.release()
  expect((await other).version.number).toBe('9.1.0')
  await client.close()
})

it('ends a request whose caller disconnects, in flight or waiting for a connection', async () => {
  await using server = await start()
  const client = elasticsearchClient(server.url, undefined)
  const caller = new AbortController()
  const requests = Array.from({ length: MAX_CONNECTIONS + 1 }, () =>
    awaitResponse(client.info({}, { signal: caller.signal }), caller.signal),
  )
  const ended = Promise.allSettled(requests)
  await server.holds(MAX_CONNECTIONS)
  caller.abort(new Error('left'))
  expect(new Set((await ended).map((each) => each.status === 'rejected' && each.reason.message))).toEqual(new Set(['left']))
  await client.close()
  expect(server.held).toBe(MAX_CONNECTIONS)
})

it('continues with the remaining nodes, and authenticates at all of them', async () => {
  await using left = await startHeldElasticsearch(() => ({ body: { version: { number: '9.1.0' } } }))
  const lost = await Promise.all([start(), start()])
  const addresses = [...lost, left].map(({ url }) => url.replace('//', '//kis:p%2Cw@'))
  for (const server of lost) await server[Symbol.asyncDispose]()
  const client = elasticsearchClient(addresses.join(','), undefined)
  for (let call = 0; call < 6; call++) expect((await awaitResponse(client.info())).version.number).toBe('9.1.0')
  expect(new Set(left.authorizations)).toEqual(new Set([`Basic ${btoa('kis:p,w')}`]))
  await client.close()
})
