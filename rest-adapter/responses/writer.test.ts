import fc from 'fast-check'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { describe, expect, it } from 'vitest'
import { KisError } from '../../subgraphs/common/errors.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { assembleResponse } from '../../test/support/response-events.ts'
import type { JsonObject } from '../http/route.ts'
import { ResponseWriter, toChunk } from './writer.ts'

const ids = idSource(systemClock)
const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
const charged = { promptTokens: 8, cachedPromptTokens: 1, cacheWritePromptTokens: 2, completionTokens: 6, totalTokens: 14 }
const chunk = (delta: object, rest: object = {}) => ({
  model: 'engine-model',
  choices: [{ index: 0, delta, finish_reason: null, ...rest }],
})
const ends = (reason: string) => chunk({}, { finish_reason: reason })
const call = (index: number, fields: object) => ({ tool_calls: [{ index, ...fields }] })

/** Returns the events for these chunks, and the response. */
function streamed(chunks: readonly JsonObject[], { body = {}, failure = null as KisError | null } = {}) {
  const writer = new ResponseWriter(ids, { model: 'm', ...body }, chunks[0] ?? {}, 1_750_000_000_500)
  writer.start()
  for (const each of chunks) writer.write(each)
  if (failure) writer.fail(failure)
  else writer.end(charged, 1_750_000_002_000)
  const events = writer.drain() as unknown as readonly ResponseStreamEvent[]
  return { events, response: assembleResponse(events) }
}

