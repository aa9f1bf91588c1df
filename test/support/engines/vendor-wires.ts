import type { ServerResponse } from 'node:http'
import { encodeEventStreamFrame, encodeEventStreamMessage } from '@copilotkit/aimock'
import type { Answering } from './vendor-cloud.ts'

/** A model's answer in a form that does not depend on the vendor. */
export interface Said {
  /** The pieces of the streamed text. */
  readonly text?: readonly string[]
  readonly reasoning?: { readonly text: string; readonly signature: string }
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: readonly string[] }[]
  readonly ends?: 'stop' | 'length' | 'tools' | 'filter'
  /** `input` includes `cached`, and `output` includes `reasoning`. */
  readonly usage?: { readonly input: number; readonly cached: number; readonly output: number; readonly reasoning: number }
}

/** The protocol of one vendor, according to its documentation. */
export interface Wire {
  /** Returns a complete answer. */
  completion(said: Said): unknown
  /** Returns the events of a streamed answer. */
  events(said: Said): readonly Buffer[]
  /** Returns an error answer. */
  error(status: number, message: string): { readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  /** Returns the error code that the service should derive. */
  toCode(status: number): string | null
  /** An error inside a stream. Null if the vendor documents none. */
  readonly brokenEvent: Buffer | null
  readonly contentType: string
}

export const DEFAULT_USAGE = { input: 20, cached: 4, output: 9, reasoning: 0 }

/** Answers as the request asks, in one piece or as a stream. */
export function saying(wire: Wire, said: Said): Answering {
  return (response, { path, body }) => {
    if (isStream(path, body)) {
      response.writeHead(200, { 'content-type': wire.contentType })
      for (const event of wire.events(said)) response.write(event)
      response.end()
    } else {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wire.completion(said)))
    }
  }
}

export function failing(wire: Wire, status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answering {
  return (response) => {
    const { body, headers: own } = wire.error(status, message)
    response.writeHead(status, { 'content-type': 'application/json', ...own, ...headers }).end(JSON.stringify(body))
  }
}

/** Sends the first events of a stream, and passes the connection to `then`. */
export function beginning(wire: Wire, said: Said, events: number, then: (response: ServerResponse) => void): Answering {
  return (response) => {
    response.writeHead(200, { 'content-type': wire.contentType })
    for (const event of wire.events(said).slice(0, events)) response.write(event)
    then(response)
  }
}

function isStream(path: string, body: { readonly stream?: unknown }): boolean {
  return body.stream === true || /:streamGenerateContent|\/converse-stream/.test(path)
}

const sse = (data: unknown, name?: string) => Buffer.from(`${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(data)}\n\n`)
const parsed = (pieces: readonly string[]) => JSON.parse(pieces.join('') || '{}')

const OPENAI_ENDS = { stop: 'stop', length: 'length', tools: 'tool_calls', filter: 'content_filter' }
const openAiUsage = ({ usage = DEFAULT_USAGE }: Said) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: { cached_tokens: usage.cached },
  completion_tokens_details: { reasoning_tokens: usage.reasoning },
})
const openAiCall = ({ id, name, arguments: pieces }: NonNullable<Said['calls']>[number]) => ({
  id,
  type: 'function',
  function: { name, arguments: pieces.join('') },
})
const openAiError = (message: string, code: string | null) => ({ error: { message, type: 'invalid_request_error', param: null, code } })

/** The protocol of OpenAI and Azure. */
export const OPENAI_WIRE: Wire = {
  contentType: 'text/event-stream',
  completion: (said) => ({
    id: 'answer-1',
    object: 'chat.completion',
    created: 1_750_000_000,
    model: 'model-of-the-vendor',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: said.text?.join('') ?? null,
          refusal: null,
          ...(said.calls && { tool_calls: said.calls.map(openAiCall) }),
        },
        logprobs: null,
        finish_reason: OPENAI_ENDS[said.ends ?? 'stop'],
      },
    ],
    usage: openAiUsage(said),
  }),
  events(said) {
    const head = { id: 'answer-1', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'model-of-the-vendor' }
    const delta = (content: object, finish: string | null = null) =>
      sse({ ...head, choices: [{ index: 0, delta: content, logprobs: null, finish_reason: finish }] })
    return [
      delta({ role: 'assistant', content: '', refusal: null }),
      ...(said.text ?? []).map((content) => delta({ content })),
      ...(said.calls ?? []).flatMap(({ id, name, arguments: pieces }, index) => [
        delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
        ...pieces.map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ]),
      delta({}, OPENAI_ENDS[said.ends ?? 'stop']),
      sse({ ...head, choices: [], usage: openAiUsage(said) }),
      Buffer.from('data: [DONE]\n\n'),
    ]
  },
  error: (status, message) => ({ body: openAiError(message, `code_${status}`) }),
  toCode: (status) => `code_${status}`,
  brokenEvent: sse(openAiError('overloaded', 'server_is_overloaded')),
}

