import { afterEach, describe, expect, it, vi } from 'vitest'
import { localLink } from '../../../cli/links/local-link.ts'
import type { OperationText } from '../../../schema/operations.ts'
import { ReadBudget } from '../../common/documents/long-records.ts'
import { KisError } from '../../common/errors.ts'
import { type Principal, SCOPES, type Scope } from '../../common/identity/principal.ts'
import { type LinkContext, request } from '../../common/link/link.ts'
import { type Subgraph, subgraphSchema } from '../../common/link/subgraph.ts'
import { silentLog } from '../../common/process/log.ts'
import { createRequestContext, parts, somebody } from '../test-support/parts.ts'
import { calls, type Step, says } from '../test-support/scripted-engine.ts'
import { AgentRuns } from '../use-cases/agents/agent-runs.ts'
import { DefinitionReads } from '../use-cases/definition-reads.ts'
import { ChatStreams } from '../use-cases/streams/chat-streams.ts'
import { resolvers } from './index.ts'

const scopes: readonly Scope[] = ['agents']
const owner: Principal = { ...somebody, scopes }
const otherOwner: Principal = { ...owner, organizationId: 'org_b' }

const open: AgentRuns[] = []
afterEach(async () => {
  for (const runs of open.splice(0)) await runs[Symbol.asyncDispose]()
})

function served(scripts: readonly (readonly Step[])[] = []) {
  const under = parts({ balance: 10_000_000_000n })
  const runs = new AgentRuns(under.deps, under.ofRuns)
  open.push(runs)
  const chatStreams = new ChatStreams(under.deps)
  under.far.streams.push(...scripts)
  under.knowledge.add('col_ports', ['The harbour of Sur was built in 1931.'])
  const subgraph: Subgraph = {
    name: 'inference',
    schema: subgraphSchema('inference', resolvers),
    toResolverContext: (context) => ({
      deps: { ...under.deps, runs, chatStreams },
      ...context,
      budget: new ReadBudget(),
      definitions: new DefinitionReads(under.deps.collections),
    }),
    problems: async () => [],
    [Symbol.asyncDispose]: async () => undefined,
  }
  const link = localLink(subgraph, silentLog)
  const execute = async (query: string, variables: object = {}, context: LinkContext = createRequestContext(owner)) => {
    const data = await request(link, { query: query as OperationText<unknown, unknown>, variables: { ...variables } }, context)
    return JSON.parse(JSON.stringify(data)) as Record<string, unknown>
  }
  const create = async (input: object = {}) => {
    const query = `mutation ($input: CreateAgentInput!) { createAgent(input: $input) { agent { ${AGENT} } } }`
    const agentInput = { code: 'guide', name: 'Guide', model: 'chat', collectionIds: ['col_ports'], ...input }
    const { createAgent } = (await execute(query, { input: agentInput })) as {
      createAgent: { agent: { id: string } & Record<string, unknown> }
    }
    return createAgent.agent
  }
  const follow = async (query: string, variables: object) => {
    const found: Record<string, unknown>[] = []
    for await (const { data, errors } of link.subscribe({ query, variables: { ...variables } }, createRequestContext(owner))) {
      if (errors) throw errors[0]
      found.push(Object.values(JSON.parse(JSON.stringify(data)))[0] as Record<string, unknown>)
    }
    return found
  }
  return { ...under, link, execute, create, follow }
}

const AGENT = `id code name model { id } instructions collections { id } temperature topP maxOutputTokens responseSchema maxSteps maxCost version`
const RUN = `id agentId agentVersion status messages outputText output citations { mark chunkId chunk { id } text fileName file { id } pageStart }
  steps { kind number model { id } collection { id } query hitCount usage { totalTokens } cost } usage { promptTokens completionTokens totalTokens } cost
  error { code message } threadId`
const EVENT = `type runId cursor number textDelta toolCall { id name arguments } search { collection { id } query hits { chunkId fileName } }
  usage { kind cost } run { id status outputText }`

