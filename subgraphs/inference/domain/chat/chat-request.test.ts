import { describe, expect, it } from 'vitest'
import { dataUri, png } from '../../../../test/support/data/images.ts'
import { parts } from '../../test-support/parts.ts'
import { checkAgainstModel, checkChatRequest, requestFor } from './chat-request.ts'

const user = { role: 'user', content: 'Hello' }
const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
const tool = { type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }
const strict = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false }
const withMessage = (message: unknown) => ({ messages: [message] })
const withPart = (part: unknown) => withMessage({ role: 'user', content: [{ type: 'text', text: 'a' }, part] })

describe('Chat request refuses', () => {
  it.each<[string, unknown, string, string]>([
    ['null instead of an object', 'hello', 'invalid_type', 'request'],
    ['no model', { model: undefined }, 'missing_required_parameter', 'model'],
    ['an empty model', { model: '' }, 'missing_required_parameter', 'model'],
    ['a model of another type', { model: 5 }, 'invalid_type', 'model'],
    ['no messages', { messages: null }, 'missing_required_parameter', 'messages'],
    ['messages of another type', { messages: 'hi' }, 'invalid_type', 'messages'],
    ['an empty list of messages', { messages: [] }, 'invalid_request', 'messages'],
    ['2,049 messages', { messages: Array(2_049).fill(user) }, 'array_above_max_length', 'messages'],
    ['a message that is not an object', withMessage('hi'), 'invalid_type', 'messages[0]'],
    ['no role', withMessage({ content: 'a' }), 'missing_required_parameter', 'messages[0].role'],
    ['an unknown role', withMessage({ role: 'robot', content: 'a' }), 'unsupported_value', 'messages[0].role'],
    ['no content', withMessage({ role: 'user' }), 'missing_required_parameter', 'messages[0].content'],
    ['an empty assistant message', withMessage({ role: 'assistant', content: null }), 'missing_required_parameter', 'messages[0].content'],
    ['content of another type', withMessage({ role: 'user', content: 5 }), 'invalid_type', 'messages[0].content'],
    ['no content parts', withMessage({ role: 'user', content: [] }), 'invalid_request', 'messages[0].content'],
    [
      'a tool message without its call',
      withMessage({ role: 'tool', content: 'a' }),
      'missing_required_parameter',
      'messages[0].tool_call_id',
    ],
    [
      'a result of an unknown tool call',
      { messages: [user, { role: 'tool', tool_call_id: 'a', content: 'b' }] },
      'invalid_request',
      'messages[1].tool_call_id',
    ],
    [
      'a result before its tool call',
      {
        messages: [
          { role: 'tool', tool_call_id: 'a', content: 'b' },
          { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        ],
      },
      'invalid_request',
      'messages[0].tool_call_id',
    ],
    ['a part without a type', withPart({ text: 'a' }), 'missing_required_parameter', 'messages[0].content[1].type'],
    [
      'a part whose tokens cannot be counted',
      withPart({ type: 'input_audio', input_audio: {} }),
      'unsupported_value',
      'messages[0].content[1].type',
    ],
    ['a text part without text', withPart({ type: 'text' }), 'missing_required_parameter', 'messages[0].content[1].text'],
    ['an image without a URL', withPart({ type: 'image_url' }), 'missing_required_parameter', 'messages[0].content[1].image_url'],
    [
      'an image by file ID',
      withPart({ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }),
      'invalid_request',
      'messages[0].content[1].image_url.url',
    ],
    [
      'an unknown image detail',
      withPart({ type: 'image_url', image_url: { ...image.image_url, detail: 'huge' } }),
      'unsupported_value',
      'messages[0].content[1].image_url.detail',
    ],
    [
      'a tool call without a name',
      withMessage({ role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { arguments: '' } }] }),
      'missing_required_parameter',
      'messages[0].tool_calls[0].function.name',
    ],
    ['n of 0', { n: 0 }, 'integer_below_min_value', 'n'],
    ['n of 129', { n: 129 }, 'integer_above_max_value', 'n'],
    ['a fractional n', { n: 0.5 }, 'invalid_type', 'n'],
    ['a temperature above 2', { temperature: 9 }, 'invalid_request', 'temperature'],
    ['a temperature as text', { temperature: 'warm' }, 'invalid_type', 'temperature'],
    ['top_p above 1', { top_p: 1.1 }, 'invalid_request', 'top_p'],
    ['a frequency penalty below -2', { frequency_penalty: -2.1 }, 'invalid_request', 'frequency_penalty'],
    ['a presence penalty above 2', { presence_penalty: 2.1 }, 'invalid_request', 'presence_penalty'],
    ['top_logprobs without logprobs', { top_logprobs: 2 }, 'invalid_request', 'top_logprobs'],
    ['21 top_logprobs', { logprobs: true, top_logprobs: 21 }, 'integer_above_max_value', 'top_logprobs'],
    ['five stops', { stop: ['a', 'b', 'c', 'd', 'e'] }, 'array_above_max_length', 'stop'],
    ['no stops', { stop: [] }, 'invalid_request', 'stop'],
    ['a stop that is a number', { stop: 5 }, 'invalid_type', 'stop'],
    ['a stop among others that is a number', { stop: ['a', 5] }, 'invalid_type', 'stop[1]'],
    ['a bias above 100', { logit_bias: { 50256: 101 } }, 'invalid_request', 'logit_bias.50256'],
    ['a bias that is not an object', { logit_bias: 5 }, 'invalid_type', 'logit_bias'],
    [
      '17 pairs of metadata',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v'])) },
      'array_above_max_length',
      'metadata',
    ],
    ['a long metadata key', { metadata: { ['k'.repeat(65)]: 'v' } }, 'string_above_max_length', 'metadata'],
    ['a long metadata value', { metadata: { k: 'v'.repeat(513) } }, 'string_above_max_length', 'metadata.k'],
    ['a metadata value that is a number', { metadata: { k: 1 } }, 'invalid_type', 'metadata.k'],
    ['stream_options without stream', { stream_options: { include_usage: true } }, 'invalid_request', 'stream_options'],
    ['a stream outside the subscription', { stream: true }, 'invalid_request', 'stream'],
    ['max_tokens of 0', { max_tokens: 0 }, 'integer_below_min_value', 'max_tokens'],
    ['max_completion_tokens of 0', { max_completion_tokens: 0 }, 'integer_below_min_value', 'max_completion_tokens'],
    ['a tool without a type', { tools: [{ function: { name: 'a' } }] }, 'missing_required_parameter', 'tools[0].type'],
    ['a tool without a function', { tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].function'],
    [
      'a tool with a bad name',
      { tools: [{ type: 'function', function: { name: 'look up' } }] },
      'invalid_request',
      'tools[0].function.name',
    ],
    ['129 tools', { tools: Array(129).fill(tool) }, 'array_above_max_length', 'tools'],
    ['an unknown tool choice', { tool_choice: 'perhaps' }, 'unsupported_value', 'tool_choice'],
    ['a function without a name', { functions: [{}] }, 'missing_required_parameter', 'functions[0].name'],
    ['an unknown response format', { response_format: { type: 'xml' } }, 'unsupported_value', 'response_format.type'],
    [
      'a schema without a name',
      { response_format: { type: 'json_schema', json_schema: { schema: {} } } },
      'missing_required_parameter',
      'response_format.json_schema.name',
    ],
    [
      'a schema that is text',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: '{}' } } },
      'invalid_type',
      'response_format.json_schema.schema',
    ],
    [
      'a strict schema that leaves a property out of `required`',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: { ...strict, required: [] } } } },
      'invalid_request',
      'response_format.json_schema.schema.required',
    ],
    [
      'a strict schema that is not there',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true } } },
      'missing_required_parameter',
      'response_format.json_schema.schema',
    ],
    [
      'a strict flag as text',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', strict: 'yes', schema: {} } } },
      'invalid_type',
      'response_format.json_schema.strict',
    ],
    [
      'a strict tool that allows other arguments',
      { tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: { type: 'object', properties: {} } } }] },
      'invalid_request',
      'tools[0].function.parameters.additionalProperties',
    ],
    ['a JSON format that the messages do not mention', { response_format: { type: 'json_object' } }, 'invalid_request', 'messages'],
    ['max_tokens of -1', { max_tokens: -1 }, 'integer_below_min_value', 'max_tokens'],
    ['max_tokens of 1e308', { max_tokens: 1e308 }, 'integer_above_max_value', 'max_tokens'],
    ['max_tokens of 2^63 as text', { max_tokens: '9223372036854775808' }, 'invalid_type', 'max_tokens'],
    [
      'max_completion_tokens beyond every number',
      { max_completion_tokens: Number.POSITIVE_INFINITY },
      'invalid_type',
      'max_completion_tokens',
    ],
    ['a million choices', { n: 1_000_000 }, 'integer_above_max_value', 'n'],
    ['100,000 stops', { stop: Array(100_000).fill('a') }, 'array_above_max_length', 'stop'],
    ['a seed of 2^63', { seed: 2 ** 63 }, 'integer_above_max_value', 'seed'],
    ['a bias of an invalid token', { logit_bias: { hello: 1 } }, 'invalid_request', 'logit_bias'],
    ['a null bias', { logit_bias: { 1: null } }, 'invalid_type', 'logit_bias.1'],
    [
      '1,025 biases',
      { logit_bias: Object.fromEntries(Array.from({ length: 1_025 }, (_, i) => [i, 1])) },
      'array_above_max_length',
      'logit_bias',
    ],
    ['logprobs that are a number', { logprobs: 5 }, 'invalid_type', 'logprobs'],
    ['an overlong model name', { model: 'm'.repeat(301) }, 'string_above_max_length', 'model'],
    ['an overlong author name', withMessage({ ...user, name: 'n'.repeat(65) }), 'string_above_max_length', 'messages[0].name'],
    ['an image in a system message', withMessage({ role: 'system', content: [image] }), 'unsupported_value', 'messages[0].content[0].type'],
    ['stream options as text', { stream: true, stream_options: 'usage' }, 'invalid_request', 'stream'],
    [
      'a missing forced tool',
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'other' } } },
      'invalid_request',
      'tool_choice.function.name',
    ],
    ['a required tool call without tools', { tool_choice: 'required' }, 'invalid_request', 'tool_choice'],
    ['a malformed function choice', { functions: [{ name: 'f' }], function_call: 'maybe' }, 'unsupported_value', 'function_call'],
    [
      'an unknown effort where it is supported',
      { reasoning_effort_if_supported: 'x' },
      'unsupported_value',
      'reasoning_effort_if_supported',
    ],
    ['an unknown effort', { reasoning_effort: 'heroic' }, 'unsupported_value', 'reasoning_effort'],
    ['an unknown verbosity', { verbosity: 3 }, 'invalid_type', 'verbosity'],
    ['an empty prediction', { prediction: {} }, 'unsupported_value', 'prediction.type'],
    ['a long safety identifier', { safety_identifier: 'i'.repeat(65) }, 'string_above_max_length', 'safety_identifier'],
    ['audio output', { modalities: ['text', 'audio'] }, 'unsupported_value', 'modalities[1]'],
    ['a voice', { audio: { voice: 'alloy', format: 'mp3' } }, 'unsupported_value', 'audio'],
    ['web search', { web_search_options: {} }, 'unsupported_value', 'web_search_options'],
    ['a service tier without a price in the catalog', { service_tier: 'priority' }, 'unsupported_value', 'service_tier'],
    ['such a tier by its newer name', { service_tier: 'fast' }, 'unsupported_value', 'service_tier'],
  ])('%s', (_name, fields, code, param) => {
    const request = typeof fields === 'object' ? { model: 'chat', messages: [user], ...fields } : fields
    expect(() => checkChatRequest(request, false)).toThrow(expect.objectContaining({ code, param }))
  })
})

