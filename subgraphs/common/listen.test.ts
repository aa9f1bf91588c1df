import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import fastify from 'fastify'
import { expect, it } from 'vitest'
import { systemClock } from './clock.ts'
import { listen } from './listen.ts'

/** Longer than a test may take: what waits for the end of the drain fails. */
const DRAIN_MS = 600_000

async function server({ hasPeers = false } = {}) {
  const app = fastify({ forceCloseConnections: 'idle', return503OnClosing: false })
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

it.each([{ hasPeers: false }, { hasPeers: true }])(
  'stops though clients hold connections that never had a request: %o',
  async (options) => {
    const { listening, connection } = await server(options)
    const spare = await connection()
    const used = await connection()
    used.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    await once(used, 'data')
    const ends = [once(spare, 'close'), once(used, 'close')]
    for (const socket of [spare, used]) socket.resume()
    await listening[Symbol.asyncDispose]()
    await Promise.all(ends)
  },
)

it('answers the request of a connection that was opened just before the stop', async () => {
  const { listening, connection } = await server()
  const late = await connection()
  const stopped = listening[Symbol.asyncDispose]()
  late.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  const answer = await text(late)
  expect(answer).toContain('answered')
  expect(answer).toMatch(/^connection: close/im)
  await stopped
})