it('creates, changes, lists and deletes agents of the organization of the caller', async () => {
  const { execute, create } = served()
  const agent = await create()
  expect(agent).toMatchObject({
    id: expect.stringMatching(/^agt_/),
    code: 'guide',
    name: 'Guide',
    model: { id: 'chat' },
    instructions: '',
    collections: [{ id: 'col_ports' }],
    temperature: null,
    responseSchema: null,
    maxSteps: 12,
    maxCost: '1',
    version: 1,
  })
  const { id } = agent
  const change = `mutation ($input: UpdateAgentInput!) { updateAgent(input: $input) { agent { ${AGENT} } } }`
  const input = { id, instructions: 'Be brief.', topP: 0.5, maxCost: '0.25', responseSchema: { type: 'object' } }
  expect(await execute(change, { input })).toMatchObject({
    updateAgent: {
      agent: { ...agent, instructions: 'Be brief.', topP: 0.5, maxCost: '0.25', responseSchema: { type: 'object' }, version: 2 },
    },
  })
  expect(await execute(change, { input: { id, topP: null, responseSchema: null } })).toMatchObject({
    updateAgent: { agent: { topP: null, responseSchema: null, instructions: 'Be brief.', version: 3 } },
  })
  const second = await create({ code: 'second' })
  const list = 'query ($after: String) { agents(first: 1, after: $after) { edges { node { id } cursor } pageInfo { hasNextPage } } }'
  const { agents } = (await execute(list)) as { agents: { edges: { node: { id: string }; cursor: string }[] } }
  expect(agents).toMatchObject({ edges: [{ node: { id: second.id } }], pageInfo: { hasNextPage: true } })
  expect(await execute(list, { after: agents.edges[0]!.cursor })).toMatchObject({ agents: { edges: [{ node: { id } }] } })
  expect(await execute('{ agents { edges { node { id } } } }', {}, createRequestContext(otherOwner))).toEqual({ agents: { edges: [] } })
  const one = 'query ($id: ID!) { agent(id: $id) { id } }'
  expect(await execute(one, { id: 'agent/guide' })).toEqual({ agent: { id } })
  expect(await execute(one, { id }, createRequestContext(otherOwner))).toEqual({ agent: null })
  expect(await execute('mutation ($id: ID!) { deleteAgent(id: $id) { id } }', { id })).toEqual({ deleteAgent: { id } })
  expect(await execute(one, { id })).toEqual({ agent: null })
})

it('runs an agent in one call, with its citations and its receipt, and stores the run', async () => {
  const { execute, create, billing } = served([calls(['search_col_ports', { query: 'harbour' }]), says('In 1931 [#1].')])
  const { id } = await create()
  const { runAgent } = (await execute(`mutation ($input: RunAgentInput!) { runAgent(input: $input) { ${RUN} } }`, {
    input: { agentId: id, input: 'When?' },
  })) as { runAgent: Record<string, unknown> }
  expect(runAgent).toMatchObject({
    id: expect.stringMatching(/^run_/),
    agentId: id,
    agentVersion: 1,
    status: 'COMPLETED',
    messages: [{ role: 'user', content: 'When?' }],
    outputText: 'In 1931 [#1].',
    output: null,
    citations: [
      { mark: 1, chunkId: 'chunk_col_ports_0', chunk: { id: 'chunk_col_ports_0' }, file: { id: 'file_col_ports_0' }, pageStart: 1 },
    ],
    steps: [
      { kind: 'MODEL', number: 1, model: { id: 'chat' }, collection: null, hitCount: null, usage: { totalTokens: 23 } },
      { kind: 'SEARCH', number: 1, model: null, collection: { id: 'col_ports' }, query: 'harbour', hitCount: 1, usage: null },
      { kind: 'MODEL', number: 2 },
    ],
    usage: { promptTokens: 40, completionTokens: 6, totalTokens: 46 },
    error: null,
    threadId: null,
  })
  expect(billing.held).toBe(0n)
  const read = `query ($id: ID!) { agentRun(id: $id) { ${RUN} } }`
  expect(await execute(read, { id: runAgent.id })).toEqual({ agentRun: runAgent })
  expect(await execute(read, { id: runAgent.id }, createRequestContext(otherOwner))).toEqual({ agentRun: null })
  const list = 'query ($id: ID!) { agent(id: $id) { runs { edges { node { id agent { id } } } } } }'
  expect(await execute(list, { id })).toEqual({ agent: { runs: { edges: [{ node: { id: runAgent.id, agent: { id } } }] } } })
})

