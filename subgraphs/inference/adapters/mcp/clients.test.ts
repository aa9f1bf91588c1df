import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { TestMcpServer } from '../../../../test/support/engines/mcp-server.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { Egress } from '../../../common/egress/egress.ts'
import { McpFailure } from '../../ports/mcp.ts'
import { mcpClientsOver } from './clients.ts'

let server: TestMcpServer
beforeAll(async () => {
  server = await TestMcpServer.start()
})
beforeEach(() => {
  server.calls.length = 0
  server.headers.length = 0
  server.methods.length = 0
})
afterAll(() => server[Symbol.asyncDispose]())

const never = new AbortController().signal
const letAll = async () => undefined
const clients = (waits = { listMs: 10_000, callMs: 10_000 }) =>
  mcpClientsOver(new Egress({ allowed: new Set([server.hostAndPort]) }), new Set([server.hostAndPort]), waits)
const failure = (message: string) => expect.objectContaining({ name: 'McpFailure', message: expect.stringContaining(message) })

it('lists and calls the tools of an SDK server with the given headers', async () => {
  await using connection = await clients().connect(server.toUrl('good'), { authorization: 'Bearer secret' }, 'org_a', letAll, never)
  expect(await connection.listTools(never)).toEqual([
    { name: 'find_customer', description: 'Finds a customer by name.', inputSchema: server.tools[0]!.inputSchema },
  ])
  expect(await connection.callTool('find_customer', { name: 'Salim' }, never)).toEqual({ text: 'Salim lives in Sur.', isError: false })
  expect(server.calls).toEqual([{ name: 'find_customer', arguments: { name: 'Salim' } }])
  expect(server.headers.every(({ authorization }) => authorization === 'Bearer secret')).toBe(true)
})

for (const [behaviour, said] of [
  ['silent', 'did not respond in time'],
  ['endless', 'did not respond in time'],
  ['flooding', 'does not follow the protocol'],
  ['huge', ''],
  ['redirecting', ''],
  ['garbled', 'does not follow the protocol'],
  ['html', 'does not follow the protocol'],
  ['failing', 'does not follow the protocol'],
] as const) {
  it(`ends the session with a ${behaviour} server within a limited time, and leaves no connection`, async () => {
    await using connection = await clients({ listMs: 10_000, callMs: said === 'did not respond in time' ? 300 : 10_000 }).connect(
      server.toUrl(behaviour),
      {},
      'org_a',
      letAll,
      never,
    )
    await expect(connection.callTool('find_customer', { name: 'Salim' }, never)).rejects.toEqual(failure(said))
    await eventually(() => server.waiting === 0)
    expect(server.inside).toBe(0)
  })
}

it('sends nothing once data may not leave, neither the end of the session nor a cancellation', async () => {
  for (const isAllowed of [true, false]) {
    server.methods.length = 0
    let mayRequest = true
    const authorize = async () => {
      if (!mayRequest) throw new McpFailure('The residency policy forbids it.')
    }
    const connection = await clients().connect(server.toUrl('silent'), {}, 'org_a', authorize, never)
    const stop = new AbortController()
    const call = connection.callTool('find_customer', {}, stop.signal)
    call.catch(() => undefined)
    await eventually(() => server.waiting === 1)
    const before = [...server.methods]
    mayRequest = isAllowed
    if (!isAllowed) await expect(connection.listTools(never)).rejects.toEqual(failure('The residency policy forbids it.'))
    stop.abort()
    await expect(call).rejects.toThrow()
    await connection[Symbol.asyncDispose]()
    await eventually(() => server.waiting === 0)
    const more = server.methods.slice(before.length).toSorted()
    expect(more).toEqual(isAllowed ? ['DELETE', 'notifications/cancelled'] : [])
  }
})

it('ends a call when its caller disconnects', async () => {
  await using connection = await clients().connect(server.toUrl('silent'), {}, 'org_a', letAll, never)
  const stop = new AbortController()
  const call = connection.callTool('find_customer', {}, stop.signal)
  call.catch(() => undefined)
  await eventually(() => server.waiting === 1)
  stop.abort(new Error('no more of it'))
  await expect(call).rejects.toThrow('no more of it')
  await connection[Symbol.asyncDispose]()
  await eventually(() => server.waiting === 0)
})

it('connects only to public addresses, unless the operator has named the address', async () => {
  const strict = mcpClientsOver(new Egress(), new Set())
  expect(strict.allows(server.toUrl('good'))).toBe(false)
  expect(clients().allows(server.toUrl('good'))).toBe(true)
  expect([strict.isLocal(server.toUrl('good')), clients().isLocal(server.toUrl('good'))]).toEqual([false, true])
  await expect(strict.connect(server.toUrl('good'), {}, 'org_a', letAll, never)).rejects.toBeInstanceOf(McpFailure)
  expect(server.headers).toEqual([])
})

it('limits the list of tools, whatever the server sends', async () => {
  const { tools } = server
  server.tools = Array.from({ length: 500 }, (_, at) => ({ name: `tool_${at}`, inputSchema: { type: 'object' as const } }))
  await using connection = await clients().connect(server.toUrl('good'), {}, 'org_a', letAll, never)
  expect(await connection.listTools(never)).toHaveLength(200)
  server.tools = tools
})
