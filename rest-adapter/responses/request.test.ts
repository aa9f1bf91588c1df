import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { JsonObject } from '../http/route.ts'
import { toConversation } from './input.ts'
import { encodeReasoning } from './reasoning.ts'
import { translateRequest } from './request.ts'

const call = (call_id: string, name = 'f') => ({ type: 'function_call', call_id, name, arguments: '{}' })
const chatCall = (id: string, name = 'f') => ({ id, type: 'function', function: { name, arguments: '{}' } })
const said = (text: string) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
})
const detail = { type: 'reasoning.text', text: 'Hm.', signature: 's', format: 'anthropic', index: 0 }

describe('Responses API input as messages', () => {
  for (const { name, instructions, input, messages } of [
    { name: 'a text becomes a user message', input: 'Hi', messages: [{ role: 'user', content: 'Hi' }] },
    {
      name: 'instructions come first',
      instructions: 'Be short.',
      input: [
        { role: 'developer', content: 'Really.' },
        { role: 'user', content: 'Hi' },
      ],
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'developer', content: 'Really.' },
        { role: 'user', content: 'Hi' },
      ],
    },
    {
      name: 'one text part becomes a string, several become parts',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'See' },
            { type: 'input_image', image_url: 'https://x/y.png', detail: 'low' },
          ],
        },
        { role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AA==' }] },
      ],
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'image_url', image_url: { url: 'https://x/y.png', detail: 'low' } },
          ],
        },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] },
      ],
    },
    {
      name: 'the output of one turn becomes one message, followed by tool outputs',
      input: [
        { role: 'user', content: 'Hi' },
        said('One moment.'),
        call('a'),
        call('b', 'g'),
        { type: 'function_call_output', call_id: 'a', output: '1' },
        {
          type: 'function_call_output',
          call_id: 'b',
          output: [
            { type: 'input_text', text: '2' },
            { type: 'input_text', text: '3' },
          ],
        },
        said('Done.'),
      ],
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'One moment.', tool_calls: [chatCall('a'), chatCall('b', 'g')] },
        { role: 'tool', content: '1', tool_call_id: 'a' },
        {
          role: 'tool',
          content: [
            { type: 'text', text: '2' },
            { type: 'text', text: '3' },
          ],
          tool_call_id: 'b',
        },
        { role: 'assistant', content: 'Done.' },
      ],
    },
    {
      name: 'tool calls without text, in any order with it, and refusals',
      input: [
        call('a'),
        said('Wait.'),
        call('b'),
        { role: 'user', content: 'So?' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      ],
      messages: [
        { role: 'assistant', content: 'Wait.', tool_calls: [chatCall('a'), chatCall('b')] },
        { role: 'user', content: 'So?' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      ],
    },
    {
      name: 'reasoning goes with the next item, and its signature with its tool calls',
      input: [
        {
          type: 'reasoning',
          id: 'rs_1',
          summary: [],
          content: [{ type: 'reasoning_text', text: 'Hm.' }],
          encrypted_content: encodeReasoning({ details: [detail], calls: { a: { google: 1 } } }),
        },
        call('a'),
        { role: 'user', content: 'So?' },
        {
          type: 'reasoning',
          id: 'rs_2',
          summary: [{ type: 'summary_text', text: 'Brief.' }],
          encrypted_content: 'gAAAA-of-another-service',
        },
        said('Yes.'),
      ],
      messages: [
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'Hm.',
          reasoning_details: [detail],
          tool_calls: [{ ...chatCall('a'), extra_content: { google: 1 } }],
        },
        { role: 'user', content: 'So?' },
        { role: 'assistant', content: 'Yes.', reasoning_content: 'Brief.' },
      ],
    },
    {
      name: 'reasoning without a result is left out',
      input: [
        { type: 'reasoning', id: 'rs_1', summary: [] },
        { role: 'user', content: 'So?' },
      ],
      messages: [{ role: 'user', content: 'So?' }],
    },
  ]) {
    it(name, () => {
      const conversation = toConversation(instructions, input)
      expect(conversation.messages).toEqual(messages)
      expect(conversation.origins.length).toBe(messages.length)
    })
  }

  it('remembers where each message, part and tool call comes from', () => {
    const { origins } = toConversation('Be short.', [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
      { type: 'reasoning', id: 'rs_1', summary: [] },
      said('c'),
      call('a'),
      { type: 'function_call_output', call_id: 'a', output: '1' },
    ])
    expect(origins).toEqual([
      { path: 'instructions', content: 'instructions', parts: ['instructions'], calls: [] },
      { path: 'input[0]', content: 'input[0].content[0]', parts: ['input[0].content[0]', 'input[0].content[1]'], calls: [] },
      { path: 'input[1]', content: 'input[2].content[0]', parts: ['input[2].content[0]'], calls: ['input[3]'] },
      { path: 'input[4]', content: 'input[4].output', parts: ['input[4].output'], calls: [] },
    ])
  })

  it('any input is translated, or refused with a path in the input', () => {
    const word = fc.constantFrom('message', 'function_call', 'reasoning', 'user', 'assistant', 'constructor', '__proto__', 'x')
    const part = fc.record(
      {
        type: fc.constantFrom('input_text', 'input_image', 'refusal', 'toString'),
        text: fc.jsonValue(),
        image_url: fc.jsonValue(),
        refusal: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    const content = fc.oneof(fc.jsonValue(), fc.array(part))
    const item = fc.record(
      {
        type: word,
        role: word,
        content,
        output: content,
        summary: content,
        call_id: fc.jsonValue(),
        name: fc.string(),
        arguments: fc.string(),
        encrypted_content: fc.oneof(
          fc.string().map((text) => `kis1.${text}`),
          fc.jsonValue(),
        ),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.jsonValue(), fc.oneof(fc.jsonValue(), fc.array(item)), (instructions, input) => {
        try {
          const { messages, origins } = toConversation(instructions, input)
          expect(origins.length).toBe(messages.length)
        } catch (error) {
          expect(error).toBeInstanceOf(KisError)
          expect((error as KisError).param).toMatch(/^(?:instructions|input)/)
          expect((error as KisError).message).not.toMatch(/\[object|native code|undefined/)
        }
      }),
    )
  })
})

describe('Other Responses API fields', () => {
  const tool = { type: 'function', name: 'f', description: 'Does.', parameters: { type: 'object' }, strict: true }
  const chatTool = { type: 'function', function: { name: 'f', description: 'Does.', parameters: { type: 'object' }, strict: true } }
  for (const { name, fields, expected, warnings = [] } of [
    {
      name: 'are empty for an empty request',
      fields: { temperature: null, tools: null, text: null, reasoning: null, tool_choice: null },
      expected: {},
    },
    {
      name: 'are renamed to those of the chat protocol',
      fields: {
        max_output_tokens: 9,
        temperature: 1,
        top_p: 0.5,
        user: 'u',
        safety_identifier: 's',
        prompt_cache_key: 'k',
        service_tier: 'flex',
      },
      expected: {
        max_completion_tokens: 9,
        temperature: 1,
        top_p: 0.5,
        user: 'u',
        safety_identifier: 's',
        prompt_cache_key: 'k',
        service_tier: 'flex',
      },
    },
    {
      name: 'that are only echoed are not sent',
      fields: { metadata: { a: 'b' }, store: true, stream: true, max_tool_calls: 3, include: [] },
      expected: {},
    },
    {
      name: 'of tools',
      fields: {
        tools: [tool, { type: 'function', name: 'g', strict: null }],
        tool_choice: { type: 'function', name: 'f' },
        parallel_tool_calls: false,
      },
      expected: {
        tools: [chatTool, { type: 'function', function: { name: 'g' } }],
        tool_choice: { type: 'function', function: { name: 'f' } },
        parallel_tool_calls: false,
      },
    },
    {
      name: 'of a choice among allowed tools',
      fields: { tools: [tool], tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'f' }] } },
      expected: {
        tools: [chatTool],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] } },
      },
    },
    { name: 'of missing tools', fields: { tools: [], tool_choice: 'auto', parallel_tool_calls: true }, expected: {} },
    { name: 'of a required call of missing tools', fields: { tool_choice: 'required' }, expected: { tool_choice: 'required' } },
    { name: 'of plain text', fields: { text: { format: { type: 'text' }, verbosity: 'low' } }, expected: { verbosity: 'low' } },
    { name: 'of JSON', fields: { text: { format: { type: 'json_object' } } }, expected: { response_format: { type: 'json_object' } } },
    {
      name: 'of a schema',
      fields: { text: { format: { type: 'json_schema', name: 'n', schema: {}, strict: true, description: 'd' } } },
      expected: { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {}, strict: true, description: 'd' } } },
    },
    {
      name: 'of reasoning',
      fields: { reasoning: { effort: 'high', summary: 'auto', mode: 'standard' } },
      expected: { reasoning_effort: 'high' },
    },
    {
      name: 'of included log probabilities',
      fields: { include: ['message.output_text.logprobs'], top_logprobs: 0 },
      expected: { logprobs: true, top_logprobs: 0 },
    },
    { name: 'of requested alternatives', fields: { top_logprobs: 2 }, expected: { logprobs: true, top_logprobs: 2 } },
    {
      name: 'without effect are reported in warnings, by names that fit a header',
      fields: { truncation: 'auto', seed: 1, 'x\r\ny': 1, 'z z': 2, absent: null },
      expected: {},
      warnings: ['seed_not_honored', 'unknown_field_not_honored', 'truncation_not_honored'],
    },
  ] as readonly {
    readonly name: string
    readonly fields: JsonObject
    readonly expected: JsonObject
    readonly warnings?: readonly string[]
  }[]) {
    it(name, () => {
      const translated = translateRequest({ model: 'm', input: 'Hi', ...fields })
      expect(translated.request).toEqual({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...expected })
      expect(translated.warnings).toEqual(warnings)
    })
  }

  it('limit the number of warnings', () => {
    const fields = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`field_${String.fromCharCode(97 + (index % 26))}${'a'.repeat(index)}`, 1]),
    )
    expect(translateRequest({ model: 'm', input: 'Hi', ...fields }).warnings.length).toBe(16)
  })

  for (const { fields, param, says } of [
    { fields: { previous_response_id: 'resp_1' }, param: 'previous_response_id', says: 'whole conversation as `input`' },
    { fields: { conversation: {} }, param: 'conversation', says: 'as `input`' },
    { fields: { prompt: { id: 'p' } }, param: 'prompt', says: '`instructions`' },
    { fields: { background: true }, param: 'background', says: '`stream`' },
    { fields: { context_management: [] }, param: 'context_management', says: 'not truncated' },
    { fields: { moderation: { model: 'm' } }, param: 'moderation', says: 'Nothing is moderated' },
    { fields: { reasoning: { mode: 'pro' } }, param: 'reasoning.mode', says: 'standard' },
    ...['web_search', 'file_search', 'computer_use_preview', 'code_interpreter', 'mcp', 'image_generation', 'custom', 'constructor'].map(
      (type) => ({
        fields: { tools: [{ type }] },
        param: 'tools[0].type',
        says: `'${type}' are not offered, only functions.`,
      }),
    ),
    { fields: { tool_choice: { type: 'mcp', server_label: 's' } }, param: 'tool_choice.type', says: 'only functions' },
    {
      fields: { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'mcp' }] } },
      param: 'tool_choice.tools[0].type',
      says: 'only functions',
    },
  ]) {
    it(`refuse ${JSON.stringify(fields)}, and say what to do instead`, () => {
      const thrown = (() => {
        try {
          return translateRequest({ model: 'm', input: 'Hi', ...fields })
        } catch (error) {
          return error
        }
      })()
      expect(thrown).toMatchObject({ code: 'unsupported_value', param, message: expect.stringContaining(says) })
    })
  }
})