describe('Responses API output', () => {
  for (const { name, chunks, output, body } of [
    {
      name: 'of an empty reply is a message without text',
      chunks: [chunk({ role: 'assistant', content: '' }), ends('stop')],
      output: [{ type: 'message', content: [{ type: 'output_text', text: '' }] }],
    },
    { name: 'of a reply that ends before its first text is empty', chunks: [ends('length')], output: [] },
    {
      name: 'has a text and a refusal as parts of one message',
      chunks: [
        chunk({ content: 'Well, ' }),
        chunk({ content: 'no.' }),
        chunk({ refusal: 'It is ' }),
        chunk({ refusal: 'not for me.' }),
        ends('stop'),
      ],
      output: [
        {
          type: 'message',
          content: [
            { type: 'output_text', text: 'Well, no.' },
            { type: 'refusal', refusal: 'It is not for me.' },
          ],
        },
      ],
    },
    {
      name: 'has text after tool calls in a message of its own',
      chunks: [
        chunk({ content: 'First.' }),
        chunk(call(0, { id: 'a', function: { name: 'f', arguments: '{}' } })),
        chunk({ content: 'Then.' }),
        ends('tool_calls'),
      ],
      output: [
        { type: 'message', content: [{ text: 'First.' }] },
        { type: 'function_call', call_id: 'a', arguments: '{}' },
        { type: 'message', content: [{ text: 'Then.' }] },
      ],
    },
    {
      name: 'separates tool calls that have one index but different IDs',
      chunks: [
        chunk(call(0, { id: 'a', function: { name: 'f', arguments: '{}' } })),
        chunk(call(0, { id: 'b', function: { name: 'g', arguments: '{}' } })),
        ends('tool_calls'),
      ],
      output: [
        { call_id: 'a', name: 'f' },
        { call_id: 'b', name: 'g' },
      ],
    },
    {
      name: 'continues a tool call whose ID is repeated',
      chunks: [
        chunk(call(0, { id: 'a', function: { name: 'f', arguments: '{"a"' } })),
        chunk(call(0, { id: 'a', function: { arguments: ':1}' } })),
        ends('tool_calls'),
      ],
      output: [{ call_id: 'a', name: 'f', arguments: '{"a":1}' }],
    },
    {
      name: 'assigns a new ID to a tool call whose ID is taken',
      chunks: [
        chunk(call(0, { id: 'a', function: { name: 'f', arguments: '{}' } })),
        chunk(call(1, { id: 'a', function: { name: 'g', arguments: '{' } })),
        chunk(call(1, { id: 'a', function: { arguments: '}' } })),
        ends('tool_calls'),
      ],
      output: [
        { call_id: 'a', name: 'f' },
        { call_id: expect.stringMatching(/^call_/), name: 'g', arguments: '{}' },
      ],
    },
    {
      name: 'assigns an ID to a tool call without one',
      chunks: [
        chunk(call(0, { function: { arguments: '' } })),
        chunk(call(0, { function: { name: 'late', arguments: '{}' } })),
        ends('tool_calls'),
      ],
      output: [{ type: 'function_call', call_id: expect.stringMatching(/^call_/), name: 'late', arguments: '{}' }],
    },
    {
      name: 'has a new reasoning item after text',
      chunks: [chunk({ reasoning: 'One.' }), chunk({ content: 'A' }), chunk({ reasoning: 'Two.' }), chunk({ content: 'B' }), ends('stop')],
      output: [
        { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'One.' }], encrypted_content: null },
        { type: 'message' },
        { type: 'reasoning', content: [{ text: 'Two.' }] },
        { type: 'message' },
      ],
    },
    {
      name: 'has reasoning as a summary if requested',
      body: { reasoning: { summary: 'auto' } },
      chunks: [chunk({ reasoning_content: 'One.' }), ends('stop')],
      output: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'One.' }] }],
    },
    {
      name: 'has each signature once, from cumulative lists',
      chunks: [
        chunk({ reasoning_content: 'One.' }),
        chunk({ reasoning_details: [{ index: 0, data: 'x' }] }),
        chunk({ content: 'A' }),
        chunk({
          reasoning_details: [
            { index: 0, data: 'x' },
            { index: 1, data: 'y' },
          ],
        }),
        ends('stop'),
      ],
      output: [
        { type: 'reasoning', encrypted_content: expect.stringMatching(/^kis1\./) },
        { type: 'message' },
        { type: 'reasoning', encrypted_content: expect.stringMatching(/^kis1\./) },
      ],
    },
    {
      name: 'has reasoning before a tool call that must be returned signed',
      chunks: [
        chunk(call(0, { id: 'a', function: { name: 'f', arguments: '{}' }, extra_content: { google: { thought_signature: 's' } } })),
        ends('tool_calls'),
      ],
      output: [
        { type: 'reasoning', encrypted_content: expect.any(String) },
        { type: 'function_call', call_id: 'a' },
      ],
    },
    {
      name: 'leaves out other choices and malformed parts',
      chunks: [
        { choices: [{ index: 1, delta: { content: 'no' } }] },
        {},
        { choices: null },
        { choices: [null] },
        chunk({ content: 7, tool_calls: 'x', reasoning_details: 1 }),
        chunk({ content: 'yes' }),
        ends('stop'),
      ] as JsonObject[],
      output: [{ content: [{ text: 'yes' }] }],
    },
  ] as readonly { name: string; chunks: readonly JsonObject[]; output: readonly object[]; body?: JsonObject }[]) {
    it(name, () => {
      const { response } = streamed(chunks, { body: body ?? {} })
      expect(response.output).toMatchObject(output)
    })
  }

  it('has log probabilities with the text and with each of its deltas', () => {
    const token = (text: string) => ({ token: text, bytes: [65], logprob: -0.1, top_logprobs: [] })
    const { events, response } = streamed([
      chunk({ content: 'A' }, { logprobs: { content: [token('A')] } }),
      chunk({ content: 'B' }, { logprobs: { content: [token('B')] } }),
      ends('stop'),
    ])
    expect(events.filter(({ type }) => type === 'response.output_text.delta')).toMatchObject([
      { logprobs: [token('A')] },
      { logprobs: [token('B')] },
    ])
    expect(response.output).toMatchObject([{ content: [{ logprobs: [token('A'), token('B')] }] }])
  })
})