it('reads the agents of a page of runs in one query, without deleted ones', async () => {
  const { deps, execute, create } = served([says('One.'), says('Two.'), says('Three.')])
  const ids: string[] = []
  for (const code of ['one', 'two', 'three']) ids.push((await create({ code, collectionIds: [] })).id)
  for (const agentId of ids)
    await execute('mutation ($input: RunAgentInput!) { runAgent(input: $input) { id } }', { input: { agentId, input: 'Hello' } })
  await execute('mutation ($id: ID!) { deleteAgent(id: $id) { id } }', { id: ids[0] })
  const reads = [vi.spyOn(deps.collections.agents, 'find'), vi.spyOn(deps.collections.agents, 'findOne')]
  const listed = await execute('{ agentRuns { edges { node { agent { id } } } } }')
  expect(listed).toEqual({ agentRuns: { edges: [ids[2], ids[1], null].map((id) => ({ node: { agent: id ? { id } : null } })) } })
  const byId = reads.flatMap(({ mock }) => mock.calls.map(([filter]) => filter)).filter((filter) => '_id' in filter)
  expect(byId).toHaveLength(1)
})

it('fails a call whose run fails with the error code of the run, and names the run', async () => {
  const { execute, create } = served([says('no'), says('no'), says('no')])
  await create({ responseSchema: { type: 'object' } })
  const failed = await execute('mutation ($input: RunAgentInput!) { runAgent(input: $input) { id } }', {
    input: { agentId: 'agent/guide', input: 'When?' },
  }).catch((error) => error)
  expect(failed).toMatchObject({ code: 'output_schema_failed', message: expect.stringMatching(/It was: no.*`run_\w+`/s) })
  const id = /run_\w+/.exec(failed.message)![0]
  expect(await execute('query ($id: ID!) { agentRun(id: $id) { status error { code } cost } }', { id })).toMatchObject({
    agentRun: { status: 'FAILED', error: { code: 'OUTPUT_SCHEMA_FAILED' }, cost: expect.stringMatching(/^0\.0/) },
  })
})

it('starts a run and follows it, and resumes from any event', async () => {
  const { create, follow } = served([calls(['search_col_ports', { query: 'harbour' }]), says('In 1931 [#1].')])
  await create()
  const events = await follow(`subscription ($input: RunAgentInput!) { agentRun(input: $input) { ${EVENT} } }`, {
    input: { agentId: 'agent/guide', input: 'When?' },
  })
  const runId = events[0]!.runId
  expect(events[0]).toMatchObject({ type: 'RUN_STARTED', cursor: '1', number: null, run: { id: runId, status: 'RUNNING' } })
  expect(events.map(({ type }) => type)).toEqual([
    ...['RUN_STARTED', 'STEP_STARTED', 'USAGE', 'TOOL_CALL', 'SEARCH', 'USAGE', 'STEP_STARTED', 'TEXT_DELTA', 'USAGE', 'DONE'],
  ])
  expect(events[3]).toMatchObject({ toolCall: { id: 'call_0', name: 'search_col_ports' }, number: 1, search: null, usage: null })
  expect(events[4]).toMatchObject({
    search: { collection: { id: 'col_ports' }, query: 'harbour', hits: [{ chunkId: 'chunk_col_ports_0' }] },
  })
  expect(events[7]).toMatchObject({ textDelta: 'In 1931 [#1].', number: 2 })
  expect(events.at(-1)).toMatchObject({ run: { status: 'COMPLETED', outputText: 'In 1931 [#1].' } })
  const again = `subscription ($runId: ID!, $after: Cursor) { agentRunEvents(runId: $runId, after: $after) { ${EVENT} } }`
  expect(await follow(again, { runId, after: '4' })).toEqual(events.slice(4))
})

