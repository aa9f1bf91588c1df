import { describe, expect, it } from 'vitest'
import { dataUri, GIF } from '../../../../test/support/data/images.ts'
import type { KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import type { ChatCall, ProtocolObject } from '../../ports/engines.ts'
import { EngineErrors } from '../vendor/engine-errors.ts'
import { toCallOptions } from './call-options.ts'
import { ChunkWriter } from './chunks.ts'
import { toCompletion } from './completion.ts'
import { VENDORS, type VendorKind } from './vendors.ts'

const KINDS = Object.keys(VENDORS) as VendorKind[]
const MESSAGES = [{ role: 'user', content: 'Hello' }]
const TOOL = { type: 'function', function: { name: 'clock' } }
const FACTS = { id: 'chatcmpl-1', model: 'm', created: 1 }
const ERRORS = new EngineErrors('acme', [], systemClock)
const USAGE = {
  inputTokens: { total: 5, noCache: 5, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 2, text: 2, reasoning: undefined },
}

/** Returns the SDK's options for the request, and the warnings about fields that were left out. */
function translated(kind: VendorKind, request: ProtocolObject, engineModel = 'm', maxOutputTokens: number | null = null) {
  const warned: string[] = []
  const call: ChatCall = { engineModel, requestId: 'req_1', maxOutputTokens, warn: (field) => void warned.push(field) }
  const options = toCallOptions(VENDORS[kind], call, { model: 'm', messages: MESSAGES, ...request }, new AbortController().signal)
  return { options, warned }
}

function catchRefusal(kind: VendorKind, request: ProtocolObject): Pick<KisError, 'code' | 'param'> {
  try {
    translated(kind, request)
  } catch (error) {
    return { code: (error as KisError).code, param: (error as KisError).param }
  }
  throw new Error('it was not refused')
}

describe('Request translation for every vendor refuses', () => {
  const call = (fields: object) => ({ role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', ...fields }] })
  it.each<[string, ProtocolObject, string, string]>([
    ['several choices', { n: 2 }, 'unsupported_value', 'n'],
    ['audio', { modalities: ['text', 'audio'] }, 'unsupported_value', 'modalities'],
    ['the older functions', { functions: [{ name: 'f' }] }, 'unsupported_value', 'functions'],
    ['a tool that is no function', { tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'unsupported_value', 'tools[0].type'],
    [
      'a choice of an absent tool',
      { tools: [TOOL], tool_choice: { type: 'function', function: { name: 'calendar' } } },
      'invalid_request',
      'tool_choice.function.name',
    ],
    ['an unknown effort', { reasoning_effort: 'heroic' }, 'unsupported_value', 'reasoning_effort'],
    [
      'the result of an unknown tool call',
      { messages: [...MESSAGES, { role: 'tool', tool_call_id: 'c9', content: 'x' }] },
      'invalid_request',
      'messages[1].tool_call_id',
    ],
    [
      'a tool call of another type',
      { messages: [...MESSAGES, call({ type: 'custom', custom: { name: 'f', input: '' } })] },
      'unsupported_value',
      'messages[1].tool_calls[0].type',
    ],
    [
      'the deprecated function role',
      { messages: [{ role: 'function', name: 'f', content: 'x' }] },
      'unsupported_value',
      'messages[0].role',
    ],
    [
      'a data: URI without a type',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,x' } }] }] },
      'invalid_request',
      'messages[0].content[0].image_url.url',
    ],
  ])('%s', (_name, request, code, param) => {
    for (const kind of KINDS) expect(catchRefusal(kind, request)).toEqual({ code, param })
  })
})

describe('Request translation', () => {
  it('does not warn about bookkeeping fields, or values that request nothing', () => {
    const quiet = {
      ...{ user: 'u', metadata: { a: 'b' }, store: true, service_tier: 'auto', safety_identifier: 's', prompt_cache_key: 'k', n: 1 },
      ...{ logprobs: false, top_logprobs: 0, logit_bias: {}, modalities: ['text'], frequency_penalty: 0, presence_penalty: 0, top_p: 1 },
      ...{ seed: null, stop: null, tools: [], response_format: { type: 'text' }, parallel_tool_calls: true, stream: true },
    }
    for (const kind of KINDS) {
      const { options, warned } = translated(kind, quiet)
      expect(warned).toEqual([])
      expect(Object.keys(options).toSorted()).toEqual(
        ['abortSignal', 'headers', 'prompt', 'providerOptions', ...(kind === 'google' ? ['includeRawChunks'] : [])].toSorted(),
      )
    }
  })

  it('drops unsupported fields with a warning that names them: no field of a caller becomes an option of the vendor', () => {
    for (const kind of KINDS) {
      const { options, warned } = translated(kind, {
        logprobs: true,
        verbosity: 'low',
        speed: 'fast',
        anthropic: { speed: 'fast' },
        google: {},
      })
      expect(warned.toSorted()).toEqual(['anthropic', 'google', 'logprobs', 'speed', 'verbosity'])
      expect(JSON.stringify(options)).not.toContain('fast')
    }
  })

  it('leaves instructions in place, or moves them to the front for vendors that accept them only there', () => {
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'developer', content: 'b' },
      { role: 'user', content: 'c' },
    ]
    const translateRoles = (kind: VendorKind) => translated(kind, { messages }).options.prompt.map(({ role }) => role)
    for (const kind of ['anthropic', 'google', 'bedrock'] as const) expect(translateRoles(kind)).toEqual(['system', 'user', 'user'])
    for (const kind of ['mistral', 'cohere'] as const) expect(translateRoles(kind)).toEqual(['user', 'system', 'user'])
  })

  it('passes on the arguments that a model wrote even if they are not valid JSON', () => {
    const calls = [{ id: 'c1', type: 'function', function: { name: 'clock', arguments: '{"zone": ' } }]
    const { prompt } = translated('anthropic', {
      messages: [...MESSAGES, { role: 'assistant', content: 'Hm.', tool_calls: calls }],
    }).options
    expect(prompt[1]?.content).toEqual([
      { type: 'text', text: 'Hm.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'clock', input: { arguments: '{"zone": ' } },
    ])
  })

  it('maps tool call IDs to ones that the vendor accepts, the same for a call and its result', () => {
    const id = 'call|with:signs'
    const messages = [
      ...MESSAGES,
      { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: { name: 'clock', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content: 'noon' },
    ]
    for (const kind of KINDS) {
      const [, assistant, tool] = translated(kind, { messages }).options.prompt
      const [call, result] = [assistant?.content[0], tool?.content[0]] as { toolCallId: string }[]
      expect(call!.toolCallId).toMatch(VENDORS[kind].callIds.pattern)
      expect(result!.toolCallId).toBe(call!.toolCallId)
    }
  })

  it('reduces tools to the allowed ones, and accepts a missing schema for a tool without parameters', () => {
    const tools = [TOOL, { type: 'function', function: { name: 'weather', strict: true } }]
    const choice = {
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'weather' } }] },
    }
    const { options } = translated('google', { tools, tool_choice: choice })
    expect(options).toMatchObject({ toolChoice: { type: 'required' } })
    expect(options.tools).toEqual([{ type: 'function', name: 'weather', strict: true, inputSchema: { type: 'object', properties: {} } }])
  })

  it('requests JSON in the prompt, with a warning, where the vendor has no mode for it', () => {
    for (const kind of KINDS) {
      const { options, warned } = translated(kind, { response_format: { type: 'json_object' } })
      const mentionsJson = options.prompt.some(({ role, content }) => role === 'system' && String(content).includes('JSON'))
      expect([mentionsJson, warned, options.responseFormat?.type]).toEqual(
        ['anthropic', 'bedrock'].includes(kind) ? [true, ['response_format'], undefined] : [false, [], 'json'],
      )
    }
  })

  it('retains the tools that a conversation has used, even if none may be called', () => {
    const messages = [
      ...MESSAGES,
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'clock', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'noon' },
    ]
    const { options, warned } = translated('anthropic', { messages, tools: [TOOL], tool_choice: 'none' })
    expect([options.tools?.length, options.toolChoice, warned]).toEqual([1, undefined, ['tool_choice']])
    expect(translated('google', { messages, tools: [TOOL], tool_choice: 'none' }).options.toolChoice).toEqual({ type: 'none' })
  })

  it('disables parallel tool calls where the vendor can, and otherwise warns', () => {
    const request = { tools: [TOOL], parallel_tool_calls: false }
    expect(translated('anthropic', request).options.providerOptions).toEqual({ anthropic: { disableParallelToolUse: true } })
    expect(translated('mistral', request).options.providerOptions).toEqual({ mistral: { parallelToolCalls: false } })
    expect(translated('google', request).warned).toEqual(['parallel_tool_calls'])
  })

  it('reads an image from a data: URI, and takes its type from its bytes', () => {
    const content = [
      { type: 'image_url', image_url: { url: 'DATA:image/PNG;base64,AAAA' } },
      { type: 'image_url', image_url: { url: dataUri(GIF, 'image/jpeg') } },
    ]
    const [message] = translated('cohere', { messages: [{ role: 'user', content }] }).options.prompt
    expect(message?.content).toEqual([
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
      { type: 'file', mediaType: 'image/gif', data: { type: 'data', data: GIF.toString('base64') } },
    ])
  })
})

