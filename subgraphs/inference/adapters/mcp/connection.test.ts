import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it, vi } from 'vitest'
import type { Egress, EgressRequest } from '../../../common/egress/egress.ts'
import { openConnection } from './connection.ts'

const never = new AbortController().signal
const INITIALIZED = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
const GOOD = { content: [{ type: 'text', text: 'Sur' }] }

interface Message {
  readonly id: unknown
  readonly method: string
}

type ToBody = (id: unknown, result: unknown) => string

const asJson: ToBody = (id, result) => JSON.stringify({ jsonrpc: '2.0', id, result })
const asEvent: ToBody = (id, result) => `event: message\nid: 1\ndata: ${asJson(id, result)}\n\n`

/** A server whose next response to a method is set by a test. */
function hostileServer() {
  const bodies = new Map<string, { readonly type: string; readonly status: number; readonly toBody: (id: unknown) => string }>()
  const methods: string[] = []
  const results: Readonly<Record<string, object>> = { initialize: INITIALIZED, 'tools/list': { tools: [] }, 'tools/call': GOOD }
  const egress = {
    async open({ url, body }: EgressRequest) {
      const { id, method } = JSON.parse(String(body ?? '{}')) as Message
      methods.push(method)
      const set = bodies.get(method)
      bodies.delete(method)
      const result = results[method]
      const response = set ?? { type: 'application/json', status: result ? 200 : 202, toBody: () => (result ? asJson(id, result) : '') }
      async function* pieces() {
        const bytes = Buffer.from(response.toBody(id))
        for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536)
      }
      return { status: response.status, headers: { 'content-type': response.type }, url, body: pieces() }
    },
  } as unknown as Egress
  return {
    methods,
    connect: (headers: Record<string, string> = {}) =>
      openConnection(egress, { listMs: 10_000, callMs: 10_000 }, 'https://x.example/mcp', headers, 'org_a', async () => undefined, never),
    respond(method: string, type: string, toBody: (id: unknown) => string, status = 200) {
      bodies.set(method, { type, status, toBody })
    },
  }
}

const caught = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => error,
  )
/** The text that a log may write of the error. */
const written = (error: unknown) => inspect(error, { depth: 10, maxArrayLength: null, maxStringLength: null })

const KINDS: readonly (readonly [string, string, ToBody])[] = [
  ['JSON', 'application/json', asJson],
  ['events', 'text/event-stream', asEvent],
  ['events by another spelling', 'Text/Event-Stream; charset=utf-8', asEvent],
]

for (const [kind, type, toBody] of KINDS) {
  for (const [what, method, result] of [
    ['content parts of a result', 'tools/call', { content: Array(80_000).fill({}) }],
    ['numbers in a result', 'tools/call', { content: [], structuredContent: { a: Array(200_000).fill(1) } }],
    ['tools', 'tools/list', { tools: Array(80_000).fill({}) }],
    ['tools that are numbers', 'tools/list', { tools: Array(200_000).fill(1) }],
  ] as const) {
    it(`refuses too many ${what} as ${kind} with a short error, and continues`, async () => {
      const server = hostileServer()
      await using connection = await server.connect()
      server.respond(method, type, (id) => toBody(id, result))
      const error = await caught(method === 'tools/list' ? connection.listTools(never) : connection.callTool('a', {}, never))
      expect(error).toMatchObject({
        name: 'McpFailure',
        message: kind === 'JSON' ? 'The response is too large.' : 'Its response does not follow the protocol.',
      })
      expect(written(error)).toContain('The response is too large.')
      expect(written(error).length).toBeLessThan(3_000)
      expect(await connection.callTool('a', {}, never)).toEqual({ text: 'Sur', isError: false })
    })
  }

  it(`refuses an initialize result with too many values as ${kind}`, async () => {
    const server = hostileServer()
    server.respond('initialize', type, (id) =>
      toBody(id, { ...INITIALIZED, serverInfo: { name: 'x', version: '1', icons: Array(200_000).fill(1) } }),
    )
    const error = await caught(server.connect())
    expect(error).toMatchObject({ name: 'McpFailure' })
    expect(written(error).length).toBeLessThan(3_000)
  })

  it(`reports wrong values in ${kind} with a short error`, async () => {
    const server = hostileServer()
    server.respond('initialize', type, (id) =>
      toBody(id, { ...INITIALIZED, serverInfo: { name: 'x', version: '1', icons: Array(5_000).fill(1) } }),
    )
    const greeting = await caught(server.connect())
    await using connection = await server.connect()
    server.respond('tools/call', type, (id) => toBody(id, { content: Array(5_000).fill({}) }))
    const call = await caught(connection.callTool('a', {}, never))
    server.respond('tools/list', type, (id) => toBody(id, { tools: Array(5_000).fill({}) }))
    const list = await caught(connection.listTools(never))
    for (const error of [greeting, call, list]) {
      expect(error).toMatchObject({ name: 'McpFailure', message: 'Its response does not follow the protocol.' })
      expect(written(error).length).toBeLessThan(3_000)
    }
    expect(written(list)).toContain('tools.0.name')
  })

  it(`reads a long list of tools as ${kind}`, async () => {
    const server = hostileServer()
    await using connection = await server.connect()
    const properties = Object.fromEntries(
      Array.from({ length: 8 }, (_, i) => [`p${i}`, { type: 'string', description: 'It is, "so", {a: 1}.' }]),
    )
    const inputSchema = { type: 'object', properties, required: ['p0', 'p1'] }
    const tools = Array.from({ length: 200 }, (_, i) => ({ name: `tool_${i}`, description: 'Does it.', inputSchema }))
    server.respond('tools/list', type, (id) => toBody(id, { tools }))
    expect(await connection.listTools(never)).toEqual(tools)
  })
}

