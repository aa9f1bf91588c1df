import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { type Service, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const MIB = 1024 * 1024
const LARGE_BYTES = 19.8 * MIB
/** Four such bodies as the service held them once, several times over; what it may grow while it refuses them. */
const MAX_GROWTH_BYTES = 150 * MIB
/** Half a second on a machine of its own; tests share theirs. */
const HEALTHY_MS = 2_000
const UNKNOWN_KEY = 'authorization: Bearer nobody'

interface Listener {
  /** Whose port it is. */
  readonly role: string
  readonly path: string
  readonly address: string
}

/** A raw connection that never fails a test by itself. */
function open(address: string, text = ''): Socket {
  const { hostname, port } = new URL(address)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  socket.write(text)
  return socket
}

const head = ({ path }: Pick<Listener, 'path'>, header: string, framing: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\n${header}\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`

/** The status and the rest of the first piece of an answer; empty when the connection ends without one. */
async function awaitResponse(socket: Socket): Promise<string> {
  return Promise.race([once(socket, 'data').then(([piece]) => String(piece)), once(socket, 'close').then(() => '')])
}

const readRss = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

/** The longest that `/healthz` took while something was under way. */
async function slowestHealth(address: string, during: Promise<unknown>): Promise<number> {
  let isOver = false
  const over = during.finally(() => {
    isOver = true
  })
  let slowestMs = 0
  while (!isOver) {
    const beganAt = performance.now()
    await (await fetch(`${address}/healthz`)).text()
    slowestMs = Math.max(slowestMs, performance.now() - beganAt)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await over
  return slowestMs
}

async function upload(caller: Caller, bytes: number): Promise<number> {
  return (await caller.rest('POST', '/v1/files', { file_name: `${Math.random()}.txt`, content_base64: 'YWJj'.repeat(bytes / 3) })).status
}

/** What holds at each door of a service, whoever answers there. */
function testListeners(start: () => Promise<{ service: Service; at: readonly Listener[] }>) {
  let service: Service
  let at: readonly Listener[]
  beforeAll(async () => {
    ;({ service, at } = await start())
  }, 300_000)
  afterAll(() => service?.close())
  const findPid = ({ role }: Listener) => service.processes.get(role)!.pid

  it('refuses four unauthenticated bodies of 19.8 MB within a few bytes, and stays responsive', async () => {
    for (const listener of at) {
      const before = readRss(findPid(listener))
      const body = Buffer.alloc(LARGE_BYTES, 'x')
      const responses = Promise.all(
        [`content-length: ${body.length}`, 'transfer-encoding: chunked'].flatMap((framing) =>
          [1, 2].map(async () => {
            const socket = open(listener.address, head(listener, UNKNOWN_KEY, framing))
            if (framing.startsWith('transfer')) socket.write(`${body.length.toString(16)}\r\n`)
            socket.write(body)
            const response = await awaitResponse(socket)
            socket.destroy()
            return response
          }),
        ),
      )
      expect(await slowestHealth(listener.address, responses), `${listener.role} ${listener.path}`).toBeLessThan(HEALTHY_MS)
      for (const response of await responses) expect(response.slice(0, 12), `${listener.role} ${listener.path}`).toBe('HTTP/1.1 401')
      expect(readRss(findPid(listener)) - before, `${listener.role} ${listener.path}`).toBeLessThan(MAX_GROWTH_BYTES)
    }
  }, 120_000)

  // Both wait until what is too slow is ended.
  it.concurrent('ends slow headers, unauthorized bodies, and bodies that stop', async () => {
    const ended = at.map(async (listener) => {
      const silent = open(listener.address)
      const slow = open(listener.address, `POST ${listener.path} HTTP/1.1\r\nhost: x\r\n`)
      const trickling = setInterval(() => slow.write('x-a: b\r\n'), 500)
      const unread = open(listener.address, head(listener, UNKNOWN_KEY, 'content-length: 20000000'))
      const responses = await Promise.all([silent, slow, unread].map(awaitResponse))
      await Promise.all([silent, slow, unread].map((socket) => socket.destroyed || once(socket.resume(), 'close')))
      clearInterval(trickling)
      return responses.map((response) => response.slice(9, 12))
    })
    for (const statuses of await Promise.all(ended)) expect(statuses).toEqual(['408', '408', '401'])
  }, 60_000)

  it.concurrent('lets an organization take no slot of another by uploads that it never sends', async () => {
    const operator = createCaller(service, service.key)
    const [slow, other] = await Promise.all([newOrganization(operator, service), newOrganization(operator, service)])
    const idle = at
      .filter(({ path }) => path === '/graphql' || path === '/v1/files')
      .filter(({ role }) => role === 'all' || role.startsWith('gateway') || role.startsWith('rest'))
      .flatMap((listener) =>
        Array.from({ length: 8 }, () =>
          open(listener.address, head(listener, `authorization: Bearer ${slow.key}`, 'content-length: 30000000')),
        ),
      )
    for (const socket of idle) socket.write('{"')
    const responses = idle.map(awaitResponse)
    let timedOut = 0
    for (const response of responses) void response.then((text) => text.startsWith('408', 9) && timedOut++)
    expect(await Promise.all([upload(other, 300_000), upload(other, 3_000_000), upload(other, 15_000_000)])).toEqual([201, 201, 201])
    // None of them was waited for: each is there until it has missed the least rate for 10 s.
    expect(timedOut).toBe(0)
    // Too slow, too many of one organization, or 10 s without a place.
    for (const response of await Promise.all(responses)) expect(response.slice(9, 12)).toMatch(/408|429|503/)
    expect(await upload(slow, 3_000_000)).toBe(201)
  }, 60_000)
}

describe('Listeners of the service in one process', () => {
  testListeners(async () => {
    const service = await startEmbedded()
    const paths = ['/graphql', '/v1/files', '/v1/chat/completions', '/v1/messages', '/mcp']
    return { service, at: paths.map((path) => ({ role: 'all', path, address: service.rest })) }
  })
})

describe('Listeners of separate roles', () => {
  testListeners(async () => {
    const service = await startFiveProcesses()
    const at = [...service.processes].flatMap(([role, { address }]) =>
      (role.startsWith('rest') ? ['/v1/files', '/v1/embeddings'] : ['/graphql']).map((path) => ({ role, path, address: address! })),
    )
    return { service, at }
  })
})