describe('End of a Responses API response', () => {
  const cut = [chunk({ content: 'Hal' }), chunk(call(0, { id: 'a', function: { name: 'f', arguments: '{"a' } }))]
  it('is completed, with the charge', () => {
    const { response } = streamed([
      chunk({ content: 'All.' }),
      ends('stop'),
      { choices: [], usage: { ...usage, completion_tokens_details: { reasoning_tokens: 2 } } },
    ])
    expect(response).toMatchObject({
      status: 'completed',
      created_at: 1_750_000_000,
      completed_at: 1_750_000_002,
      model: 'engine-model',
      incomplete_details: null,
      error: null,
      usage: {
        input_tokens: 8,
        input_tokens_details: { cached_tokens: 1, cache_write_tokens: 2 },
        output_tokens: 6,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 14,
      },
    })
  })
  for (const { reason, details } of [
    { reason: 'length', details: 'max_output_tokens' },
    { reason: 'content_filter', details: 'content_filter' },
  ]) {
    it(`by ${reason} is incomplete, and so is the truncated item`, () => {
      const { response } = streamed([...cut, ends(reason)])
      expect(response).toMatchObject({
        status: 'incomplete',
        incomplete_details: { reason: details },
        completed_at: null,
        usage: { total_tokens: 14 },
      })
      expect(response.output).toMatchObject([{ status: 'completed' }, { status: 'incomplete', arguments: '{"a' }])
    })
  }
  it('by a failure has the usage that the engine reported, and the output that arrived', () => {
    const failure = new KisError('engine_timeout', 'Silence.', { param: null })
    const { response } = streamed([...cut, { choices: [], usage }], { failure })
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: 'engine_timeout', message: 'Silence.', param: null, type: 'server_error' },
      usage: { input_tokens: 7, output_tokens: 5, total_tokens: 12 },
    })
    expect(response.output).toMatchObject([{ status: 'completed' }, { status: 'incomplete' }])
  })
})

describe('Responses API stream', () => {
  const text = fc.string({ maxLength: 4 })
  const index = fc.nat(3)
  const delta = fc.oneof(
    fc.record({ content: text }),
    fc.record({ refusal: text }),
    fc.record({ reasoning_content: text }),
    fc.record({ reasoning_details: fc.array(fc.record({ index, data: text }), { maxLength: 3 }) }),
    fc.tuple(index, text).map(([at, piece]) => call(at, { function: { arguments: piece } })),
    fc
      .tuple(index, fc.constantFrom('a', 'b', 'c', 'd'), text)
      .map(([at, name, piece]) => call(at, { id: `call_${at}`, function: { name, arguments: piece } })),
  )
  const end = fc.constantFrom('stop', 'length', 'content_filter', 'tool_calls', 'failure')

  it('is well formed, and its deltas add up to its text', () => {
    fc.assert(
      fc.property(fc.array(delta, { maxLength: 30 }), end, fc.boolean(), (deltas, how, summary) => {
        const failure = how === 'failure' ? new KisError('engine_error', 'Cut.') : null
        const chunks = [...deltas.map((each) => chunk(each)), ...(failure ? [] : [ends(how)])]
        const { response } = streamed(chunks, { failure, body: summary ? { reasoning: { summary: 'auto' } } : {} })
        const written = deltas.map((each) => ('content' in each ? each.content : '')).join('')
        const texts = response.output.flatMap((item) => (item.type === 'message' ? item.content : []))
        expect(texts.map((part) => (part.type === 'output_text' ? part.text : '')).join('')).toBe(written)
        expect(response.output.filter((item) => 'status' in item && item.status === 'in_progress')).toEqual([])
      }),
    )
  })

  it('of a whole completion equals that of its chunks', () => {
    const message = fc.record({
      reasoning_content: text,
      content: fc.option(text),
      refusal: fc.option(text),
      tool_calls: fc.uniqueArray(
        fc.record({ id: fc.uuid(), type: fc.constant('function'), function: fc.record({ name: text, arguments: text }) }),
        { selector: ({ id }) => id, maxLength: 3 },
      ),
    })
    const plain = (value: unknown) => JSON.stringify(value).replaceAll(/"(?:msg|fc|rs)_[0-9a-f]+"/g, '"id"')
    fc.assert(
      fc.property(message, ({ reasoning_content, content, refusal, tool_calls }) => {
        const choice = { index: 0, message: { role: 'assistant', reasoning_content, content, refusal, tool_calls }, finish_reason: 'stop' }
        const whole = streamed([toChunk({ model: 'engine-model', choices: [choice] })])
        const pieces = [
          chunk({ reasoning_content }),
          chunk({ content }),
          chunk({ refusal }),
          ...tool_calls.flatMap(({ id, function: { name, arguments: written } }, at) => [
            chunk(call(at, { id, function: { name, arguments: '' } })),
            ...[...written].map((letter) => chunk(call(at, { function: { arguments: letter } }))),
          ]),
          ends('stop'),
        ]
        expect(plain(streamed(pieces).response.output)).toBe(plain(whole.response.output))
      }),
    )
  })
})
