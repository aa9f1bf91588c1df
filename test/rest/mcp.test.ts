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

it('refuses a body beyond the limit as an error of JSON-RPC', async () => {
  await using adapter = await startAdapter({}, { config: { ...restConfig(), jsonBodyBytes: 1_000 } })
  const response = await adapter.fetch('/mcp', {
    body: { jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { x: 'x'.repeat(1_000) } } },
  })
  expect(response.status).toBe(413)
  expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000, data: { code: 'payload_too_large' } } })
})

it('tells of a defect no more than that there is one', async () => {
  await using adapter = await startAdapter({
    McpCollections: () => {
      throw new Error('the password is 1234')
    },
  })
  const response = await adapter.fetch('/mcp', { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers: { accept } })
  expect(await response.json()).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32603, message: 'The service failed to answer.', data: { code: 'internal' } },
  })
})

describe('a run of an agent', () => {
  it('that breaks off is cancelled, and the model is told', async () => {
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

  it('is cancelled when its caller leaves, and told nothing more', async () => {
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

  it('that was cancelled by somebody else is no answer', async () => {
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
