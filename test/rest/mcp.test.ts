import { describe, expect, it } from 'vitest'
import { restConfig } from '../../rest-adapter/config.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { eventually } from '../support/eventually.ts'
import { type Handlers, startAdapter } from './support.ts'

const accept = 'application/json, text/event-stream'
const AT = '2026-01-31T12:00:00.000Z'
const agent = { id: `agt_${'0'.repeat(32)}`, code: 'pilot', name: 'Pilot' }
const event = { runId: 'run_1', at: AT, number: null, textDelta: null, toolCall: null, search: null, usage: null, run: null }
const begun = { agentRun: { ...event, type: 'RUN_STARTED', cursor: '1' } }
const runPilot = (more: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'run_agent_pilot', arguments: { input: 'Where?' }, ...more },
})

/** An agent whose run goes as told, and what was asked to be cancelled. */
function pilot(run: () => AsyncGenerator<object>) {
  const cancelled: string[] = []
  const handlers: Handlers = {
    McpAgentByCode: () => ({ item: agent }),
    McpAgentRun: run,
    McpCancelRun: ({ id }: { id: string }) => {
      cancelled.push(id)
      return { cancelAgentRun: { id } }
    },
  }
  return { handlers, cancelled }
}

/** The messages of a stream. */
async function readMessages(response: Response) {
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '))
  return lines.map((line) => JSON.parse(line.slice('data: '.length)))
}

it('refuses a body above the limit as a JSON-RPC error', async () => {
  await using adapter = await startAdapter({}, { config: { ...restConfig(), jsonBodyBytes: 1_000 } })
  const response = await adapter.fetch('/mcp', {
    body: { jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { x: 'x'.repeat(1_000) } } },
  })
  expect(response.status).toBe(413)
  expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000, data: { code: 'payload_too_large' } } })
})

it('hides the details of a defect', async () => {
  await using adapter = await startAdapter({
    McpCollections: () => {
      throw new Error('the password is 1234')
    },
  })
  const response = await adapter.fetch('/mcp', { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers: { accept } })
  expect(await response.json()).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32603, message: 'The service failed to process the request.', data: { code: 'internal' } },
  })
})

describe('Agent run over MCP', () => {
  it('that breaks is cancelled, and the model is told', async () => {
    const { handlers, cancelled } = pilot(async function* () {
      yield begun
      throw new KisError('service_unavailable', 'A part of the service is away.', { retryAfterMs: 1_500 })
    })
    await using adapter = await startAdapter(handlers)
    const messages = await readMessages(
      await adapter.fetch('/mcp', { body: runPilot({ _meta: { progressToken: 'p' } }), headers: { accept } }),
    )
    expect(messages).toEqual([
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1, message: 'Run run_1 has begun' } },
      {
        jsonrpc: '2.0',
        id: 7,
        result: {
          isError: true,
          content: [{ type: 'text', text: 'service_unavailable: A part of the service is away. Try again in 2 s.' }],
        },
      },
    ])
    expect(cancelled).toEqual(['run_1'])
  })

  it('that is refused has nothing to cancel', async () => {
    // biome-ignore lint/correctness/useYield: it fails before its first event
    const { handlers, cancelled } = pilot(async function* () {
      throw new KisError('insufficient_quota', 'The wallet does not cover it.')
    })
    await using adapter = await startAdapter(handlers)
    const [message] = await readMessages(await adapter.fetch('/mcp', { body: runPilot(), headers: { accept } }))
    expect(message).toMatchObject({ id: 7, result: { isError: true } })
    expect(cancelled).toEqual([])
  })

  it('is cancelled when its caller disconnects, without a further response', async () => {
    const { handlers, cancelled } = pilot(async function* () {
      yield begun
      await new Promise(() => undefined)
    })
    await using adapter = await startAdapter(handlers)
    const left = new AbortController()
    const response = await adapter.fetch('/mcp', {
      body: runPilot({ _meta: { progressToken: 1 } }),
      headers: { accept },
      signal: left.signal,
    })
    const reader = response.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('has begun')
    left.abort()
    await eventually(() => cancelled.length === 1)
    expect(adapter.gateway.ended).toBe(1)
  })

  it('cancelled elsewhere is an error', async () => {
    const usage = { promptTokens: 0, cachedPromptTokens: 0, cacheWritePromptTokens: 0, completionTokens: 0, totalTokens: 0 }
    const run = {
      ...{ id: 'run_1', agentId: agent.id, agentVersion: 1, status: 'CANCELLED', messages: [], outputText: null, output: null },
      ...{ citations: [], steps: [], usage, cost: '0', error: null, threadId: null, startedAt: AT, endedAt: AT },
    }
    const { handlers, cancelled } = pilot(async function* () {
      yield begun
      yield { agentRun: { ...event, type: 'DONE', cursor: '2', run } }
    })
    await using adapter = await startAdapter(handlers)
    const [message] = await readMessages(await adapter.fetch('/mcp', { body: runPilot(), headers: { accept } }))
    expect(message.result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('was cancelled') }] })
    expect(cancelled).toEqual([])
  })
})

