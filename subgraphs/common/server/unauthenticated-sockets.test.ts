import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { principalTokens } from '../../../cli/links/principal-token.ts'
import { serveSubgraph } from '../../../cli/links/serve-subgraph.ts'
import { probe, somebody } from '../../../test/contract/link.ts'
import { KEY, startGateway } from '../../../test/gateway/support/start.ts'
import { systemClock } from '../process/clock.ts'
import { silentLog } from '../process/log.ts'
import { refuseUpgrade, UnauthenticatedSockets } from './unauthenticated-sockets.ts'

/** Above the limit of unauthenticated clients, below that of callers. */
const FRAME = 'x'.repeat(512 * 1024)

const servers = {
  async gateway() {
    const { wsUrl } = await startGateway()
    return { url: wsUrl, authorization: `Bearer ${KEY}` }
  },
  async subgraph() {
    const tokens = principalTokens(randomBytes(32), systemClock)
    const options = { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, tokens, log: silentLog }
    const server = await serveSubgraph(probe().subgraph, options)
    onTestFinished(() => server[Symbol.asyncDispose]())
    const url = `${server.url.replace('http', 'ws')}/graphql`
    return { url, authorization: `Bearer ${await tokens.sign(somebody, 'inference')}` }
  },
}

function open(url: string): WebSocket {
  const socket = new WebSocket(url, 'graphql-transport-ws')
  socket.on('error', () => undefined)
  onTestFinished(() => socket.terminate())
  return socket
}

for (const [name, start] of Object.entries(servers)) {
  it(`reads no long unauthenticated message on a ${name}, but those of authenticated callers`, async () => {
    const { url, authorization } = await start()
    const unauthenticated = open(url)
    await once(unauthenticated, 'open')
    unauthenticated.send(FRAME)
    const [code] = await once(unauthenticated, 'close')
    // The connection is cut; a server that had read the whole message would have reported what is wrong with it.
    expect(code).toBe(1006)

    const caller = open(url)
    await once(caller, 'open')
    caller.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }))
    expect(JSON.parse(String((await once(caller, 'message'))[0]))).toMatchObject({ type: 'connection_ack' })
    caller.send(JSON.stringify({ type: 'ping', payload: { filler: FRAME } }))
    expect(JSON.parse(String((await once(caller, 'message'))[0]))).toMatchObject({ type: 'pong' })
  })
}

it('limits unauthenticated sockets to a thousand, and frees one on authentication or close', async () => {
  const sockets = new UnauthenticatedSockets()
  const connections = Array.from({ length: 1_002 }, () => new PassThrough())
  for (const connection of connections.slice(0, 1_000)) sockets.enter(connection)
  expect(sockets.isFull).toBe(true)
  sockets.know(connections[0]!)
  expect(sockets.isFull).toBe(false)
  sockets.enter(connections[1_000]!)
  expect(sockets.isFull).toBe(true)
  connections[1]!.destroy()
  await once(connections[1]!, 'close')
  expect(sockets.isFull).toBe(false)
})

it('tells a refused socket when to retry', async () => {
  const connection = new PassThrough()
  refuseUpgrade(connection, '503 Service Unavailable')
  const [reply] = await once(connection, 'data')
  expect(String(reply).split('\r\n')).toEqual(['HTTP/1.1 503 Service Unavailable', 'Retry-After: 1', 'Connection: close', '', ''])
})