const ANTHROPIC_ENDS = { stop: 'end_turn', length: 'max_tokens', tools: 'tool_use', filter: 'refusal' }
const ANTHROPIC_ERRORS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
}
const anthropicUsage = ({ usage = DEFAULT_USAGE }: Said) => ({
  input_tokens: usage.input - usage.cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: usage.cached,
  output_tokens: usage.output,
  output_tokens_details: { thinking_tokens: usage.reasoning },
})
const anthropicError = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'req_vendor' })
const stopDetails = ({ ends }: Said) =>
  ends === 'filter' ? { stop_details: { type: 'refusal', category: 'cyber', explanation: 'This is not something to help with.' } } : {}

export const ANTHROPIC_WIRE: Wire = {
  contentType: 'text/event-stream',
  completion: (said) => ({
    id: 'answer-1',
    type: 'message',
    role: 'assistant',
    model: 'model-of-the-vendor',
    content: [
      ...(said.reasoning ? [{ type: 'thinking', thinking: said.reasoning.text, signature: said.reasoning.signature }] : []),
      ...(said.text ? [{ type: 'text', text: said.text.join('') }] : []),
      ...(said.calls ?? []).map(({ id, name, arguments: pieces }) => ({ type: 'tool_use', id, name, input: parsed(pieces) })),
    ],
    stop_reason: ANTHROPIC_ENDS[said.ends ?? 'stop'],
    stop_sequence: null,
    ...stopDetails(said),
    usage: anthropicUsage(said),
  }),
  events(said) {
    const event = (type: string, rest: object) => sse({ type, ...rest }, type)
    const { output_tokens: _, ...inputUsage } = anthropicUsage(said)
    const blocks: { readonly start: object; readonly deltas: readonly object[] }[] = []
    if (said.reasoning)
      blocks.push({
        start: { type: 'thinking', thinking: '', signature: '' },
        deltas: [
          { type: 'thinking_delta', thinking: said.reasoning.text },
          { type: 'signature_delta', signature: said.reasoning.signature },
        ],
      })
    if (said.text) blocks.push({ start: { type: 'text', text: '' }, deltas: said.text.map((text) => ({ type: 'text_delta', text })) })
    for (const { id, name, arguments: pieces } of said.calls ?? [])
      blocks.push({
        start: { type: 'tool_use', id, name, input: {} },
        deltas: pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      })
    const message = { id: 'answer-1', type: 'message', role: 'assistant', model: 'model-of-the-vendor', content: [], stop_reason: null }
    return [
      event('message_start', { message: { ...message, stop_sequence: null, usage: { ...inputUsage, output_tokens: 1 } } }),
      event('ping', {}),
      ...blocks.flatMap(({ start, deltas }, index) => [
        event('content_block_start', { index, content_block: start }),
        ...deltas.map((delta) => event('content_block_delta', { index, delta })),
        event('content_block_stop', { index }),
      ]),
      event('message_delta', {
        delta: { stop_reason: ANTHROPIC_ENDS[said.ends ?? 'stop'], stop_sequence: null, ...stopDetails(said) },
        usage: { output_tokens: anthropicUsage(said).output_tokens, output_tokens_details: anthropicUsage(said).output_tokens_details },
      }),
      event('message_stop', {}),
    ]
  },
  error: (status, message) => ({ body: anthropicError(ANTHROPIC_ERRORS[status] ?? 'api_error', message) }),
  toCode: (status) => ANTHROPIC_ERRORS[status] ?? 'api_error',
  brokenEvent: sse(anthropicError('overloaded_error', 'Overloaded'), 'error'),
}

const GOOGLE_ENDS = { stop: 'STOP', length: 'MAX_TOKENS', tools: 'STOP', filter: 'SAFETY' }
const GOOGLE_STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}
const googleUsage = ({ usage = DEFAULT_USAGE }: Said) => ({
  promptTokenCount: usage.input,
  cachedContentTokenCount: usage.cached,
  candidatesTokenCount: usage.output - usage.reasoning,
  thoughtsTokenCount: usage.reasoning,
  totalTokenCount: usage.input + usage.output,
})
const googleResponse = (parts: readonly object[], rest: object = {}, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...rest }],
  modelVersion: 'model-of-the-vendor',
  responseId: 'answer-1',
  ...more,
})
const googleCalls = (said: Said) =>
  (said.calls ?? []).map(({ id, name, arguments: pieces }, index) => ({
    functionCall: { id, name, args: parsed(pieces) },
    ...(index === 0 && { thoughtSignature: 'signed-by-google' }),
  }))
const googleError = (status: number, message: string) => ({
  error: { code: status, message, status: GOOGLE_STATUSES[status] ?? 'UNKNOWN' },
})