it.each([
  ['brackets in comments', (id: unknown) => asEvent(id, { content: Array(80_000).fill({}) }).replace('[', '[\n: ]}}}]}\ndata: ')],
  ['a comment with an unclosed quotation mark', (id: unknown) => `: {"\\\n${asEvent(id, { content: Array(80_000).fill({}) })}`],
  ['lines of one value each', (id: unknown) => asEvent(id, { content: Array(80_000).fill({}) }).replaceAll('},{', '}\n: ]\ndata: ,{')],
])('is not confused by %s', async (_what, toBody) => {
  const server = hostileServer()
  await using connection = await server.connect()
  server.respond('tools/call', 'text/event-stream', toBody)
  expect(written(await caught(connection.callTool('a', {}, never)))).toContain('The response is too large.')
})

it('reads a message over several lines, after unrelated messages', async () => {
  const server = hostileServer()
  await using connection = await server.connect()
  const notice = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'on it' } }
  server.respond('tools/call', 'text/event-stream', (id) => {
    const lines = JSON.stringify({ jsonrpc: '2.0', id, result: GOOD }, null, 2).replaceAll('\n', '\ndata: ')
    return `: hello\n\nevent: other\ndata: {}\n\ndata: ${JSON.stringify(notice)}\n\ndata: ${lines}`
  })
  expect(await connection.callTool('a', {}, never)).toEqual({ text: 'Sur', isError: false })
})

const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

it('responds to a limited number of requests that a server sends in its event stream', async () => {
  const server = hostileServer()
  await using connection = await server.connect()
  server.respond('tools/call', 'text/event-stream', (id) => `data: ${PING}\n\n`.repeat(15_000) + asEvent(id, GOOD))
  await caught(connection.callTool('a', {}, never))
  await setImmediate()
  expect(server.methods.length).toBeLessThan(210)
})