for (const [what, input, code, param] of [
  ['no input', {}, 'missing_required_parameter', 'input.input'],
  ['an empty question', { input: ' ' }, 'invalid_request', 'input.input'],
  ['two questions', { input: 'a', messages: [{ role: 'user', content: 'b' }] }, 'invalid_request', 'input.messages'],
  ['a message without a role', { messages: [{ content: 'b' }] }, 'missing_required_parameter', 'input.messages[0].role'],
  ['an unknown thread', { input: 'a', threadId: 'thr_x' }, 'not_found', 'input.threadId'],
  ['an existing thread and a new one', { input: 'a', threadId: 'thr_x', keepThread: true }, 'invalid_request', 'input.keepThread'],
  ['an unknown agent', { input: 'a', agentId: 'agt_x' }, 'not_found', 'input.agentId'],
] as const) {
  it(`refuses ${what}, and places no hold`, async () => {
    const { execute, create, billing } = served()
    await create()
    const run = execute('mutation ($input: RunAgentInput!) { runAgent(input: $input) { id } }', {
      input: { agentId: 'agent/guide', ...input },
    })
    await expect(run).rejects.toMatchObject({ code, param })
    expect(billing.writes).toEqual([])
  })
}

it('cancels the run when its client disconnects', async () => {
  const { execute, create, billing, deps, far } = served([['wait']])
  const { id: agentId } = await create()
  const left = new AbortController()
  const run = execute(
    'mutation ($input: RunAgentInput!) { runAgent(input: $input) { status } }',
    { input: { agentId: 'agent/guide', input: 'When?' } },
    createRequestContext(owner, left.signal),
  )
  await expect.poll(() => far.chats, { timeout: 10_000 }).toBe(1)
  left.abort()
  await expect(run).rejects.toMatchObject({ code: 'service_unavailable' })
  const runs = () => deps.collections.runs.find({ organizationId: 'org_a', agentId }, { limit: 2 })
  await expect.poll(runs, { timeout: 10_000 }).toMatchObject([{ status: 'cancelled' }])
  expect(billing.held).toBe(0n)
})

it('requires only the scope `agents`', async () => {
  const { execute } = served()
  const caller: Principal = { ...owner, scopes: SCOPES.filter((scope) => !['agents', 'admin', 'operator'].includes(scope)) }
  for (const query of [
    '{ agents { edges { cursor } } }',
    '{ agentRun(id: "run_x") { id } }',
    'mutation { cancelAgentRun(id: "run_x") { id } }',
  ])
    await expect(execute(query, {}, createRequestContext(caller))).rejects.toMatchObject({ code: 'permission_denied' })
})

const CHAT =
  'mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { response warnings cost replayed usage { totalTokens } model { id } } }'
const CHUNKS =
  'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { chunks warnings cost replayed usage { totalTokens } } }'
const chatInput = (fields: object = {}) => ({
  request: { model: 'agent/guide', messages: [{ role: 'user', content: 'When?' }], ...fields },
})
const both: Principal = { ...owner, scopes: ['agents', 'inference'] }
interface Chunk {
  readonly choices: readonly { readonly delta: Record<string, unknown>; readonly finish_reason: string | null }[]
  readonly usage?: { readonly total_tokens: number }
}