describe('reasoning_effort', () => {
  const budget = { anthropic: 'claude-haiku-4-5', bedrock: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0' } as const

  it.each(['claude-sonnet-4-6', 'claude-opus-4-8', 'claude-opus-5', 'claude-sonnet-5-5', 'gemini-3-pro'])(
    'becomes an effort for %s',
    (model) => {
      expect(translated('anthropic', { reasoning_effort: 'max', max_tokens: 900 }, model).options).toMatchObject({
        reasoning: 'xhigh',
        maxOutputTokens: 900,
      })
    },
  )

  it.each([
    'claude-opus-4-20250514',
    'claude-opus-4-1',
    'claude-sonnet-4-5-20250929',
    'claude-haiku-4-5@20251001',
    'claude-3-7-sonnet-latest',
  ])('becomes a token budget for %s', (model) => {
    const { options } = translated('anthropic', { reasoning_effort: 'high', max_completion_tokens: 10_000 }, model)
    expect(options.reasoning).toBeUndefined()
    expect(options.providerOptions).toEqual({ anthropic: { thinking: { type: 'enabled', budgetTokens: 6_000 } } })
  })

  it('never lets reasoning and reply together exceed the held limit', () => {
    for (const kind of ['anthropic', 'bedrock'] as const) {
      for (const effort of ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']) {
        for (const limit of [100, 1_024, 1_025, 5_000, 64_000]) {
          const { options, warned } = translated(kind, { reasoning_effort: effort, max_tokens: limit }, budget[kind])
          const text = JSON.stringify(options.providerOptions)
          const tokens = Number(/"budgetTokens":(\d+)/.exec(text)?.[1] ?? 0)
          // The SDK adds the budget to the limit.
          expect(options.maxOutputTokens! + tokens).toBe(limit)
          expect(warned).toEqual(tokens === 0 ? ['reasoning_effort'] : [])
          expect(tokens === 0 || (tokens >= 1_024 && tokens < limit)).toBe(true)
        }
      }
    }
  })

  it('is left out where Claude refuses to reason: a tool is forced, or the reasoning of this turn was not sent back', () => {
    const forced = { tools: [TOOL], tool_choice: 'required', reasoning_effort: 'high' }
    expect(translated('anthropic', forced, 'claude-opus-4-8')).toMatchObject({ warned: ['reasoning_effort'] })
    const assistant = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'clock', arguments: '{}' } }],
    }
    const toolTurn = (details: object) => [...MESSAGES, { ...assistant, ...details }, { role: 'tool', tool_call_id: 'c1', content: 'noon' }]
    const request = { tools: [TOOL], reasoning_effort: 'high', max_tokens: 9_000 }
    expect(translated('anthropic', { ...request, messages: toolTurn({}) }, budget.anthropic).warned).toEqual(['reasoning_effort'])
    const details = [{ type: 'reasoning.text', text: 'Hm.', signature: 'sig', format: 'anthropic', index: 0 }]
    const signed = translated('anthropic', { ...request, messages: toolTurn({ reasoning_details: details }) }, budget.anthropic)
    expect([signed.warned, signed.options.maxOutputTokens]).toEqual([[], 3_600])
  })

  it('stays below the effort at which Nova accepts no limit', () => {
    const { options, warned } = translated('bedrock', { reasoning_effort: 'high', max_tokens: 500 }, 'amazon.nova-2-lite-v1:0')
    expect([options.reasoning, options.maxOutputTokens, warned]).toEqual(['medium', 500, ['reasoning_effort']])
  })

  it('a reply is limited to what the hold covers, with or without it', () => {
    for (const kind of KINDS) expect(translated(kind, {}, 'm', 8_000).options.maxOutputTokens).toBe(8_000)
  })
})

