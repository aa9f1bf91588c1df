import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dataUri, png } from '../../../../test/support/data/images.ts'
import { parts } from '../../test-support/parts.ts'
import { parseCatalog } from '../catalog/catalog-file.ts'
import { buildCatalog } from '../catalog.ts'
import { type ChatRequest, checkChatRequest } from '../chat/chat-request.ts'
import { countChunk, countCompletionTokens, countInputTokens, fewestInputTokens, measureInput } from '../chat/count-chat-tokens.ts'
import { chatCeiling, chatTokensConsumed, embeddingCeiling } from './ceiling.ts'

const user = { role: 'user', content: 'Hello' }
const createRequest = (fields: object) => checkChatRequest({ model: 'chat', messages: [user], ...fields }, false)

describe('Tokens that a chat call takes from the rate limit', () => {
  // The model has at most 4,000 tokens of output; the input has 50.
  it.each<[string, object, number | null, number]>([
    ['are its input and the requested output', { max_tokens: 2_000 }, 100_000, 2_050],
    ["are at most the model's longest output", { max_tokens: 9_000 }, 100_000, 4_050],
    ['are the requested output even if the limit is smaller', { max_tokens: 2_000 }, 1_000, 2_050],
    ['count every choice', { max_tokens: 7, n: 3 }, 100_000, 71],
    ['are the usual length without a requested output', {}, 100_000, 1_074],
    ['are the usual length of every choice', { n: 2 }, 100_000, 2_098],
    ['are the rest of the limit if that is less', {}, 500, 500],
    ['are its input at least', {}, 40, 50],
    ['are the usual length without a limit', {}, null, 1_074],
  ])('%s', (_name, fields, perMinute, tokens) => {
    const model = { ...parts().deps.catalog.find('chat')!, maxOutputTokens: 4_000, contextWindow: 8_000 }
    expect(chatTokensConsumed(model, createRequest(fields), 50, perMinute)).toBe(tokens)
  })
})

describe('Ceiling of a chat call', () => {
  // The model has a window of 1,000 tokens, and at most 100 of output.
  it.each<[string, object, number]>([
    ["is the model's maximum output by default", {}, 100],
    ['follows max_tokens', { max_tokens: 7 }, 7],
    ['prefers max_completion_tokens to max_tokens', { max_tokens: 7, max_completion_tokens: 9 }, 9],
    ['is never above the maximum output of the model', { max_tokens: 5_000 }, 100],
    ['counts every choice', { max_tokens: 7, n: 3 }, 21],
  ])('%s', (_name, fields, outputTokens) => {
    const model = parts().deps.catalog.find('chat')!
    expect(chatCeiling(model, createRequest(fields), 100)).toEqual({
      inputTokens: 184,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      outputTokens,
      audioMilliseconds: 0,
      searchUnits: 0,
    })
  })

  const createModel = (fields: string) =>
    buildCatalog(parseCatalog(`engines: { e: { kind: embedded, badge: local } }\nmodels: [{ id: m, engine: e, ${fields} }]`, 'c', {})).find(
      'm',
    )!

  it('is the context window where only that is known', () => {
    const model = createModel('kind: chat, context_window: 500, price: { input: "1", output: "1" }')
    expect(chatCeiling(model, createRequest({}), 0).outputTokens).toBe(500)
  })

  it("has no margin where the model's own tokenizer counts", () => {
    const { catalog } = parts().deps
    expect(embeddingCeiling(catalog.find('embed')!, 100).inputTokens).toBe(100)
    expect(embeddingCeiling(catalog.find('embed-far')!, 100).inputTokens).toBe(184)
  })
})