describe('JSON-RPC batch', () => {
  /** Returns the messages that reach the SDK in response to a call. */
  async function passed(toBody: (id: unknown) => string) {
    const server = hostileServer()
    await using connection = await server.connect()
    const parsing = vi.spyOn(JSONRPCMessageSchema, 'parse')
    server.respond('tools/call', 'application/json', toBody)
    const outcome = await connection.callTool('a', {}, never).catch((error: unknown) => error)
    await setImmediate()
    const messages = parsing.mock.calls.length
    parsing.mockRestore()
    return { outcome, messages, replies: server.methods.filter((method) => method === undefined).length }
  }
  const succeeded = { outcome: { text: 'Sur', isError: false }, messages: 1, replies: 0 }

  it('is matched by the response to the call, whatever else it contains', async () => {
    const same = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })
    expect(await passed((id) => `[${`${PING},`.repeat(3_000)}${same(id)},null,1,${asJson(id, GOOD)}]`)).toEqual(succeeded)
  })

  it.each([
    ['one byte order mark', '\ufeff'],
    ['two byte order marks', '\ufeff\ufeff'],
    ['byte order marks and space', ' \ufeff\n\ufeff'],
  ])('is found after %s', async (_what, before) => {
    expect(await passed((id) => `${before}[${PING},${PING},${asJson(id, GOOD)}]`)).toEqual(succeeded)
  })

  it.each([
    ['is empty', () => '[]'],
    ['has only requests of the server', () => `[${PING}]`],
    ['has the response to another request', () => `[${asJson('another', GOOD)}]`],
  ])('fails the call at once when it %s', async (_what, toBody) => {
    const { outcome, messages, replies } = await passed(toBody)
    expect(outcome).toMatchObject({ name: 'McpFailure', message: 'Its response does not follow the protocol.' })
    expect(written(outcome)).toContain('The list of messages has no response.')
    expect([messages, replies]).toEqual([1, 0])
  })
})

it('fails at once when JSON is broken', async () => {
  const server = hostileServer()
  await using connection = await server.connect()
  server.respond('tools/call', 'application/json', (id) => `[${asJson(id, GOOD)}`)
  const error = await caught(connection.callTool('a', {}, never))
  expect(error).toMatchObject({ name: 'McpFailure', message: 'Its response does not follow the protocol.' })
})

it('truncates the error text of a server', async () => {
  const server = hostileServer()
  await using connection = await server.connect()
  const long = 'x'.repeat(500_000)
  server.respond('tools/call', 'application/json', (id) =>
    JSON.stringify({ jsonrpc: '2.0', id, error: { code: 1, message: long, data: long } }),
  )
  const refused = await caught(connection.callTool('a', {}, never))
  expect(refused).toMatchObject({ name: 'McpFailure', message: expect.stringContaining('It refused: ') })
  server.respond('tools/call', 'text/plain', () => long, 500)
  const failed = await caught(connection.callTool('a', {}, never))
  expect(failed).toMatchObject({ name: 'McpFailure', message: 'Its response does not follow the protocol.' })
  for (const error of [refused, failed]) expect(written(error).length).toBeLessThan(4_000)
})

it.each([
  [
    'describes what is not text',
    {
      content: [
        { type: 'text', text: 'a' },
        { type: 'image', data: '', mimeType: 'image/png' },
      ],
    },
    'a\n[image left out]',
  ],
  ['uses the structured content if there is nothing else', { structuredContent: { a: 1 } }, '{"a":1}'],
  ['accepts an empty result', {}, ''],
])('%s', async (_what, result, text) => {
  const server = hostileServer()
  await using connection = await server.connect()
  server.respond('tools/call', 'application/json', (id) => asJson(id, result))
  expect(await connection.callTool('a', {}, never)).toEqual({ text, isError: false })
})

it.each([
  ['parts', { content: 'text' }],
  ['content part', { content: [null] }],
  ['text part', { content: [{ type: 'text' }] }],
])('refuses malformed %s', async (_what, result) => {
  const server = hostileServer()
  await using connection = await server.connect()
  server.respond('tools/call', 'application/json', (id) => asJson(id, result))
  expect(await caught(connection.callTool('a', {}, never))).toMatchObject({ message: 'Its response does not follow the protocol.' })
})

it('redacts its secret headers from the error of a server', async () => {
  const secret = 'tenants-secret-1234'
  const server = hostileServer()
  await using connection = await server.connect({ authorization: `Bearer ${secret}` })
  for (const errorMessage of [`Bearer ${secret} is wrong`, `wrong: ${secret}`, `${'x'.repeat(490)} ${secret}`]) {
    server.respond('tools/call', 'application/json', (id) =>
      JSON.stringify({ jsonrpc: '2.0', id, error: { code: 1, message: errorMessage } }),
    )
    const error = await caught(connection.callTool('find', {}, never))
    expect(String(error)).toContain('It refused')
    expect(written(error)).not.toContain(secret.slice(0, 8))
  }
})