describe('Agent as a chat model', () => {
  it('replies like a model, with citations as annotations, and the usage and cost of its run', async () => {
    const { execute, create, far } = served([calls(['search_col_ports', { query: 'harbour' }]), says('In 1931 [#1], not [#9].')])
    await create({ temperature: 0.1 })
    const fields = { temperature: 0.9, max_tokens: 7, metadata: { a: 'b' }, mystery: 1, 'bad name': 2 }
    const { createChatCompletion } = (await execute(CHAT, { input: chatInput(fields) }, createRequestContext(both))) as {
      createChatCompletion: Record<string, unknown>
    }
    expect(createChatCompletion).toMatchObject({
      warnings: ['metadata_not_honored', 'mystery_not_honored', 'unknown_field_not_honored'],
      model: { id: 'chat' },
      usage: { totalTokens: 46 },
      replayed: false,
      response: {
        id: expect.stringMatching(/^run_/),
        object: 'chat.completion',
        model: 'agent/guide',
        choices: [
          {
            finish_reason: 'stop',
            message: {
              role: 'assistant',
              content: 'In 1931 [#1], not.',
              refusal: null,
              annotations: [
                {
                  type: 'file_citation',
                  file_citation: {
                    start_index: 8,
                    end_index: 12,
                    file_id: 'file_col_ports_0',
                    filename: 'col_ports_0.txt',
                    chunk_id: 'chunk_col_ports_0',
                  },
                },
              ],
            },
          },
        ],
        usage: { prompt_tokens: 40, completion_tokens: 6, total_tokens: 46 },
      },
    })
    expect(far.requests[0]).toMatchObject({ temperature: 0.9, max_completion_tokens: 7 })
    expect(far.requests[0]).not.toHaveProperty('max_tokens')
    expect(far.requests[0]).not.toHaveProperty('metadata')
    const { agentRun } = (await execute('query ($id: ID!) { agentRun(id: $id) { cost } }', {
      id: (createChatCompletion.response as { id: string }).id,
    })) as { agentRun: { cost: string } }
    expect(createChatCompletion.cost).toBe(agentRun.cost)
  })

  it('streams the text of its model without invalid citation marks, then the annotations, then the usage', async () => {
    const { link, create } = served([
      [...says('I look.').slice(0, 1), ...calls(['search_col_ports', { query: 'harbour' }])],
      [...['In 19', '31 [', '#1], not [#', '9].'].map((content) => says(content)[0]!), says('')[1]!],
    ])
    await create()
    const events: { chunks: Chunk[]; warnings: string[] | null; cost: string | null }[] = []
    for await (const { data, errors } of link.subscribe({ query: CHUNKS, variables: { input: chatInput() } }, createRequestContext(both))) {
      expect(errors).toBeUndefined()
      events.push(JSON.parse(JSON.stringify(data!.chatCompletion)))
    }
    const chunks = events.flatMap((event) => event.chunks)
    expect(chunks[0]!.choices[0]!.delta).toMatchObject({ role: 'assistant' })
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
    expect(text).toBe('I look.\n\nIn 1931 [#1], not.')
    const last = chunks.at(-2)!.choices[0]!
    const [annotation] = last.delta.annotations as { file_citation: { start_index: number; end_index: number } }[]
    expect(text.slice(annotation!.file_citation.start_index, annotation!.file_citation.end_index)).toBe('[#1]')
    expect(last.finish_reason).toBe('stop')
    expect(chunks.slice(0, -2).every(({ choices }) => choices[0]!.finish_reason === null)).toBe(true)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 46 } })
    expect(events.map(({ warnings }) => warnings)).toEqual([[], ...events.slice(1).map(() => null)])
    expect(events.at(-1)!.cost).toMatch(/^0\.0/)
  })

  it("holds a reply back until it matches the caller's schema", async () => {
    const { link, create, execute } = served([says('no'), says('{"year": 1931}'), says('{"year": 1931}')])
    await create()
    const schema = { type: 'object', properties: { year: { type: 'integer' } }, required: ['year'] }
    const input = chatInput({ response_format: { type: 'json_schema', json_schema: { name: 'year', schema } } })
    let text = ''
    for await (const { data } of link.subscribe({ query: CHUNKS, variables: { input } }, createRequestContext(both))) {
      const { chunks } = data!.chatCompletion as { chunks: Chunk[] }
      text += chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
    }
    expect(text).toBe('{"year": 1931}')
    expect(await execute(CHAT, { input }, createRequestContext(both))).toMatchObject({
      createChatCompletion: { response: { choices: [{ message: { content: '{"year": 1931}' } }] } },
    })
  })

  it('returns the same run for a repeated idempotency key, charged once', async () => {
    const { execute, create, far } = served([says('In 1931.')])
    await create()
    const input = { ...chatInput(), idempotencyKey: 'k1' }
    const first = (await execute(CHAT, { input }, createRequestContext(both))) as { createChatCompletion: object }
    expect(await execute(CHAT, { input }, createRequestContext(both))).toEqual({
      createChatCompletion: { ...first.createChatCompletion, replayed: true },
    })
    expect(far.chats).toBe(1)
    await expect(
      execute(CHAT, { input: { ...chatInput({ seed: 1 }), idempotencyKey: 'k1' } }, createRequestContext(both)),
    ).rejects.toMatchObject({
      code: 'idempotency_conflict',
    })
  })

  it('cancels the run when the reader of its stream disconnects', async () => {
    const { link, create, far, billing } = served([[...says('A few words').slice(0, 1), 'wait']])
    await create()
    const events = link.subscribe({ query: CHUNKS, variables: { input: chatInput() } }, createRequestContext(both))
    await events.next()
    await events.return?.()
    await expect.poll(() => [far.ended, billing.held], { timeout: 10_000 }).toEqual([1, 0n])
  })

  it('fails before the first chunk with the error of its run', async () => {
    const { link, create } = served([[new KisError('context_length_exceeded', 'Too long.')]])
    await create()
    const { value } = await link.subscribe({ query: CHUNKS, variables: { input: chatInput() } }, createRequestContext(both)).next()
    expect(value.errors).toMatchObject([{ extensions: { code: 'CONTEXT_LENGTH_EXCEEDED' } }])
  })

  for (const [what, fields, code, param] of [
    ['an unknown agent', { model: 'agent/nobody' }, 'model_not_found', 'model'],
    ['tools', { tools: [{ type: 'function', function: { name: 'a' } }] }, 'unsupported_value', 'tools'],
    ['several answers', { n: 2 }, 'unsupported_value', 'n'],
    ['no messages', { messages: [] }, 'invalid_request', 'messages'],
    ['a message without a role', { messages: [{ content: 'a' }] }, 'missing_required_parameter', 'messages[0].role'],
    [
      'an invalid schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'x' } } } },
      'invalid_request',
      'response_format.json_schema.schema',
    ],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const { execute, create, billing } = served()
      await create()
      await expect(execute(CHAT, { input: chatInput(fields) }, createRequestContext(both))).rejects.toMatchObject({ code, param })
      expect(billing.writes).toEqual([])
    })
  }

  it('has no quote, and requires both scopes', async () => {
    const { execute, create } = served()
    await create()
    const { request } = chatInput()
    await expect(
      execute(
        'query ($request: ChatProtocolRequest!) { quoteChatCompletion(request: $request) { amount } }',
        { request },
        createRequestContext(both),
      ),
    ).rejects.toMatchObject({
      code: 'unsupported_value',
      param: 'model',
    })
    for (const scope of ['agents', 'inference'] as const)
      await expect(execute(CHAT, { input: chatInput() }, createRequestContext({ ...owner, scopes: [scope] }))).rejects.toMatchObject({
        code: 'permission_denied',
      })
  })
})
