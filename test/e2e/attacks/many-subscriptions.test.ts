import { on, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, createCaller } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full } from '../../support/soak.ts'

/** Open at once, of which so many are never read. */
const SUBSCRIPTIONS = full(500)
const STALLED = full(50)
/**
 * A key may have 20 sockets and 50 subscriptions: this many of them on one socket, so that no key has too many of
 * either.
 */
const ON_A_SOCKET = 5
const OF_A_KEY = 40
const WORDS = 20
/** What the vendor would send a reader who never reads: far more than sockets hold between them. */
const LARGE_CHUNKS = 400
const LARGE = 'x'.repeat(64 * 1024)
/**
 * Kernel buffers, 256 KiB in each socket and what inference and gateway hold of one event; a copy of all that the
 * vendor has would be 25 MiB each.
 */
const MAX_GROWTH_BYTES = 200 * 1024 * 1024 + STALLED * 4 * 1024 * 1024

const STREAM = 'subscription ($request: ChatProtocolRequest!) { chatCompletion(input: { request: $request }) { textDelta cost } }'

/**
 * A vendor that streams words, or large pieces as fast as they are taken. Counts the streams that it has sent to their
 * end.
 */
async function startVendor() {
  const ended: string[] = []
  const server = createServer(async (request, response) => {
    const { messages } = JSON.parse(await text(request)) as { messages: { content: string }[] }
    const kind = messages.at(-1)!.content
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const count = kind === 'large' ? LARGE_CHUNKS : WORDS
    for (let i = 0; i < count && !response.destroyed; i++)
      await write(response, chunk({ content: kind === 'large' ? LARGE : `w${i} ` }, null))
    if (response.destroyed) return
    await write(response, chunk({}, 'stop'))
    response.end('data: [DONE]\n\n')
    ended.push(kind)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, ended, close }
}

async function write(response: ServerResponse, event: string): Promise<void> {
  if (response.write(event)) return
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]).finally(() => over.abort())
}

function chunk(delta: object, finish_reason: string | null): string {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'm' }
  return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`
}

/** A socket whose reader can stop reading. */
async function openSocket(
  service: Service,
  key: string,
): Promise<{ socket: WebSocket; messages: { type: string; id?: string; payload?: unknown }[] }> {
  const socket = new WebSocket(service.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws')
  const messages: { type: string; id?: string; payload?: unknown }[] = []
  socket.on('message', (message) => messages.push(JSON.parse(String(message))))
  socket.on('error', () => undefined)
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${key}` } }))
  await eventually(() => messages.some(({ type }) => type === 'connection_ack'))
  return { socket, messages }
}

function subscribe(socket: WebSocket, id: string, content: string): void {
  const variables = { request: { model: 'mock-chat', messages: [{ role: 'user', content }] } }
  socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query: STREAM, variables } }))
}

/**
 * Reads a subscription to its end. On a busy machine the service may refuse it before it begins, and says when to come
 * again.
 */
async function readWords(socket: WebSocket, id: string): Promise<string> {
  for (;;) {
    let words = ''
    let retryAfterMs: number | undefined
    const messages = on(socket, 'message', { close: ['close'] })
    subscribe(socket, id, 'words')
    for await (const [message] of messages) {
      const { type, id: subscription, payload } = JSON.parse(String(message))
      if (subscription !== id) continue
      const refused = (type === 'error' ? payload : payload?.errors)?.[0].extensions
      if (refused) expect(refused.code).toBe('SERVICE_UNAVAILABLE')
      if (refused) retryAfterMs = refused.retryAfterMs
      else if (type === 'next') words += payload.data.chatCompletion.textDelta ?? ''
      if (type === 'error' || type === 'complete') break
    }
    if (retryAfterMs === undefined) return words
    expect(words).toBe('')
    await sleep(retryAfterMs)
  }
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

describe('Many open subscriptions with slow consumers', () => {
  let vendor: Awaited<ReturnType<typeof startVendor>>
  let service: Service
  let looking: NodeJS.Timeout | undefined
  beforeAll(async () => {
    vendor = await startVendor()
    // What a model says beyond its bounds is cut, so that nobody could leave it unread.
    const tokens = (LARGE_CHUNKS * LARGE.length) / 4
    const catalog = mockCatalog(vendor.url)
      .replace('context_window: 128000', `context_window: ${tokens + 1_000}`)
      .replace('max_output_tokens: 1000', `max_output_tokens: ${tokens}`)
      .replace('output: "2"', 'output: "0.0001"')
    service = await startEmbedded({ catalog })
  })
  afterAll(async () => {
    clearInterval(looking)
    await service?.close()
    vendor?.close()
  })

  it('lose nothing for active readers, close the others with a code, and use limited memory', async () => {
    const admin = createCaller(service, service.key)
    const keys: string[] = []
    for (let i = 0; i < Math.ceil(SUBSCRIPTIONS / OF_A_KEY); i++)
      keys.push((await admin.rest('POST', '/v1/keys', { name: `k${i}`, scopes: ['inference'] })).body.key)
    const findKey = (subscription: number) => keys[Math.floor(subscription / OF_A_KEY)]!
    const { pid } = service.processes.get('all')!
    const before = residentBytes(pid)
    let most = before
    looking = setInterval(() => {
      most = Math.max(most, residentBytes(pid))
    }, 100)

    // Each of the stalled on a socket of its own, a tenth of every key's.
    const stalled = await Promise.all(
      Array.from({ length: STALLED }, async (_, i) => {
        const { socket, messages } = await openSocket(service, keys[i % keys.length]!)
        const closed = new Promise<number>((resolve) => socket.once('close', resolve))
        subscribe(socket, 'stalled', 'large')
        await eventually(() => messages.some(({ type }) => type === 'next'))
        socket.pause()
        return { socket, closed }
      }),
    )
    const words = Array.from({ length: WORDS }, (_, i) => `w${i} `).join('')
    await Promise.all(
      Array.from({ length: (SUBSCRIPTIONS - STALLED) / ON_A_SOCKET }, async (_, i) => {
        const { socket } = await openSocket(service, findKey(i * ON_A_SOCKET))
        const read = await Promise.all(Array.from({ length: ON_A_SOCKET }, (_, n) => readWords(socket, `${n}`)))
        expect(read).toEqual(read.map(() => words))
        socket.close()
      }),
    )

    // Their sockets are cut by the service; who never reads finds out when it does.
    await eventually(async () => (await balancedWalletHeld(admin)) === '0', 60_000)
    for (const { socket } of stalled) socket.resume()
    const codes = await Promise.all(stalled.map(({ closed }) => closed))
    expect(codes.filter((code) => code !== 4413 && code !== 1006)).toEqual([])
    expect(vendor.ended.filter((kind) => kind === 'large')).toEqual([])
    expect(vendor.ended.filter((kind) => kind === 'words')).toHaveLength(SUBSCRIPTIONS - STALLED)
    clearInterval(looking)
    expect(most - before).toBeLessThan(MAX_GROWTH_BYTES)
    await balancedWallet(admin)
  }, 300_000)
})

async function balancedWalletHeld(admin: ReturnType<typeof createCaller>): Promise<string> {
  return (await admin.rest('GET', '/v1/wallet')).body.held_usd
}