export const GOOGLE_WIRE: Wire = {
  contentType: 'text/event-stream',
  completion: (said) =>
    googleResponse(
      [
        ...(said.reasoning ? [{ text: said.reasoning.text, thought: true }] : []),
        ...(said.text ? [{ text: said.text.join('') }] : []),
        ...googleCalls(said),
      ],
      { finishReason: GOOGLE_ENDS[said.ends ?? 'stop'] },
      { usageMetadata: googleUsage(said) },
    ),
  events: (said) => [
    ...(said.reasoning ? [sse(googleResponse([{ text: said.reasoning.text, thought: true }]))] : []),
    ...(said.text ?? []).map((text) => sse(googleResponse([{ text }]))),
    ...googleCalls(said).map((call) => sse(googleResponse([call]))),
    sse(googleResponse([{ text: '' }], { finishReason: GOOGLE_ENDS[said.ends ?? 'stop'] }, { usageMetadata: googleUsage(said) })),
  ],
  error: (status, message) => ({ body: googleError(status, message) }),
  toCode: (status) => GOOGLE_STATUSES[status] ?? 'UNKNOWN',
  brokenEvent: sse(googleError(503, 'The model is overloaded.')),
}

const BEDROCK_ENDS = { stop: 'end_turn', length: 'max_tokens', tools: 'tool_use', filter: 'guardrail_intervened' }
const BEDROCK_ERRORS: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  401: 'UnrecognizedClientException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
}
const bedrockUsage = ({ usage = DEFAULT_USAGE }: Said) => ({
  inputTokens: usage.input - usage.cached,
  cacheReadInputTokens: usage.cached,
  cacheWriteInputTokens: 0,
  outputTokens: usage.output,
  totalTokens: usage.input + usage.output,
})

export const BEDROCK_WIRE: Wire = {
  contentType: 'application/vnd.amazon.eventstream',
  completion: (said) => ({
    output: {
      message: {
        role: 'assistant',
        content: [
          ...(said.reasoning ? [{ reasoningContent: { reasoningText: said.reasoning } }] : []),
          ...(said.text ? [{ text: said.text.join('') }] : []),
          ...(said.calls ?? []).map(({ id, name, arguments: pieces }) => ({ toolUse: { toolUseId: id, name, input: parsed(pieces) } })),
        ],
      },
    },
    stopReason: BEDROCK_ENDS[said.ends ?? 'stop'],
    usage: bedrockUsage(said),
    metrics: { latencyMs: 10 },
  }),
  events(said) {
    const blocks: { readonly start?: object; readonly deltas: readonly object[] }[] = []
    if (said.reasoning)
      blocks.push({
        deltas: [{ reasoningContent: { text: said.reasoning.text } }, { reasoningContent: { signature: said.reasoning.signature } }],
      })
    if (said.text) blocks.push({ deltas: said.text.map((text) => ({ text })) })
    for (const { id, name, arguments: pieces } of said.calls ?? [])
      blocks.push({ start: { toolUse: { toolUseId: id, name } }, deltas: pieces.map((input) => ({ toolUse: { input } })) })
    return [
      encodeEventStreamMessage('messageStart', { role: 'assistant' }),
      ...blocks.flatMap(({ start, deltas }, contentBlockIndex) => [
        ...(start ? [encodeEventStreamMessage('contentBlockStart', { contentBlockIndex, start })] : []),
        ...deltas.map((delta) => encodeEventStreamMessage('contentBlockDelta', { contentBlockIndex, delta })),
        encodeEventStreamMessage('contentBlockStop', { contentBlockIndex }),
      ]),
      encodeEventStreamMessage('messageStop', { stopReason: BEDROCK_ENDS[said.ends ?? 'stop'] }),
      encodeEventStreamMessage('metadata', { usage: bedrockUsage(said), metrics: { latencyMs: 10 } }),
    ]
  },
  error: (status, message) => ({
    body: { message },
    headers: { 'x-amzn-errortype': `${BEDROCK_ERRORS[status] ?? 'InternalServerException'}:http://internal.amazon.com/coral/` },
  }),
  toCode: (status) => BEDROCK_ERRORS[status] ?? 'InternalServerException',
  brokenEvent: encodeEventStreamFrame(
    { ':message-type': 'exception', ':exception-type': 'throttlingException', ':content-type': 'application/json' },
    Buffer.from(JSON.stringify({ message: 'Too many tokens, please wait.' })),
  ),
}

const mistralUsage = ({ usage = DEFAULT_USAGE }: Said) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  num_cached_tokens: usage.cached,
})
const mistralContent = (said: Said) =>
  said.reasoning
    ? [
        { type: 'thinking', thinking: [{ type: 'text', text: said.reasoning.text }] },
        { type: 'text', text: said.text?.join('') ?? '' },
      ]
    : (said.text?.join('') ?? '')