describe('Input tokens', () => {
  it('count text, tool calls, tools and schema, and images by their number', () => {
    const size = (fields: object) => measureInput(createRequest(fields) as ChatRequest)
    const base = size({}).textTokens
    expect(base).toBe(6)
    const parts = [
      { type: 'text', text: 'Hello' },
      { type: 'image_url', image_url: { url: dataUri(png(2, 2, { padding: 9_999 })) } },
    ]
    expect(size({ messages: [{ role: 'user', content: parts }] })).toEqual({ textTokens: base, images: 1, lowImages: 0 })
    const low = { type: 'image_url', image_url: { url: 'https://images.test/a.png', detail: 'low' } }
    const three = size({ messages: [{ role: 'user', content: [...parts, low, low] }] })
    expect(three).toEqual({ textTokens: base, images: 3, lowImages: 2 })
    const [plain, tiled] = ['', 'low_image_tokens: 85, '].map((field) => {
      const model = `models: [{ id: m, engine: e, kind: chat, max_output_tokens: 1, image_tokens: 1445, ${field}price: { input: "1", output: "1" } }]`
      return buildCatalog(parseCatalog(`engines: { e: { kind: embedded, badge: local } }\n${model}`, 'c', {})).find('m')!
    })
    expect([countInputTokens(three, plain!), countInputTokens(three, tiled!)]).toEqual([base + 3 * 1_445, base + 1_445 + 2 * 85])
    for (const more of [
      { tools: [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }] },
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } } },
      {
        messages: [user, { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] }],
      },
    ]) {
      expect(size(more).textTokens).toBeGreaterThan(base + 10)
    }
  })

  it('are never fewer than the length of the text implies', () => {
    const piece = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('abcd ', ' ', '\n', 'ab 12 ', '    ', 'مرحبا', '你好'))
    const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))
    const content = fc.oneof(
      text,
      fc.array(
        text.map((value) => ({ type: 'text', text: value })),
        { minLength: 1 },
      ),
    )
    fc.assert(
      fc.property(fc.array(content, { minLength: 1, maxLength: 4 }), (contents) => {
        const request = createRequest({ messages: contents.map((value) => ({ role: 'user', content: value })) }) as ChatRequest
        expect(fewestInputTokens(request)).toBeLessThanOrEqual(measureInput(request).textTokens)
      }),
    )
  })

  it('refuse an endlessly nested schema', () => {
    let schema: object = {}
    for (let depth = 0; depth < 50_000; depth++) schema = { not: schema }
    expect(() => measureInput(createRequest({ tools: [{ type: 'function', function: { name: 'a', parameters: schema } }] }))).toThrow(
      'nested',
    )
  })
})

it.each<[string, object, number]>([
  ['a word', { content: 'Hello' }, 1],
  ['empty content', { role: 'assistant', content: '' }, 0],
  ['reasoning', { reasoning_content: 'so' }, 1],
  ['text in parts', { content: [{ type: 'text', text: 'Hello' }, null, 'no part'] }, 1],
  ['reasoning in parts', { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'so' }] }] }, 1],
  ['reasoning as one text in a part', { content: [{ type: 'thinking', thinking: 'so' }] }, 1],
  [
    'reasoning in details',
    {
      reasoning_details: [
        { type: 'reasoning.text', text: 'so' },
        { type: 'reasoning.summary', summary: 'a' },
      ],
    },
    1,
  ],
  ['reasoning in two fields, counted once', { reasoning: 'so', reasoning_content: 'so', reasoning_details: [{ text: 'so' }] }, 1],
  ['reasoning in details and blocks, counted once', { reasoning_details: [{ text: 'so' }], thinking_blocks: [{ thinking: 'so' }] }, 1],
  ['reasoning in blocks', { thinking_blocks: [{ type: 'thinking', thinking: 'so' }] }, 1],
  ['reasoning in the field of Copilot', { reasoning_text: 'so' }, 1],
  ['signed reasoning, which repeats what came before', { reasoning_details: [{ text: 'so', signature: 'c2ln' }, null] }, 0],
  ['reasoning that the vendor hides', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'c2VjcmV0' }] }, 0],
  ['a tool call with free text', { tool_calls: [{ index: 0, type: 'custom', custom: { name: 'f', input: 'x' } }] }, 2],
  ['a tool call', { tool_calls: [{ index: 0, function: { name: 'f', arguments: '' } }] }, 1],
  ['a whole sentence at once', { content: 'The green tea is brewed at eighty degrees.' }, 13],
])('counts the tokens of a chunk with %s', (_name, delta, tokens) => {
  const count = { tokens: 0, fewest: 0, units: 0 }
  countChunk({ choices: [{ index: 0, delta }] }, count)
  expect(count.tokens).toBe(tokens)
})

it('counts the tokens of a response whose content is in parts', () => {
  const content = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'Hello' }] },
    { type: 'text', text: 'Hello' },
  ]
  const whole = countCompletionTokens({ choices: [{ message: { content: 'Hello' } }] })
  expect(countCompletionTokens({ choices: [{ message: { content } }] })).toBe(2 * whole)
})

it('counts reasoning of a response once, by its longest field', () => {
  const whole = countCompletionTokens({ choices: [{ message: { content: 'Hello' } }] })
  const details = [{ type: 'reasoning.text', text: 'Hello', signature: 'c2ln' }]
  for (const message of [
    { reasoning: 'Hello', reasoning_details: details },
    { reasoning: 'H', reasoning_details: [{ text: 'Hello' }] },
  ])
    expect(countCompletionTokens({ choices: [{ message }] })).toBe(whole)
})

it('a response outside the protocol has no tokens', () => {
  for (const response of [{}, { choices: null }, { choices: [{}] }, { choices: [{ message: null }] }])
    expect(countCompletionTokens(response)).toBe(0)
})