describe('MCP message', () => {
  const clientInfo = { name: 'x', version: '1' }
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }
  const call = { name: 'run_agent_pilot', arguments: { input: 'Where?' } }
  const request = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })

  it.each([
    ['of numbers', request('initialize', { ...hello, clientInfo: { ...clientInfo, icons: Array(100_000).fill(1) } })],
    ['of fields', request('initialize', { ...hello, capabilities: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [i, 1])) })],
    ['in a call', request('tools/call', { ...call, arguments: { input: 'Where?', x: Array(1_000).fill({}) } })],
    ['in a list of tools', request('tools/list', { _meta: { a: Array(1_000).fill(1) } })],
    ['in a ping', request('ping', { _meta: { a: Array(1_000).fill(1) } })],
    [
      'in a notification',
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, _meta: { a: Array(1_000).fill(1) } } },
    ],
    ['in a response', { jsonrpc: '2.0', id: 1, result: { a: Array(1_000).fill(1) } }],
    ['of lists', request('ping', { _meta: { a: Array(40).fill(Array(40).fill([])) } })],
  ])('with too many values %s is refused', async (_what, body) => {
    await using adapter = await startAdapter()
    const response = await adapter.fetch('/mcp', { body, headers: { accept } })
    expect(response.status).toBe(413)
    expect(await response.json()).toMatchObject({ id: null, error: { code: -32000, data: { code: 'payload_too_large' } } })
    expect((await adapter.fetch('/mcp', { body: request('ping', {}), headers: { accept } })).status).toBe(200)
  })

  it('that is malformed gets a short error', async () => {
    await using adapter = await startAdapter()
    for (const body of [
      request('initialize', { ...hello, clientInfo: { ...clientInfo, icons: Array(900).fill(1) } }),
      request('tools/call', { name: 1, arguments: 1, _meta: 1, task: Object.fromEntries(Array.from({ length: 900 }, (_, i) => [i, 1])) }),
      request('tools/call', { name: 'x'.repeat(100_000) }),
    ]) {
      const response = await adapter.fetch('/mcp', { body, headers: { accept } })
      const text = await response.text()
      expect(JSON.parse(text)).toMatchObject({ error: { message: expect.stringMatching(/./) } })
      expect(text.length).toBeLessThan(1_000)
    }
  })

  it('has a short ID and progress token, because they are echoed repeatedly', async () => {
    await using adapter = await startAdapter()
    const long = 'x'.repeat(300)
    for (const body of [{ ...request('ping', {}), id: long }, request('tools/call', { ...call, _meta: { progressToken: long } })]) {
      const response = await adapter.fetch('/mcp', { body, headers: { accept } })
      expect(response.status).toBe(400)
      expect((await response.text()).length).toBeLessThan(1_000)
    }
  })

  it('has room for the longest search and its filter', async () => {
    const inputs: unknown[] = []
    await using adapter = await startAdapter({
      McpCollectionByCode: () => ({ item: { id: `col_${'0'.repeat(32)}`, code: 'files', name: 'Files', searchTool: null } }),
      Search: ({ input }: { input: unknown }) => {
        inputs.push(input)
        return { searchCollection: { hits: [] } }
      },
    })
    const one = (i: number) => ({ op: 'not', filter: { op: 'eq', field: `metadata.f${i}`, value: 'v' } })
    const filter = { op: 'and', filters: Array.from({ length: 50 }, (_, i) => one(i)) }
    const body = request('tools/call', {
      name: 'search_files',
      arguments: { query: 'x'.repeat(8_192), filter },
      _meta: { progressToken: 'a-b-c' },
    })
    const response = (await (await adapter.fetch('/mcp', { body, headers: { accept } })).json()) as { result: object }
    expect(response.result).toMatchObject({ content: [{ text: expect.stringContaining('Nothing was found') }] })
    expect(inputs).toMatchObject([{ filter }])
  })
})