const mistralError = (message: string, code: string) => ({ object: 'error', message, type: 'error_of_mistral', param: null, code })
const MISTRAL_ENDS = { ...OPENAI_ENDS, filter: 'error' }

export const MISTRAL_WIRE: Wire = {
  contentType: 'text/event-stream',
  completion: (said) => ({
    id: 'answer-1',
    object: 'chat.completion',
    created: 1_750_000_000,
    model: 'model-of-the-vendor',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: mistralContent(said),
          tool_calls:
            said.calls?.map(({ id, name, arguments: pieces }) => ({ id, function: { name, arguments: pieces.join('') } })) ?? null,
        },
        finish_reason: MISTRAL_ENDS[said.ends ?? 'stop'],
      },
    ],
    usage: mistralUsage(said),
  }),
  events(said) {
    const head = { id: 'answer-1', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'model-of-the-vendor' }
    const delta = (content: object, finish: string | null = null, rest: object = {}) =>
      sse({ ...head, choices: [{ index: 0, delta: content, finish_reason: finish }], ...rest })
    return [
      delta({ role: 'assistant', content: '' }),
      ...(said.reasoning ? [delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: said.reasoning.text }] }] })] : []),
      ...(said.text ?? []).map((content) => delta({ content })),
      // Mistral sends each call in one piece.
      ...(said.calls ?? []).map(({ id, name, arguments: pieces }, index) =>
        delta({ content: '', tool_calls: [{ index, id, function: { name, arguments: pieces.join('') } }] }),
      ),
      delta({ content: '' }, MISTRAL_ENDS[said.ends ?? 'stop'], { usage: mistralUsage(said) }),
      Buffer.from('data: [DONE]\n\n'),
    ]
  },
  error: (status, message) => ({ body: mistralError(message, `${status}0`) }),
  toCode: (status) => `${status}0`,
  brokenEvent: sse(mistralError('Service unavailable.', '3700')),
}

const COHERE_ENDS = { stop: 'COMPLETE', length: 'MAX_TOKENS', tools: 'TOOL_CALL', filter: 'ERROR' }
const cohereUsage = ({ usage = DEFAULT_USAGE }: Said) => ({
  billed_units: { input_tokens: usage.input, output_tokens: usage.output },
  // These tokens include Cohere's own additions to the prompt, which it does not bill.
  tokens: { input_tokens: usage.input + 50, output_tokens: usage.output },
  cached_tokens: usage.cached,
})

export const COHERE_WIRE: Wire = {
  contentType: 'text/event-stream',
  completion: (said) => ({
    id: 'answer-1',
    generation_id: 'answer-1',
    message: {
      role: 'assistant',
      content: [
        ...(said.reasoning ? [{ type: 'thinking', thinking: said.reasoning.text }] : []),
        ...(said.text ? [{ type: 'text', text: said.text.join('') }] : []),
      ],
      ...(said.calls && { tool_calls: said.calls.map(openAiCall) }),
    },
    finish_reason: COHERE_ENDS[said.ends ?? 'stop'],
    usage: cohereUsage(said),
  }),
  events(said) {
    const event = (type: string, rest: object = {}) => sse({ type, ...rest }, type)
    const content = (type: string, index: number, value: object) => event(type, { index, delta: { message: { content: value } } })
    const call = (type: string, index: number, value: object) => event(type, { index, delta: { message: { tool_calls: value } } })
    return [
      event('message-start', { id: 'answer-1', delta: { message: { role: 'assistant' } } }),
      ...(said.reasoning
        ? [
            content('content-start', 0, { type: 'thinking', thinking: '' }),
            content('content-delta', 0, { thinking: said.reasoning.text }),
            event('content-end', { index: 0 }),
          ]
        : []),
      ...(said.text
        ? [
            content('content-start', 1, { type: 'text', text: '' }),
            ...said.text.map((text) => content('content-delta', 1, { text })),
            event('content-end', { index: 1 }),
          ]
        : []),
      ...(said.calls ?? []).flatMap(({ id, name, arguments: pieces }, index) => [
        call('tool-call-start', index, { id, type: 'function', function: { name, arguments: '' } }),
        ...pieces.map((piece) => call('tool-call-delta', index, { function: { arguments: piece } })),
        event('tool-call-end', { index }),
      ]),
      event('message-end', { delta: { finish_reason: COHERE_ENDS[said.ends ?? 'stop'], usage: cohereUsage(said) } }),
      Buffer.from('data: [DONE]\n\n'),
    ]
  },
  // Cohere returns no error code.
  error: (_status, message) => ({ body: { id: 'vendor-request-1', message } }),
  toCode: () => null,
  brokenEvent: null,
}
