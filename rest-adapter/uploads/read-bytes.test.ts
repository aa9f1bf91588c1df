import { once } from 'node:events'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import fastify from 'fastify'
import { expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { APP_OPTIONS, listen } from '../../subgraphs/common/server/listen.ts'
import { eventually } from '../../test/support/eventually.ts'
import { readBytes } from './form-stream.ts'

const PACE = { leastBytesPerSecond: 16 * 1024, bodyWindowMs: 60_000, answerWindowMs: 60_000, maxUnreadBytes: 1024 * 1024, lookMs: 20 }

/** Answers with the length of a body, of which it reads at most so much. */
async function start({ mostBytes = Number.POSITIVE_INFINITY, bodyWindowMs = PACE.bodyWindowMs } = {}) {
  const app = fastify(APP_OPTIONS)
  const failures: unknown[] = []
  app.setErrorHandler((error, _request, reply) => {
    failures.push(error)
    return reply.code(400).send((error as Error).message)
  })
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  app.post('/', { bodyLimit: 1_000_000 }, async ({ body }) => {
    let length = 0
    for await (const bytes of readBytes(body as Readable)) {
      length += bytes.length
      if (length >= mostBytes) return 'enough'
    }
    return `all ${length}`
  })
  const pace = { ...PACE, bodyWindowMs }
  const listening = await listen(app, { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, hasPeers: false, pace }, [])
  onTestFinished(() => listening[Symbol.asyncDispose]())
  const open = () => {
    const socket = connect(Number(new URL(listening.url).port), '127.0.0.1')
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/octet-stream\r\ncontent-length: 1000000\r\n\r\n')
    return socket
  }
  return { open, failures }
}

it.each([
  ['nothing more', 0],
  ['a byte now and then', 20],
])('ends bare bytes of a client that sends %s', async (_what, everyMs) => {
  const { open } = await start({ bodyWindowMs: 200 })
  const slow = open()
  const trickling = setInterval(() => everyMs > 0 && slow.write('x'), everyMs || 1_000)
  onTestFinished(() => clearInterval(trickling))
  expect(String((await once(slow, 'data'))[0])).toContain('The request arrived too slowly')
})

it('gives all bytes of a body, and of one only what is wanted, with an answer that the client reads', async () => {
  for (const [mostBytes, answer] of [
    [undefined, 'all 1000000'],
    [1, 'enough'],
  ] as const) {
    const { open } = await start({ ...(mostBytes !== undefined && { mostBytes }) })
    const client = open()
    client.write('x'.repeat(1_000_000))
    expect(String((await once(client, 'data'))[0])).toContain(answer)
  }
})

it('says that a body was cut off', async () => {
  const { open, failures } = await start()
  const client = open()
  client.write('x'.repeat(1_000), () => client.destroy())
  await eventually(() => failures.length === 1)
  expect(failures).toMatchObject([{ code: 'invalid_request', message: 'The body was cut off.' }])
})
