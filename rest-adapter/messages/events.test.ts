import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../http/route.ts'
import { type MessageEvent, MessageEvents } from './events.ts'
import { toMessage } from './message-response.ts'

const usage = { promptTokens: 20, cachedPromptTokens: 4, cacheWritePromptTokens: 3, completionTokens: 9, totalTokens: 29 }
const chunk = (delta: JsonObject, finish: string | null = null, more: JsonObject = {}) => ({
  id: 'a',
  model: 'v',
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
})
const newId = () => 'made'
const signed = (text: string, signature: string, index: number) => ({ type: 'reasoning.text', text, signature, format: 'anthropic', index })
const called = (index: number, id: string, name: string, text: string) => ({
  tool_calls: [{ index, id, function: { name, arguments: text } }],
})

function toEvents(chunks: readonly JsonObject[], hidesThinking = false): readonly MessageEvent[] {
  const writer = new MessageEvents(hidesThinking, newId)
  return [...chunks.flatMap((each) => writer.write(each)), ...writer.end(usage)]
}

/** Assembles the blocks as a client does; fails if an event does not belong to the open block. */
function assembleBlocks(events: readonly MessageEvent[]): readonly JsonObject[] {
  const blocks: Record<string, unknown>[] = []
  let isOpen = false
  for (const event of events) {
    if (event.type === 'content_block_start') {
      expect([isOpen, event.index]).toEqual([false, blocks.length])
      blocks.push({ ...(event.content_block as JsonObject) })
      isOpen = true
    }
    if (event.type === 'content_block_delta' || event.type === 'content_block_stop')
      expect([isOpen, event.index]).toEqual([true, blocks.length - 1])
    if (event.type === 'content_block_stop') isOpen = false
    if (event.type !== 'content_block_delta') continue
    const block = blocks.at(-1)!
    const { type: _, ...delta } = event.delta as Record<string, string>
    for (const [field, value] of Object.entries(delta)) block[field] = field === 'signature' ? value : (block[field] ?? '') + value
  }
  expect(isOpen).toBe(false)
  return blocks
}

describe('Stream events of the Messages API', () => {
  it.each([
    { name: 'text', chunks: [chunk({ content: 'a' }), chunk({ content: 'b' }, 'stop')], blocks: [{ type: 'text', text: 'ab' }] },
    { name: 'nothing', chunks: [chunk({ content: '' }, 'stop')], blocks: [] },
    {
      name: 'signed reasoning in cumulative lists',
      chunks: [
        chunk({ reasoning_content: 'so' }),
        chunk({ reasoning_details: [signed('so', 's1', 0)] }),
        chunk({ reasoning_content: 'and' }),
        chunk({ reasoning_details: [signed('so', 's1', 0), signed('and', 's2', 1)] }),
        chunk({ content: 'a' }, 'stop'),
      ],
      blocks: [
        { type: 'thinking', thinking: 'so', signature: 's1' },
        { type: 'thinking', thinking: 'and', signature: 's2' },
        { type: 'text', text: 'a' },
      ],
    },
    {
      name: 'unsigned reasoning',
      chunks: [chunk({ reasoning: 'so' }), chunk({ content: 'a' }, 'stop')],
      blocks: [{ type: 'thinking', thinking: 'so', signature: 'unsigned:' }, { type: 'text' }],
    },
    {
      name: 'redacted reasoning',
      chunks: [chunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'd', format: 'bedrock', index: 0 }] }, 'stop')],
      blocks: [{ type: 'redacted_thinking', data: 'bedrock:d' }],
    },
    {
      name: 'parallel calls, one without an id, one signed by Google',
      chunks: [
        chunk({ content: 'Let me see.' }),
        chunk(called(0, 'c1', 'clock', '')),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
        chunk(
          {
            tool_calls: [
              { index: 1, function: { name: 'weather', arguments: '{}' }, extra_content: { google: { thought_signature: 'g' } } },
            ],
          },
          'tool_calls',
        ),
      ],
      blocks: [
        { type: 'text' },
        { type: 'tool_use', id: 'c1', name: 'clock', partial_json: '{"a":1}' },
        { type: 'redacted_thinking', data: 'google-call:g' },
        { type: 'tool_use', id: 'made', name: 'weather', partial_json: '{}' },
      ],
    },
  ])('create content blocks in order: $name', ({ chunks, blocks }) => {
    const events = toEvents(chunks)
    expect(events.slice(0, 2)).toMatchObject([{ type: 'message_start', message: { id: 'a', model: 'v', content: [] } }, { type: 'ping' }])
    expect(assembleBlocks(events)).toMatchObject(blocks)
    expect(events.slice(-2).map(({ type }) => type)).toEqual(['message_delta', 'message_stop'])
  })

  it('hide reasoning that is not to be shown, but include its signature', () => {
    const chunks = [
      chunk({ reasoning_content: 'so' }),
      chunk({ reasoning_details: [signed('so', 's1', 0)] }),
      chunk({ content: 'a' }, 'stop'),
    ]
    expect(assembleBlocks(toEvents(chunks, true))).toMatchObject([{ type: 'thinking', thinking: '', signature: 's1' }, { type: 'text' }])
  })

  it('fail if an engine returns to a tool call that has ended', () => {
    const writer = new MessageEvents(false, newId)
    writer.write(chunk(called(0, 'c1', 'clock', '{')))
    writer.write(chunk(called(1, 'c2', 'clock', '{}')))
    expect(() => writer.write(chunk({ tool_calls: [{ index: 0, function: { arguments: '}' } }] }))).toThrow(
      expect.objectContaining({ code: 'engine_error' }),
    )
  })

  it('report the charge at the end', () => {
    const reported = { choices: [], usage: { completion_tokens_details: { reasoning_tokens: 2 } } }
    expect(toEvents([chunk({ content: 'a' }, 'stop'), reported]).at(-2)).toMatchObject({
      usage: {
        input_tokens: 13,
        cache_read_input_tokens: 4,
        cache_creation_input_tokens: 3,
        output_tokens: 9,
        output_tokens_details: { thinking_tokens: 2 },
      },
    })
  })
})

