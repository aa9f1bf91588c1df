import { describe, expect, it } from 'vitest'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { JsonObject } from '../http/route.ts'
import { ownWarning, toChatRequest } from './request.ts'

const user = (content: unknown) => ({ role: 'user', content })
const assistant = (...content: JsonObject[]) => ({ role: 'assistant', content })
const text = (value: string) => ({ type: 'text', text: value })
const base = { model: 'm', max_tokens: 100, messages: [user('Hi')] }
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const imagePart = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
const use = (id: string) => ({ type: 'tool_use', id, name: 'clock', input: { city: 'Riyadh' } })
const call = (id: string) => ({ id, type: 'function', function: { name: 'clock', arguments: '{"city":"Riyadh"}' } })
const tool = { name: 'clock', input_schema: { type: 'object' } }
const translateMessages = (messages: readonly unknown[], more: JsonObject = {}) =>
  toChatRequest({ ...base, messages, ...more }).request.messages
const closed = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }

describe('Translation of Messages API messages to chat messages:', () => {
  it.each([
    { name: 'a text', input: [user('Hi')], expected: [user('Hi')] },
    { name: 'a single block', input: [user([text('Hi')])], expected: [user('Hi')] },
    { name: 'several blocks', input: [user([text('a'), image])], expected: [user([text('a'), imagePart])] },
    {
      name: 'an image by URL',
      input: [user([{ type: 'image', source: { type: 'url', url: 'https://a.test/b.png' } }])],
      expected: [user([{ type: 'image_url', image_url: { url: 'https://a.test/b.png' } }])],
    },
    {
      name: 'documents that are text',
      input: [
        user([
          { type: 'document', title: 'Leave', source: { type: 'text', media_type: 'text/plain', data: '30 days' } },
          { type: 'document', source: { type: 'content', content: [text('page'), image] } },
          { type: 'search_result', title: 'T', source: 'S', content: [text('hit')] },
        ]),
      ],
      expected: [user([text('Leave\n30 days'), text('page'), imagePart, text('T\nS\nhit')])],
    },
    {
      name: 'a system message between them',
      input: [user('a'), { role: 'system', content: [text('b')] }],
      expected: [user('a'), { role: 'system', content: 'b' }],
    },
    {
      name: 'texts and tool calls of the assistant',
      input: [assistant(text('Let '), text('me see.'), use('c1'), use('c2'))],
      expected: [{ role: 'assistant', content: 'Let me see.', tool_calls: [call('c1'), call('c2')] }],
    },
    { name: 'tool calls alone', input: [assistant(use('c1'))], expected: [{ role: 'assistant', content: null, tool_calls: [call('c1')] }] },
    {
      name: 'tool results before other content of the user, with errors marked',
      input: [
        user([
          text('and then?'),
          { type: 'tool_result', tool_use_id: 'c1', content: 'noon' },
          { type: 'tool_result', tool_use_id: 'c2', content: [text('no'), text('clock')], is_error: true },
          { type: 'tool_result', tool_use_id: 'c3' },
        ]),
      ],
      expected: [
        { role: 'tool', tool_call_id: 'c1', content: 'noon' },
        { role: 'tool', tool_call_id: 'c2', content: 'Error: no\nclock' },
        { role: 'tool', tool_call_id: 'c3', content: '' },
        user('and then?'),
      ],
    },
    {
      name: 'an image of a tool result in the next message',
      input: [user([{ type: 'tool_result', tool_use_id: 'c1', content: [image] }])],
      expected: [
        { role: 'tool', tool_call_id: 'c1', content: '(An image of this result in the next message.)' },
        user([text('Of the result of the tool call c1:'), imagePart]),
      ],
    },
    {
      name: 'signed reasoning of Anthropic',
      input: [
        assistant({ type: 'thinking', thinking: 'so', signature: 'c2ln' }, { type: 'redacted_thinking', data: 'ZGF0YQ==' }, use('c1')),
      ],
      expected: [
        {
          role: 'assistant',
          content: null,
          reasoning_details: [
            { type: 'reasoning.text', text: 'so', signature: 'c2ln', format: 'anthropic', index: 0 },
            { type: 'reasoning.encrypted', data: 'ZGF0YQ==', format: 'anthropic', index: 1 },
          ],
          tool_calls: [call('c1')],
        },
      ],
    },
    {
      name: 'reasoning of other engines, signed, unsigned, and of one tool call',
      input: [
        assistant(
          { type: 'thinking', thinking: 'so', signature: 'bedrock:c2ln' },
          { type: 'thinking', thinking: 'and so', signature: 'unsigned:' },
          { type: 'redacted_thinking', data: 'google-call:Z29vZ2xl' },
          use('c1'),
          use('c2'),
        ),
      ],
      expected: [
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'and so',
          reasoning_details: [{ type: 'reasoning.text', text: 'so', signature: 'c2ln', format: 'bedrock', index: 0 }],
          tool_calls: [{ ...call('c1'), extra_content: { google: { thought_signature: 'Z29vZ2xl' } } }, call('c2')],
        },
      ],
    },
  ])('$name', ({ input, expected }) => expect(translateMessages(input)).toEqual(expected))

  it.each([
    { name: 'a text', system: 'Be brief.', content: 'Be brief.' },
    {
      name: 'blocks',
      system: [{ ...text('Be brief.'), cache_control: { type: 'ephemeral' } }, text('Be kind.')],
      content: 'Be brief.\n\nBe kind.',
    },
  ])('the system prompt, $name', ({ system, content }) =>
    expect(translateMessages([user('Hi')], { system })).toEqual([{ role: 'system', content }, user('Hi')]),
  )
})

