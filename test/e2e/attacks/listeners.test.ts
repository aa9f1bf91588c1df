import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Caller, makeCaller, newOrganization } from '../../support/client.ts'
import { type Service, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const MIB = 1024 * 1024
const LARGE_BYTES = 19.8 * MIB
/** Four such bodies as the service held them once, several times over; what it may grow while it refuses them. */
const MAX_GROWTH_BYTES = 150 * MIB
/** Half a second on a machine of its own; tests share theirs. */
const HEALTHY_MS = 2_000
const STRANGER = 'authorization: Bearer nobody'

interface Door {
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

const head = ({ path }: Pick<Door, 'path'>, header: string, framing: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\n${header}\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`

/** The status and the rest of the first piece of an answer; empty when the connection ends without one. */
async function awaitAnswer(socket: Socket): Promise<string> {
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
function doors(start: () => Promise<{ service: Service; at: readonly Door[] }>) {
  let service: Service
  let at: readonly Door[]
  beforeAll(async () => {
    ;({ service, at } = await start())
  }, 300_000)
  afterAll(() => service?.close())
  const findPid = ({ role }: Door) => service.processes.get(role)!.pid

  it('refuses four bodies of 19.8 MB of strangers by a few bytes, and stays well', async () => {
    for (const door of at) {
      const before = readRss(findPid(door))
      const body = Buffer.alloc(LARGE_BYTES, 'x')
      const answers = Promise.all(
        [`content-length: ${body.length}`, 'transfer-encoding: chunked'].flatMap((framing) =>
          [1, 2].map(async () => {
            const socket = open(door.address, head(door, STRANGER, framing))
            if (framing.startsWith('transfer')) socket.write(`${body.length.toString(16)}\r\n`)
            socket.write(body)
            const answer = await awaitAnswer(socket)
            socket.destroy()
            return answer
          }),
        ),
      )
      expect(await slowestHealth(door.address, answers), `${door.role} ${door.path}`).toBeLessThan(HEALTHY_MS)
      for (const answer of await answers) expect(answer.slice(0, 12), `${door.role} ${door.path}`).toBe('HTTP/1.1 401')
      expect(readRss(findPid(door)) - before, `${door.role} ${door.path}`).toBeLessThan(MAX_GROWTH_BYTES)
    }
  }, 120_000)

  // Both wait until what is too slow is ended.
  it.concurrent('ends headers that trickle in, bodies that nobody may send, and bodies that stop', async () => {
    const ended = at.map(async (door) => {
      const silent = open(door.address)
      const slow = open(door.address, `POST ${door.path} HTTP/1.1\r\nhost: x\r\n`)
      const trickling = setInterval(() => slow.write('x-a: b\r\n'), 500)
      const unread = open(door.address, head(door, STRANGER, 'content-length: 20000000'))
      const answers = await Promise.all([silent, slow, unread].map(awaitAnswer))
      await Promise.all([silent, slow, unread].map((socket) => socket.destroyed || once(socket.resume(), 'close')))
      clearInterval(trickling)
      return answers.map((answer) => answer.slice(9, 12))
    })
    for (const statuses of await Promise.all(ended)) expect(statuses).toEqual(['408', '408', '401'])
  }, 60_000)

  it.concurrent('lets an organization take no place of another by uploads that it never sends', async () => {
    const operator = makeCaller(service, service.key)
    const [slow, other] = await Promise.all([newOrganization(operator, service), newOrganization(operator, service)])
    const idle = at
      .filter(({ path }) => path === '/graphql' || path === '/v1/files')
      .filter(({ role }) => role === 'all' || role.startsWith('gateway') || role.startsWith('rest'))
      .flatMap((door) =>
        Array.from({ length: 8 }, () => open(door.address, head(door, `authorization: Bearer ${slow.key}`, 'content-length: 30000000'))),
      )
    for (const socket of idle) socket.write('{"')
    const answers = idle.map(awaitAnswer)
    let givenUp = 0
    for (const answer of answers) void answer.then((text) => text.startsWith('408', 9) && givenUp++)
    expect(await Promise.all([upload(other, 300_000), upload(other, 3_000_000), upload(other, 15_000_000)])).toEqual([201, 201, 201])
    // None of them was waited for: each is there until it has missed the least rate for 10 s.
    expect(givenUp).toBe(0)
    // Too slow, too many of one organization, or 10 s without a place.
    for (const answer of await Promise.all(answers)) expect(answer.slice(9, 12)).toMatch(/408|429|503/)
    expect(await upload(slow, 3_000_000)).toBe(201)
  }, 60_000)
}

describe('the doors of the service in one process', () => {
  doors(async () => {
    const service = await startEmbedded()
    const paths = ['/graphql', '/v1/files', '/v1/chat/completions', '/v1/messages', '/mcp']
    return { service, at: paths.map((path) => ({ role: 'all', path, address: service.rest })) }
  })
})

describe('the doors of roles on their own', () => {
  doors(async () => {
    const service = await startFiveProcesses()
    const at = [...service.processes].flatMap(([role, { address }]) =>
      (role.startsWith('rest') ? ['/v1/files', '/v1/embeddings'] : ['/graphql']).map((path) => ({ role, path, address: address! })),
    )
    return { service, at }
  })
})
