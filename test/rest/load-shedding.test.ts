import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { restConfig } from '../../rest-adapter/config.ts'
import { createRestAdapter } from '../../rest-adapter/main.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { LargeBodies } from '../../subgraphs/common/server/admission/large-bodies.ts'
import type { Admit } from '../../subgraphs/common/server/listen.ts'
import { startGateway } from '../gateway/support/start.ts'
import { FakeGateway } from './support.ts'

/** Keys that came, of which each but `let-me` is refused. */
function fullShedder() {
  const keys: (string | null | undefined)[] = []
  const enter = (key: string | null | undefined, _address: string, start: () => void) => {
    keys.push(key)
    if (!key?.endsWith('let-me')) throw new KisError('service_unavailable', 'Too much to do.', { retryAfterMs: 2_000 })
    start()
    return () => void keys.push('left')
  }
  return { keys, loadShedder: { enter, recognise: () => {} } }
}

/** What is not refused is answered by 204. */
async function serve(admit: Admit) {
  const server = createServer((request, response) => admit(request, response, () => response.writeHead(204).end()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(base + path, { method: 'POST', headers, body: '{"model":"m"}' })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
  }
}

it('the REST adapter sheds load in the error format of each path, and serves what needs no key', async () => {
  const { keys, loadShedder } = fullShedder()
  const clock = systemClock
  const { uploadBodyBytes } = restConfig()
  const { admit } = createRestAdapter({
    gateway: new FakeGateway({}),
    loadShedder,
    clock,
    ids: idSource(clock),
    log: silentLog,
    config: restConfig(),
    bodies: new LargeBodies({ largestBytes: uploadBodyBytes }),
  })
  const send = await serve(admit)
  const chat = await send('/v1/chat/completions?x=1', { authorization: 'Bearer one', 'x-request-id': 'mine' })
  expect(chat.status).toBe(503)
  expect(chat.body).toEqual({ error: { message: 'Too much to do.', type: 'server_error', param: null, code: 'service_unavailable' } })
  expect(Object.fromEntries(chat.headers)).toMatchObject({
    'x-request-id': expect.stringMatching(/^req_/),
    'x-client-request-id': 'mine',
    'retry-after': '2',
    'retry-after-ms': '2000',
    'x-should-retry': 'true',
    'access-control-allow-origin': '*',
    'content-type': 'application/json; charset=utf-8',
  })
  const message = await send('/v1/messages', { 'x-api-key': 'two' })
  expect(message.status).toBe(529)
  expect(message.body).toMatchObject({ type: 'error', error: { type: 'overloaded_error' }, request_id: message.headers.get('request-id') })
  expect((await send('/mcp', { authorization: 'Bearer three' })).body).toMatchObject({
    jsonrpc: '2.0',
    error: { data: { code: 'service_unavailable' } },
  })
  for (const path of ['/healthz', '/readyz?x=1']) expect((await send(path)).status, path).toBe(204)
  // The router would decode them.
  for (const path of ['/%761/chat/completions', '//v1/models', '/docs']) expect((await send(path)).status, path).toBe(503)
  expect((await send('/v1/models', { authorization: 'Bearer let-me' })).status).toBe(204)
  expect(keys).toEqual(['one', 'two', 'three', null, null, null, 'let-me', 'left'])
})

it('the gateway sheds load with a GraphQL error', async () => {
  const { keys, loadShedder } = fullShedder()
  const { gateway } = await startGateway({ loadShedder })
  const send = await serve(gateway.admit)
  const { status, headers, body } = await send('/graphql?x=1', { authorization: 'Bearer one' })
  expect(status).toBe(503)
  expect(headers.get('retry-after')).toBe('2')
  expect(headers.get('x-request-id')).toMatch(/^req_/)
  expect(body).toEqual({ errors: [{ message: 'Too much to do.', extensions: expect.objectContaining({ code: 'SERVICE_UNAVAILABLE' }) }] })
  expect((await send('/healthz')).status).toBe(204)
  expect((await send('/graphql', { authorization: 'Bearer let-me' })).status).toBe(204)
  expect(keys).toEqual(['Bearer one', 'Bearer let-me', 'left'])
})