describe('Translation of Messages API fields', () => {
  it.each([
    { input: { stop_sequences: ['END'] }, expected: { stop: ['END'] } },
    { input: { stop_sequences: [] }, expected: {} },
    { input: { temperature: 0.5, top_p: 0.9, top_k: 40 }, expected: { temperature: 0.5, top_p: 0.9, top_k: 40 } },
    { input: { metadata: { user_id: 'u1' } }, expected: { user: 'u1' } },
    { input: { metadata: { user_id: 'u'.repeat(65) } }, expected: { user: expect.stringMatching(/^[0-9a-f]{64}$/) } },
    { input: { tool_choice: { type: 'any' } }, expected: {} },
    { input: { cache_control: { type: 'ephemeral', ttl: '1h' } }, expected: { cache_control: { type: 'ephemeral' } } },
    { input: { tools: [{ ...tool, cache_control: { type: 'ephemeral' } }] }, expected: { cache_control: { type: 'ephemeral' } } },
    { input: { cache_control: null }, expected: {} },
    { input: { tools: [tool], tool_choice: { type: 'auto' } }, expected: { tool_choice: 'auto' } },
    { input: { tools: [tool], tool_choice: { type: 'any' } }, expected: { tool_choice: 'required' } },
    { input: { tools: [tool], tool_choice: { type: 'none' } }, expected: { tool_choice: 'none' } },
    {
      input: { tools: [tool], tool_choice: { type: 'tool', name: 'clock', disable_parallel_tool_use: true } },
      expected: { tool_choice: { type: 'function', function: { name: 'clock' } }, parallel_tool_calls: false },
    },
    {
      input: { tools: [{ ...tool, strict: true, input_schema: closed }] },
      expected: { tools: [{ type: 'function', function: { name: 'clock', parameters: closed, strict: true } }] },
    },
    {
      input: { tools: [{ ...tool, type: 'custom', description: 'd' }] },
      expected: { tools: [{ type: 'function', function: { name: 'clock', description: 'd', parameters: { type: 'object' } } }] },
    },
    {
      input: { output_config: { format: { type: 'json_schema', schema: closed } } },
      expected: { response_format: { type: 'json_schema', json_schema: { name: 'output', schema: closed, strict: true } } },
    },
    {
      input: { output_config: { format: { type: 'json_schema', schema: { ...closed, required: [] } } } },
      expected: { response_format: { type: 'json_schema', json_schema: { name: 'output', schema: { ...closed, required: [] } } } },
    },
  ])('translates $input', ({ input, expected }) => {
    const { request, warnings } = toChatRequest({ ...base, ...input })
    expect([Object.keys(request).includes('tools'), warnings]).toEqual([Object.hasOwn(input, 'tools'), []])
    expect(request).toMatchObject(expected)
    const others = Object.keys(request).filter((field) => !(field in expected) && field !== 'tools')
    expect(others).toEqual(['model', 'messages', 'max_completion_tokens'])
  })

  it('leaves out and reports a field without a counterpart, and leaves out one without effect', () => {
    const more = {
      context_management: { edits: [] },
      speed: 'fast',
      'x y': 1,
      service_tier: 'auto',
      container: null,
    }
    const { warnings } = toChatRequest({ ...base, ...more })
    expect(warnings).toEqual(['context_management_not_honored', 'speed_not_honored', 'unknown_field_not_honored'])
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`field_${i}`, 1]))
    expect(toChatRequest({ ...base, ...many }).warnings).toHaveLength(24)
  })

  it.each([
    { name: 'max_tokens', input: { max_tokens: undefined }, code: 'missing_required_parameter', param: 'max_tokens' },
    { name: 'max_tokens of zero', input: { max_tokens: 0 }, code: 'integer_below_min_value', param: 'max_tokens' },
    { name: 'no messages', input: { messages: [] }, code: 'invalid_request', param: 'messages' },
    {
      name: 'a role of another protocol',
      input: { messages: [{ role: 'tool', content: '' }] },
      code: 'unsupported_value',
      param: 'messages[0].role',
    },
    {
      name: 'an unknown block',
      input: { messages: [user([{ type: 'server_tool_use' }])] },
      code: 'unsupported_value',
      param: 'messages[0].content[0].type',
    },
    {
      name: 'a malformed block',
      input: { messages: [user('a'), assistant(null as never)] },
      code: 'missing_required_parameter',
      param: 'messages[1].content[0]',
    },
    {
      name: 'a PDF',
      input: { messages: [user([{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: '' } }])] },
      code: 'unsupported_value',
      param: 'messages[0].content[0].source.type',
    },
    {
      name: 'an image of a type that no vendor accepts',
      input: {
        messages: [
          user([{ type: 'tool_result', tool_use_id: 'c', content: [{ ...image, source: { ...image.source, media_type: 'image/tiff' } }] }]),
        ],
      },
      code: 'unsupported_value',
      param: 'messages[0].content[0].content[0].source.media_type',
    },
    {
      name: 'a vendor tool',
      input: { tools: [{ type: 'bash_20250124', name: 'bash' }] },
      code: 'unsupported_value',
      param: 'tools[0].type',
    },
    {
      name: 'a tool without a schema',
      input: { tools: [{ name: 'x' }] },
      code: 'missing_required_parameter',
      param: 'tools[0].input_schema',
    },
    {
      name: 'an unknown tool choice',
      input: { tools: [tool], tool_choice: { type: 'maybe' } },
      code: 'unsupported_value',
      param: 'tool_choice.type',
    },
    {
      name: 'a thinking budget above max_tokens',
      input: { max_tokens: 2_000, thinking: { type: 'enabled', budget_tokens: 2_000 } },
      code: 'integer_above_max_value',
      param: 'thinking.budget_tokens',
    },
    { name: 'a temperature of 1.5', input: { temperature: 1.5 }, code: 'invalid_request', param: 'temperature' },
    { name: 'a container', input: { container: 'c' }, code: 'unsupported_value', param: 'container' },
    { name: 'a thread', input: { thread: { type: 'create' } }, code: 'unsupported_value', param: 'thread' },
    { name: 'MCP servers', input: { mcp_servers: [{}] }, code: 'unsupported_value', param: 'mcp_servers' },
  ])('refuses $name', ({ input, code, param }) => {
    expect(() => toChatRequest({ ...base, ...input })).toThrow(expect.objectContaining({ code, param }))
  })
})

