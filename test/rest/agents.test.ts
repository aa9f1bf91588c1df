import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { readOpenApi } from '../../rest-adapter/http/openapi.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { readError, startAdapter } from './support.ts'

const AT = '2026-01-31T12:00:00.000Z'
const AT_SECONDS = 1769860800

const agent = {
  ...{
    id: 'agt_1',
    code: 'guide',
    name: 'Guide',
    model: { id: 'extractive' },
    instructions: 'Be brief.',
    collections: [{ id: 'col_1' }, null],
  },
  ...{ temperature: null, topP: 0.5, maxOutputTokens: null, responseSchema: { type: 'object' }, maxSteps: 12, maxCost: '1', version: 2 },
  ...{ createdAt: AT, updatedAt: AT },
  mcpServers: [{ name: 'crm', url: 'https://crm.test/mcp', headerNames: ['authorization'], allowedTools: null }],
}
const agentObject = {
  ...{ id: 'agt_1', object: 'agent', created_at: AT_SECONDS, updated_at: AT_SECONDS, code: 'guide', name: 'Guide', model: 'extractive' },
  ...{ instructions: 'Be brief.', collection_ids: ['col_1'], temperature: null, top_p: 0.5, max_output_tokens: null },
  ...{ response_schema: { type: 'object' }, max_steps: 12, max_cost_usd: '1', version: 2 },
  mcp_servers: [{ name: 'crm', url: 'https://crm.test/mcp', header_names: ['authorization'], allowed_tools: null }],
}
const usage = { promptTokens: 5, cachedPromptTokens: 1, cacheWritePromptTokens: 0, completionTokens: 2, totalTokens: 7 }
const usageObject = { input_tokens: 5, cached_input_tokens: 1, cache_write_tokens: 0, output_tokens: 2, total_tokens: 7 }
const nothing = { model: null, collection: null, query: null, hitCount: null, usage: null }
const nothingObject = { model: null, collection_id: null, query: null, hit_count: null, usage: null }
const chunk = { text: 'Sur.', fileName: 'a.txt', collection: { id: 'col_1' }, document: { id: 'doc_1' }, file: { id: 'file_1' } }
const run = {
  ...{ id: 'run_1', agentId: 'agt_1', agentVersion: 2, status: 'COMPLETED', messages: [{ role: 'user', content: 'Where?' }] },
  ...{ outputText: 'Sur [#1].', output: null, error: null, threadId: null, startedAt: AT, endedAt: AT, usage, cost: '0.003' },
  citations: [{ mark: 1, chunkId: 'chunk_1', ...chunk, pageStart: 2, pageEnd: null, charStart: 0, charEnd: 4 }],
  steps: [
    { ...nothing, kind: 'SEARCH', number: 0, collection: { id: 'col_1' }, query: 'Where?', hitCount: 1, cost: '0.001' },
    { ...nothing, kind: 'MODEL', number: 1, model: { id: 'extractive' }, usage, cost: '0.002' },
  ],
}
const runObject = {
  ...{
    id: 'run_1',
    object: 'agent.run',
    created_at: AT_SECONDS,
    ended_at: AT_SECONDS,
    agent_id: 'agt_1',
    agent_version: 2,
    status: 'completed',
  },
  ...{
    messages: run.messages,
    output_text: 'Sur [#1].',
    output: null,
    error: null,
    thread_id: null,
    usage: usageObject,
    cost_usd: '0.003',
  },
  citations: [
    {
      ...{ mark: 1, chunk_id: 'chunk_1', text: 'Sur.', page_start: 2, page_end: null, char_start: 0, char_end: 4 },
      ...{ collection_id: 'col_1', document_id: 'doc_1', file: { id: 'file_1', file_name: 'a.txt' } },
    },
  ],
  steps: [
    { ...nothingObject, kind: 'search', step: 0, collection_id: 'col_1', query: 'Where?', hit_count: 1, cost_usd: '0.001' },
    { ...nothingObject, kind: 'model', step: 1, model: 'extractive', usage: usageObject, cost_usd: '0.002' },
  ],
}
const event = { runId: 'run_1', at: AT, number: null, textDelta: null, toolCall: null, search: null, usage: null, run: null }
const events = [
  { ...event, type: 'RUN_STARTED', cursor: '1', run: { ...run, status: 'RUNNING' } },
  { ...event, type: 'TEXT_DELTA', cursor: '2', number: 1, textDelta: 'Sur' },
  { ...event, type: 'TOOL_CALL', cursor: '3', number: 1, toolCall: { id: 'call_1', name: 'search_a', arguments: '{}' } },
  {
    ...{ ...event, type: 'SEARCH', cursor: '4', number: 1 },
    search: {
      collection: { id: 'col_1' },
      query: 'Where?',
      hits: [{ chunkId: 'chunk_1', fileName: 'a.txt', pageStart: null, score: 0.5 }],
    },
  },
  { ...event, type: 'USAGE', cursor: '5', number: 1, usage: run.steps[1] },
  { ...event, type: 'DONE', cursor: '6', run },
]
const page = (node: object) => ({ edges: [{ node }], pageInfo: { hasNextPage: false } })
const list = (object: { id: string }) => ({ object: 'list', data: [object], has_more: false, first_id: object.id, last_id: object.id })