describe('Chat request accepts', () => {
  it.each<[string, object, boolean]>([
    [
      'nulls for omitted fields',
      { n: null, stop: null, temperature: null, tools: null, metadata: null, stream: null, stream_options: null },
      false,
    ],
    ['unknown fields', { vendor_extra: { anything: [1] }, messages: [{ ...user, odd: true }] }, false],
    ['every role', { messages: ['developer', 'system', 'user', 'assistant'].map((role) => ({ role, content: 'a' })) }, false],
    [
      'content parts, tool calls and their results',
      {
        messages: [
          {
            role: 'user',
            content: [{ type: 'text', text: '' }, image, { type: 'image_url', image_url: { url: dataUri(png()), detail: 'low' } }],
          },
          { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
          { role: 'tool', tool_call_id: 'a', content: 'b' },
          { role: 'assistant', function_call: { name: 'f', arguments: '' } },
          { role: 'function', name: 'f', content: null },
        ],
      },
      false,
    ],
    [
      'bounds',
      { n: 128, temperature: 2, top_p: 0, logprobs: true, top_logprobs: 20, stop: ['a', 'b', 'c', 'd'], seed: -1, logit_bias: { 5: -100 } },
      false,
    ],
    ['a schema', { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } } }, false],
    ['a strict schema', { response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: strict } } }, false],
    [
      'a JSON format that the messages mention',
      { messages: [{ ...user, content: [{ type: 'text', text: 'As JSON' }] }], response_format: { type: 'json_object' } },
      false,
    ],
    ['a tool without arguments', { tools: [{ type: 'function', function: { name: 'f', strict: true } }], tool_choice: 'required' }, false],
    [
      'an effort and a verbosity',
      { reasoning_effort: 'minimal', verbosity: 'low', modalities: ['text'], prediction: { type: 'content', content: 'a' } },
      false,
    ],
    [
      'unknown tool types',
      { tools: [tool, { type: 'custom', custom: {} }], tool_choice: { type: 'function', function: { name: 'look_up' } } },
      false,
    ],
    ['a stream with usage', { stream: true, stream_options: { include_usage: true } }, true],
  ])('%s', (_name, fields, isStream) => {
    const request = { model: 'chat', messages: [user], ...fields }
    expect(checkChatRequest(request, isStream)).toBe(request)
  })
})

