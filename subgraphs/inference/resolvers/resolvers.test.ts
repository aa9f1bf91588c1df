import { expect, it } from 'vitest'
import { localLink } from '../../../cli/links/local-link.ts'
import type { OperationText } from '../../../schema/operations.ts'
import { ReadBudget } from '../../common/documents/long-records.ts'
import { type LinkContext, request } from '../../common/link/link.ts'
import { type Subgraph, subgraphSchema } from '../../common/link/subgraph.ts'
import { silentLog } from '../../common/process/log.ts'
import { createRequestContext, parts, somebody } from '../test-support/parts.ts'
import { completion, stream, usage, usageChunk } from '../test-support/scripted-engine.ts'
import { ChatStreams } from '../use-cases/streams/chat-streams.ts'
import { resolvers } from './index.ts'

function served() {
  const under = parts()
  const chatStreams = new ChatStreams(under.deps)
  const subgraph: Subgraph = {
    name: 'inference',
    schema: subgraphSchema('inference', resolvers),
    toResolverContext: (context) => ({ deps: { ...under.deps, chatStreams }, ...context, budget: new ReadBudget() }),
    problems: async () => [],
    [Symbol.asyncDispose]: async () => undefined,
  }
  const link = localLink(subgraph, silentLog)
  const execute = async (query: string, variables: object = {}, context: LinkContext = createRequestContext()) => {
    const data = await request(link, { query: query as OperationText<unknown, unknown>, variables: { ...variables } }, context)
    return JSON.parse(JSON.stringify(data)) as Record<string, unknown>
  }
  return { ...under, link, execute }
}

it('lists the models of allowlist and policy, by ID, with their metadata and prices', async () => {
  const { execute } = served()
  const ids = async (fields: object) => (await execute('{ models { id } }', {}, createRequestContext({ ...somebody, ...fields }))).models
  expect(await ids({})).toEqual(
    ['careful', 'chat', 'embed', 'embed-far', 'plain', 'rank', 'rank-tokens', 'speech', 'speech-live', 'speech-tokens'].map((id) => ({
      id,
    })),
  )
  expect(await ids({ residencyPolicy: 'local_only' })).toEqual([{ id: 'embed' }, { id: 'plain' }])
  expect(await ids({ modelAllowlist: ['chat', 'unplugged'] })).toEqual([{ id: 'chat' }])
  expect((await execute('{ models(kind: EMBEDDING) { id } }')).models).toHaveLength(2)
  expect(
    await execute(`{ model(id: "chat") { id kind vendor residency supportsVision supportsTools supportsResponseSchema contextWindow maxOutputTokens
      dimensions createdAt price { input cachedInput output audioMinute } } }`),
  ).toEqual({
    model: {
      id: 'chat',
      kind: 'CHAT',
      vendor: 'far',
      residency: 'CLOUD',
      supportsVision: true,
      supportsTools: true,
      supportsResponseSchema: true,
      contextWindow: 1000,
      maxOutputTokens: 100,
      dimensions: null,
      createdAt: '2026-01-01T00:00:00.000Z',
      price: { input: '1', cachedInput: '0.5', output: '2', audioMinute: null },
    },
  })
})

it('hides a model outside the allowlist, but resolves references to every model of the catalog', async () => {
  const { execute } = served()
  const narrow = createRequestContext({ ...somebody, modelAllowlist: [] })
  expect(await execute('{ model(id: "chat") { id } }', {}, narrow)).toEqual({ model: null })
  const representations = ['chat', 'unplugged', 'gone'].map((id) => ({ __typename: 'Model', id }))
  const query = 'query ($representations: [_Any!]!) { _entities(representations: $representations) { ... on Model { id vendor } } }'
  expect(await execute(query, { representations }, narrow)).toEqual({
    _entities: [{ id: 'chat', vendor: 'far' }, { id: 'unplugged', vendor: 'off' }, null],
  })
  await expect(execute('{ models { id } }', {}, createRequestContext({ ...somebody, scopes: ['billing:read'] }))).rejects.toMatchObject({
    code: 'permission_denied',
  })
})