describe('Response translation', () => {
  const finish = (unified: 'stop' | 'content-filter' | 'tool-calls' | 'other', raw = 'x') => ({ unified, raw }) as const
  const completed = (kind: VendorKind, fields: object) =>
    toCompletion(VENDORS[kind], { content: [], finishReason: finish('stop'), usage: USAGE, warnings: [], ...fields } as never, FACTS)
  const readMessage = (completion: ProtocolObject) => (completion.choices as [{ message: ProtocolObject; finish_reason: string }])[0]

  it('includes the reason of a refusal where the vendor gives one', () => {
    const providerMetadata = { anthropic: { stopDetails: { type: 'refusal', explanation: 'Not this.' } } }
    expect(readMessage(completed('anthropic', { finishReason: finish('content-filter', 'refusal'), providerMetadata }))).toMatchObject({
      message: { content: null, refusal: 'Not this.' },
      finish_reason: 'content_filter',
    })
  })

  it('ends with `tool_calls` whenever the model calls tools, whatever the vendor reports', () => {
    const content = [{ type: 'tool-call', toolCallId: 'c1', toolName: 'clock', input: '{}' }]
    for (const reason of [finish('stop'), finish('other'), finish('tool-calls')])
      expect(readMessage(completed('google', { content, finishReason: reason })).finish_reason).toBe('tool_calls')
  })

  it('has no usage where the vendor reports none, so that tokens are counted', () => {
    const none = { inputTokens: {}, outputTokens: {} }
    expect(completed('google', { usage: none })).not.toHaveProperty('usage')
  })

  it('separates tokens written to the cache from tokens read from it', () => {
    const inputTokens = { total: 20, noCache: 13, cacheRead: 4, cacheWrite: 3 }
    expect(completed('anthropic', { usage: { ...USAGE, inputTokens } }).usage).toMatchObject({
      prompt_tokens: 20,
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
    })
  })

  it('bills Cohere by its billed units', () => {
    const raw = { billed_units: { input_tokens: 3, output_tokens: 1 }, tokens: { input_tokens: 70, output_tokens: 1 } }
    expect(completed('cohere', { usage: { ...USAGE, raw } }).usage).toMatchObject({
      prompt_tokens: 3,
      completion_tokens: 1,
      total_tokens: 4,
    })
  })

  it('carries the signatures that the vendor requires, plain and streamed, and sends them back', () => {
    const signed = { anthropic: { signature: 'sig' } }
    const hidden = { anthropic: { redactedData: 'opaque' } }
    const details = [
      { type: 'reasoning.text', text: 'Hm, noon.', signature: 'sig', format: 'anthropic', index: 0 },
      { type: 'reasoning.encrypted', data: 'opaque', format: 'anthropic', index: 1 },
    ]
    const content = [
      { type: 'reasoning', text: 'Hm, noon.', providerMetadata: signed },
      { type: 'reasoning', text: '', providerMetadata: hidden },
      { type: 'text', text: 'Noon.' },
    ]
    const { message } = readMessage(completed('anthropic', { content }))
    expect(message).toMatchObject({ content: 'Noon.', reasoning_content: 'Hm, noon.', reasoning_details: details })

    const writer = new ChunkWriter(VENDORS.anthropic, FACTS, ERRORS)
    const chunks = [
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'Hm, ' },
      { type: 'reasoning-delta', id: '0', delta: 'noon.' },
      { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: signed },
      { type: 'reasoning-end', id: '0' },
      { type: 'reasoning-start', id: '1', providerMetadata: hidden },
      { type: 'reasoning-end', id: '1' },
    ].flatMap((part) => writer.write(part as never))
    const deltas = chunks.map(({ choices }) => (choices as [{ delta: ProtocolObject }])[0].delta)
    expect(deltas.map((delta) => delta.reasoning_content ?? '').join('')).toBe('Hm, noon.')
    expect(deltas.at(-1)).toEqual({ reasoning_details: details })

    const messages = [...MESSAGES, message, { role: 'user', content: 'Sure?' }]
    expect(translated('anthropic', { messages }).options.prompt[1]?.content).toEqual([
      { type: 'reasoning', text: 'Hm, noon.', providerOptions: signed },
      { type: 'reasoning', text: '', providerOptions: hidden },
      { type: 'text', text: 'Noon.' },
    ])
    // This vendor cannot use another vendor's signatures.
    expect(translated('bedrock', { messages }).options.prompt[1]?.content).toEqual([{ type: 'text', text: 'Noon.' }])
  })

  it('ends a reply that a vendor signs in thousands of pieces, because each piece is sent with all before it', () => {
    const writer = new ChunkWriter(VENDORS.anthropic, FACTS, ERRORS)
    const write = (id: number) =>
      writer.write({ type: 'reasoning-start', id: String(id), providerMetadata: { anthropic: { redactedData: 'x' } } })
    for (let id = 0; id < 500; id++) expect(write(id)).not.toEqual([])
    expect(() => Array.from({ length: 5_000 }, (_, id) => write(500 + id))).toThrow('too much signed reasoning')
  })

  it('carries the signature of Gemini on a tool call, and sends it back', () => {
    const content = [
      { type: 'tool-call', toolCallId: 'c1', toolName: 'clock', input: '{}', providerMetadata: { google: { thoughtSignature: 'sig' } } },
    ]
    const { message } = readMessage(completed('google', { content, finishReason: finish('tool-calls') }))
    expect(message.tool_calls).toMatchObject([{ id: 'c1', extra_content: { google: { thought_signature: 'sig' } } }])
    expect(translated('google', { messages: [...MESSAGES, message] }).options.prompt[1]?.content).toMatchObject([
      { type: 'tool-call', providerOptions: { google: { thoughtSignature: 'sig' } } },
    ])
  })
})