it.each<[string, object, string | null]>([
  ['images', withPart(image), 'messages[0].content[1]'],
  ['tools', { tools: [tool] }, 'tools'],
  ['functions', { functions: [tool.function] }, 'functions'],
  ['an empty list of tools', { tools: [] }, null],
  ['a response schema', { response_format: { type: 'json_schema', json_schema: { name: 'a' } } }, 'response_format'],
])('a text-only model accepts a request with %s', (_name, fields, param) => {
  const { catalog } = parts().deps
  const request = checkChatRequest({ model: 'plain', messages: [user], ...fields }, false)
  const check = () => checkAgainstModel(request, catalog.find('plain')!)
  if (param) expect(check).toThrow(expect.objectContaining({ code: 'unsupported_value', param }))
  else expect(check).not.toThrow()
  expect(() => checkAgainstModel(request, catalog.find('chat')!)).not.toThrow()
})

it('prompt caching is requested for five minutes, only from models with a known cache-write price', () => {
  const { catalog } = parts().deps
  const chat = catalog.find('chat')!
  const request = checkChatRequest({ model: 'chat', messages: [user], cache_control: { type: 'ephemeral', ttl: '1h' } }, false)
  const warnings: string[] = []
  expect(requestFor(chat, request, (field) => warnings.push(field))).toEqual({ model: 'chat', messages: [user] })
  expect(warnings).toEqual(['cache_control'])
  const caching = { ...chat, supports: new Set([...chat.supports, 'prompt_cache' as const]) }
  expect(requestFor(caching, request, () => undefined)).toMatchObject({ cache_control: { type: 'ephemeral' } })
})