describe('Stop reason of the Messages API', () => {
  const none = { stop_sequence: null, stop_details: null }
  it.each([
    { name: 'end of turn', finish: 'stop', more: {}, delta: {}, expected: { stop_reason: 'end_turn', ...none } },
    { name: 'at max_tokens', finish: 'length', more: {}, delta: {}, expected: { stop_reason: 'max_tokens', ...none } },
    {
      name: 'at a stop sequence that the engine names',
      finish: 'stop',
      more: { stop_reason: 'END' },
      delta: {},
      expected: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    },
    {
      name: 'at a token that vLLM identifies by number',
      finish: 'stop',
      more: { stop_reason: 128009 },
      delta: {},
      expected: { stop_reason: 'end_turn', ...none },
    },
    {
      name: 'with tool calls',
      finish: 'tool_calls',
      more: {},
      delta: called(0, 'c', 'n', '{}'),
      expected: { stop_reason: 'tool_use', ...none },
    },
    {
      name: 'with tool calls and a wrong finish reason',
      finish: 'stop',
      more: {},
      delta: called(0, 'c', 'n', '{}'),
      expected: { stop_reason: 'tool_use', ...none },
    },
    {
      name: 'at a content filter',
      finish: 'content_filter',
      more: {},
      delta: {},
      expected: { stop_reason: 'refusal', stop_details: { explanation: null } },
    },
    {
      name: 'with a refusal',
      finish: 'stop',
      more: {},
      delta: { refusal: 'No.' },
      expected: { stop_reason: 'refusal', stop_details: { type: 'refusal', explanation: 'No.' } },
    },
  ])('is the same, plain and streamed: $name', ({ finish, more, delta, expected }) => {
    const end = toEvents([chunk(delta, finish, more)]).at(-2)!
    expect(end.delta).toMatchObject(expected)
    const response = { id: 'a', model: 'v', choices: [{ index: 0, message: delta, finish_reason: finish, ...more }] }
    expect(toMessage({ response, warnings: [], usage }, false, newId)).toMatchObject(expected)
  })
})

describe('Plain response of the Messages API', () => {
  it('has its reasoning, its text and its tool calls in this order', () => {
    const message = {
      content: 'Let me see.',
      reasoning_content: 'so',
      reasoning_details: [signed('so', 's1', 0)],
      tool_calls: [
        { id: 'c1', function: { name: 'clock', arguments: '{"a":1}' } },
        { function: { name: 'clock', arguments: 'not JSON' }, extra_content: { google: { thought_signature: 'g' } } },
      ],
    }
    const { content } = toMessage({ response: { choices: [{ message, finish_reason: 'tool_calls' }] }, warnings: [], usage }, false, newId)
    expect(content).toMatchObject([
      { type: 'thinking', thinking: 'so', signature: 's1' },
      { type: 'text', text: 'Let me see.' },
      { type: 'tool_use', id: 'c1', input: { a: 1 } },
      { type: 'redacted_thinking', data: 'google-call:g' },
      { type: 'tool_use', id: 'made', input: { arguments: 'not JSON' } },
    ])
  })
})