describe('Error about the translated request', () => {
  const { inOwnNames } = toChatRequest({
    ...base,
    system: 'Be brief.',
    messages: [user('Hi'), user([{ type: 'tool_result', tool_use_id: 'c', content: 'x' }, text('a'), image])],
    tools: [tool],
  })
  it.each([
    ['messages[0].content', 'system'],
    ['messages[1].content', 'messages[0].content'],
    ['messages[2].tool_call_id', 'messages[1].content[0].tool_use_id'],
    ['messages[3].content[1].image_url.url', 'messages[1].content[2]'],
    ['messages', 'messages'],
    ['tools[0].function.name', 'tools[0].name'],
    ['tools[0].function.parameters.type', 'tools[0].input_schema.type'],
    ['stop[1]', 'stop_sequences[1]'],
    ['max_completion_tokens', 'max_tokens'],
    ['response_format.json_schema.schema', 'output_config.format'],
    ['model', 'model'],
  ])('reports %s as %s', (param, own) => {
    const error = inOwnNames(new KisError('invalid_request', `'${param}' is wrong.`, { param }))
    expect([error.param, error.message]).toEqual([own, `'${own}' is wrong.`])
  })

  it("uses the caller's field names in warnings as well", () => {
    expect(['reasoning_effort_not_honored', 'seed_not_honored', 'answered_by:m'].map(ownWarning)).toEqual([
      'thinking_not_honored',
      'seed_not_honored',
      'answered_by:m',
    ])
  })
})