it.each<[string, string, object, object, string[]]>([
  ['a reasoning model', 'reasoner', { reasoning_effort_if_supported: 'low' }, { reasoning_effort: 'low' }, []],
  ['a model without reasoning', 'plain', { reasoning_effort_if_supported: 'low' }, {}, ['reasoning_effort']],
  [
    'a caller who sends both forms',
    'reasoner',
    { reasoning_effort: 'high', reasoning_effort_if_supported: 'low' },
    { reasoning_effort: 'high' },
    [],
  ],
  ['a caller who sends the vendor form', 'plain', { reasoning_effort: 'high' }, { reasoning_effort: 'high' }, []],
])('a supported effort is sent in the form for %s', (_name, id, fields, expected, heard) => {
  const catalog = `
engines: { near: { kind: embedded, badge: local } }
models:
  - { id: plain, engine: near, kind: chat, max_output_tokens: 1, price: { input: "1", output: "2" } }
  - { id: reasoner, engine: near, kind: chat, supports: [reasoning], max_output_tokens: 1, price: { input: "1", output: "2" } }
`
  const warnings: string[] = []
  const request = checkChatRequest({ model: id, messages: [user], ...fields }, false)
  const sent = requestFor(parts({ catalog }).deps.catalog.find(id)!, request, (field) => warnings.push(field))
  expect(sent).toEqual({ model: id, messages: [user], ...expected })
  expect(warnings).toEqual(heard)
})