const openapi = readOpenApi()
const ajv = new Ajv2020({ strict: false, validateFormats: false, schemas: { openapi: openapi.document } })
const fits = (name: string, value: unknown) => {
  const isValid = ajv.compile({ $ref: `openapi#/components/schemas/${name}` })
  expect(isValid(value) || isValid.errors, name).toBe(true)
}

/** The events of a stream, as `[event, id, data]`. */
async function readEvents(response: Response) {
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const texts = (await response.text()).split('\n\n').filter((text) => text !== '')
  return texts.map((text) => {
    const fields = Object.fromEntries(text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]))
    return { event: fields.event, id: fields.id, data: JSON.parse(fields.data!) }
  })
}

describe('Agents over REST', () => {
  const cases = [
    {
      call: ['POST', '/v1/agents', { code: 'guide', name: 'Guide', model: 'extractive' }],
      name: 'CreateAgent',
      data: { createAgent: { agent } },
      expected: agentObject,
      schema: 'Agent',
    },
    {
      call: ['GET', '/v1/agents?limit=5&order=asc'],
      name: 'Agents',
      data: { agents: page(agent) },
      expected: list(agentObject),
      schema: 'AgentList',
    },
    { call: ['GET', '/v1/agents/agt_1'], name: 'Agent', data: { agent }, expected: agentObject, schema: 'Agent' },
    {
      call: ['PATCH', '/v1/agents/agt_1', { top_p: null, response_schema: null }],
      name: 'UpdateAgent',
      data: { updateAgent: { agent } },
      expected: agentObject,
      schema: 'Agent',
    },
    {
      call: ['DELETE', '/v1/agents/agt_1'],
      name: 'DeleteAgent',
      data: { deleteAgent: { id: 'agt_1' } },
      expected: { id: 'agt_1', object: 'agent', deleted: true },
      schema: 'Deletion',
    },
    {
      call: ['DELETE', '/v1/runs/run_1'],
      name: 'DeleteAgentRun',
      data: { deleteAgentRun: { id: 'run_1' } },
      expected: { id: 'run_1', object: 'agent.run', deleted: true },
      schema: 'Deletion',
    },
    {
      call: ['DELETE', '/v1/threads/thr_1'],
      name: 'DeleteThread',
      data: { deleteThread: { id: 'thr_1' } },
      expected: { id: 'thr_1', object: 'thread', deleted: true },
      schema: 'Deletion',
    },
    {
      call: ['POST', '/v1/agents/agt_1/runs', { input: 'Where?' }],
      name: 'RunAgent',
      data: { runAgent: run },
      expected: runObject,
      schema: 'AgentRun',
    },
    {
      call: ['GET', '/v1/agents/agt_1/runs'],
      name: 'AgentRuns',
      data: { agent: { runs: page(run) } },
      expected: list(runObject),
      schema: 'AgentRunList',
    },
    {
      call: ['GET', '/v1/runs?status=failed&until=60'],
      name: 'AllAgentRuns',
      data: { agentRuns: page(run) },
      expected: list(runObject),
      schema: 'AgentRunList',
    },
    { call: ['GET', '/v1/runs/run_1'], name: 'AgentRunById', data: { agentRun: run }, expected: runObject, schema: 'AgentRun' },
    {
      call: ['POST', '/v1/runs/run_1/cancel'],
      name: 'CancelAgentRun',
      data: { cancelAgentRun: run },
      expected: runObject,
      schema: 'AgentRun',
    },
  ] as const
  for (const { call, name, data, expected, schema } of cases) {
    const [method, path, body] = call
    it(`${method} ${path} returns the object in snake case`, async () => {
      await using adapter = await startAdapter({ [name]: () => data })
      const response = await adapter.fetch(path, { method, body })
      expect([response.status, await response.json()]).toEqual([path === '/v1/agents' ? 201 : 200, expected])
      fits(schema, expected)
    })
  }

  it('passes on given fields, and distinguishes null from omitted ones', async () => {
    await using adapter = await startAdapter({
      CreateAgent: () => ({ createAgent: { agent } }),
      UpdateAgent: () => ({ updateAgent: { agent } }),
      RunAgent: () => ({ runAgent: run }),
    })
    const body = {
      code: 'g',
      name: 'G',
      model: 'm',
      collection_ids: ['col_1'],
      max_output_tokens: 9,
      max_steps: 2,
      max_cost_usd: '0.5',
      response_schema: { type: 'object' },
    }
    await adapter.fetch('/v1/agents', { body })
    await adapter.fetch('/v1/agents/agt_1', { method: 'PATCH', body: { top_p: null } })
    const messages = [{ role: 'user', content: 'Hi' }]
    await adapter.fetch('/v1/agents/agt_1/runs', { body: { messages, thread_id: 'thr_1', max_cost_usd: '0.1' } })
    const input = { collectionIds: ['col_1'], maxOutputTokens: 9, maxSteps: 2, maxCost: '0.5', responseSchema: { type: 'object' } }
    expect(adapter.gateway.received.map(({ variables }) => variables.input)).toEqual([
      { code: 'g', name: 'G', model: 'm', ...input },
      { id: 'agt_1', topP: null },
      { agentId: 'agt_1', messages, threadId: 'thr_1', maxCost: '0.1' },
    ])
  })

  it('streams a run as typed events with their cursors, and ends with the run', async () => {
    await using adapter = await startAdapter({
      async *AgentRun() {
        for (const agentRun of events) yield { agentRun }
      },
    })
    const body = { input: 'Where?', stream: true }
    const unasked = await readEvents(await adapter.fetch('/v1/agents/agt_1/runs', { body }))
    expect(unasked.map(({ id }) => id)).toEqual(events.map(() => undefined))
    const response = await adapter.fetch('/v1/agents/agt_1/runs', { body, headers: { 'x-kis-resumable': 'true' } })
    const got = await readEvents(response)
    for (const { data } of got) fits('AgentRunEvent', data)
    const common = (cursor: string) => ({ run_id: 'run_1', cursor, created_at: AT_SECONDS })
    expect(got).toEqual(
      [
        { type: 'run_started', ...common('1'), run: { ...runObject, status: 'running' } },
        { type: 'text_delta', ...common('2'), step: 1, delta: 'Sur' },
        { type: 'tool_call', ...common('3'), step: 1, tool_call: { id: 'call_1', name: 'search_a', arguments: '{}' } },
        {
          ...{ type: 'search', ...common('4'), step: 1 },
          search: {
            collection_id: 'col_1',
            query: 'Where?',
            hits: [{ chunk_id: 'chunk_1', file_name: 'a.txt', page_start: null, score: 0.5 }],
          },
        },
        { type: 'usage', ...common('5'), step: 1, usage: runObject.steps[1] },
        { type: 'done', ...common('6'), run: runObject },
      ].map((data) => ({ event: data.type, id: data.cursor, data })),
    )
  })

  it('follows a run from a cursor, which may be in a header', async () => {
    await using adapter = await startAdapter({
      async *AgentRunEvents() {
        yield { agentRunEvents: events[5] }
      },
    })
    for (const [path, headers] of [
      ['/v1/runs/run_1/events?after=5', {}],
      ['/v1/runs/run_1/events', { 'last-event-id': '5' }],
    ] as const)
      expect(await readEvents(await adapter.fetch(path, { headers }))).toMatchObject([{ event: 'done', id: '6' }])
    expect(adapter.gateway.received.map(({ variables }) => variables)).toEqual([
      { runId: 'run_1', after: '5' },
      { runId: 'run_1', after: '5' },
    ])
  })

  it('reports a failure before the first event by its status, and a later one by an event', async () => {
    let first = true
    await using adapter = await startAdapter({
      async *AgentRun() {
        if (!first) yield { agentRun: events[0] }
        first = false
        throw new KisError('not_found', 'No agent.', { param: 'input.agentId' })
      },
    })
    const stream = () => adapter.fetch('/v1/agents/agt_2/runs', { body: { input: 'Where?', stream: true } })
    expect(await readError(await stream())).toMatchObject({ status: 404, code: 'not_found', param: 'id' })
    expect(await readEvents(await stream())).toMatchObject([
      { event: 'run_started' },
      { event: 'error', data: { error: { code: 'not_found' } } },
    ])
  })

  it('returns 404 for missing objects, and reports errors by the field names of the caller', async () => {
    await using adapter = await startAdapter({
      Agent: () => ({ agent: null }),
      AgentRuns: () => ({ agent: null }),
      AgentRunById: () => ({ agentRun: null }),
      CreateAgent: () => {
        throw new KisError('not_found', 'No collection.', { param: 'input.collectionIds[1]' })
      },
      RunAgent: () => {
        throw new KisError('invalid_request', 'No role.', { param: 'input.messages[0].role' })
      },
    })
    for (const path of ['/v1/agents/agt_2', '/v1/agents/agt_2/runs', '/v1/runs/run_2'])
      expect(await readError(await adapter.fetch(path))).toMatchObject({ status: 404, code: 'not_found' })
    const body = { code: 'guide', name: 'Guide', model: 'm' }
    const refusals: [string, object, string, string][] = [
      ['/v1/agents', body, 'not_found', 'collection_ids[1]'],
      ['/v1/agents/agt_1/runs', { messages: [{}] }, 'missing_required_parameter', 'messages[0].role'],
      ['/v1/agents', { ...body, max_steps: 13 }, 'integer_above_max_value', 'max_steps'],
      ['/v1/agents', { ...body, max_cost_usd: 'much' }, 'unsupported_value', 'max_cost_usd'],
      ['/v1/agents', { ...body, tools: [] }, 'unknown_parameter', 'tools'],
      ['/v1/agents', { ...body, code: ' ' }, 'unsupported_value', 'code'],
    ]
    for (const [path, sent, code, param] of refusals)
      expect(await readError(await adapter.fetch(path, { body: sent }))).toMatchObject({ code, param })
  })
})