it('returns a completion of the engine with the required fields of the protocol, and typed fields', async () => {
  const { execute, far } = served()
  const toolCall = { id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '{"a":1}' } }
  const response = completion({
    usage: usage(20, 5, 4),
    vendor_extra: { kept: [true] },
    choices: [
      { index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' },
      { index: 1, message: { role: 'assistant', content: null, refusal: 'No.', tool_calls: [toolCall] }, finish_reason: 'tool_calls' },
      { index: 2, message: {}, finish_reason: 'eos_token' },
    ],
  })
  far.completions = [response]
  const input = { request: { model: 'chat', messages: [{ role: 'user', content: 'Hi' }] } }
  const query = `mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { response id text finishReason cost model { id }
    usage { promptTokens cachedPromptTokens completionTokens totalTokens }
    choices { index text refusal finishReason toolCalls { id name arguments } } } }`
  expect(await execute(query, { input })).toEqual({
    createChatCompletion: {
      response: {
        ...response,
        choices: [
          { index: 0, message: { role: 'assistant', content: 'Hello', refusal: null }, logprobs: null, finish_reason: 'stop' },
          {
            index: 1,
            message: { role: 'assistant', content: null, refusal: 'No.', tool_calls: [toolCall] },
            logprobs: null,
            finish_reason: 'tool_calls',
          },
          { index: 2, message: { role: 'assistant', content: null, refusal: null }, logprobs: null, finish_reason: 'stop' },
        ],
      },
      id: 'chatcmpl-1',
      text: 'Hello',
      finishReason: 'STOP',
      cost: '0.000028',
      model: { id: 'chat' },
      usage: { promptTokens: 20, cachedPromptTokens: 4, completionTokens: 5, totalTokens: 25 },
      choices: [
        { index: 0, text: 'Hello', refusal: null, finishReason: 'STOP', toolCalls: [] },
        {
          index: 1,
          text: null,
          refusal: 'No.',
          finishReason: 'TOOL_CALLS',
          toolCalls: [{ id: 'call_1', name: 'look_up', arguments: '{"a":1}' }],
        },
        { index: 2, text: null, refusal: null, finishReason: 'STOP', toolCalls: [] },
      ],
    },
  })
})

it('streams chunks with their text, then usage and cost', async () => {
  const { link, far } = served()
  far.steps = [...stream(2), [usageChunk(20, 2)]]
  const events = link.subscribe(
    {
      query: `subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { chunks textDelta finishReason cost usage { totalTokens } } }`,
      variables: { input: { request: { model: 'chat', stream: true, messages: [{ role: 'user', content: 'Hi' }] } } },
    },
    createRequestContext(),
  )
  const got: unknown[] = []
  for await (const { data } of events) got.push(JSON.parse(JSON.stringify(data?.chatCompletion)))
  const nothing = { finishReason: null, cost: null, usage: null }
  expect(got).toEqual([
    { ...nothing, chunks: far.steps[0], textDelta: 'w0 ' },
    { ...nothing, chunks: far.steps[1], textDelta: 'w1 ', finishReason: 'STOP' },
    { ...nothing, chunks: far.steps[2], textDelta: '', cost: '0.000024', usage: { totalTokens: 22 } },
  ])
})

it('returns vectors as numbers or as base64 of little-endian floats', async () => {
  const { execute, near } = served()
  near.createVector = () => Float32Array.from([0, 0.5, -0.5, 1])
  const query = `mutation ($input: EmbeddingsInput!) { createEmbeddings(input: $input) { promptTokens cost model { id } data { index float base64 } } }`
  const vector = [0, 0.5, -0.5, 1]
  const base64 = 'AAAAAAAAAD8AAAC/AACAPw=='
  expect(await execute(query, { input: { model: 'embed', input: ['a', 'b'] } })).toEqual({
    createEmbeddings: {
      promptTokens: 20,
      cost: '0.000008',
      model: { id: 'embed' },
      data: [
        { index: 0, float: vector, base64: null },
        { index: 1, float: vector, base64: null },
      ],
    },
  })
  const { createEmbeddings } = await execute(query, { input: { model: 'embed', input: 'a', encodingFormat: 'BASE64' } })
  expect(createEmbeddings).toMatchObject({ data: [{ index: 0, float: null, base64 }] })
})

it('serves the calls of other services', async () => {
  const { execute, near, billing } = served()
  near.createVector = () => Float32Array.from([0, 0.5, -0.5, 1])
  const vector = 'AAAAAAAAAD8AAAC/AACAPw=='
  expect(await execute('mutation { embedQuery(modelId: "embed", text: "a") { vector tokens } }')).toEqual({
    embedQuery: { vector, tokens: 10 },
  })
  const { openEmbedding } = await execute('mutation { openEmbedding(modelId: "embed", tokens: 50) { holdId } }')
  const { holdId } = openEmbedding as { holdId: string }
  const input = { holdId, modelId: 'embed', texts: ['a'], tokensBefore: 0 }
  expect(await execute('mutation ($input: EmbedPassagesInput!) { embedPassages(input: $input) { vectors tokens } }', { input })).toEqual({
    embedPassages: { vectors: [vector], tokens: 10 },
  })
  expect(await execute('mutation ($holdId: ID!) { closeEmbedding(holdId: $holdId, tokens: 10) { charged } }', { holdId })).toEqual({
    closeEmbedding: { charged: '0.00001' },
  })
  expect(await execute('{ embeddingModel(id: "embed") { id dimensions } countTokens(modelId: "embed", texts: ["a b"]) }')).toEqual({
    embeddingModel: { id: 'embed', dimensions: 4 },
    countTokens: [2],
  })
  expect(billing.openHolds).toBe(0)
})
