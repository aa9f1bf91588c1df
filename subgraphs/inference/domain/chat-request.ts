import {
  checkBoolean,
  checkInteger,
  checkLength,
  checkNumber,
  checkOneOf,
  isAbsent,
  listAt,
  objectAt,
  refuse,
  textAt,
} from '../../common/check.ts'
import type { ProtocolObject } from '../ports/engines.ts'
import type { Model } from './catalog.ts'
import { checkMessages } from './chat-messages.ts'

export type Message = ProtocolObject

/** A chat completion request whose known fields have been checked; the others are as they came. */
export interface ChatRequest extends ProtocolObject {
  readonly model: string
  readonly messages: readonly Message[]
  readonly n?: number | null
  readonly max_tokens?: number | null
  readonly max_completion_tokens?: number | null
}

/** Bounds of the protocol (OpenAI's API reference, "Create chat completion"). */
const MAX_CHOICES = 128
const MAX_TOP_LOGPROBS = 20
const MAX_STOPS = 4
const MAX_TOOLS = 128
const MAX_METADATA = { pairs: 16, keyLength: 64, valueLength: 512 } as const
const NAME = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * Checks what the protocol says of a request; `isStream`: whether it is served as a stream, whatever its own `stream` says.
 * @throws {KisError} with the path of the first thing that is wrong. Fields that the service does not know pass.
 */
export function checkChatRequest(value: unknown, isStream: boolean): ChatRequest {
  const request = objectAt(value, 'request')
  if (textAt(request.model, 'model') === '') refuse('missing_required_parameter', 'model', 'You must provide a model.')
  checkMessages(request.messages)
  checkSampling(request)
  checkStream(request, isStream)
  checkTools(request)
  checkResponseFormat(request.response_format)
  checkMetadata(request.metadata)
  // No price of the catalog is that of a vendor's priority queue, which costs a multiple.
  if (request.service_tier === 'priority') refuse('unsupported_value', 'service_tier', "'service_tier' may not be 'priority'.")
  return request as ChatRequest
}

/** What the model cannot do. A response format is no such thing: a model that does not know it answers anyway. @throws {KisError} */
export function checkAgainstModel(request: ChatRequest, model: Model): void {
  const hasTools = ['tools', 'functions'].find((field) => Array.isArray(request[field]) && (request[field] as unknown[]).length > 0)
  if (hasTools && !model.supports.has('tools')) refuse('unsupported_value', hasTools, `The model \`${model.id}\` does not call tools.`)
  if (model.supports.has('vision')) return
  for (const [index, { content }] of request.messages.entries()) {
    const image = Array.isArray(content) ? content.findIndex((part) => part.type === 'image_url') : -1
    if (image >= 0) refuse('unsupported_value', `messages[${index}].content[${image}]`, `The model \`${model.id}\` does not read images.`)
  }
}

/** The request as the engine gets it: without a response format where the model has none, of which `warn` hears. */
export function requestFor(model: Model, request: ChatRequest, warn: (field: string) => void): ProtocolObject {
  const { response_format: format, ...rest } = request
  if (isAbsent(format) || model.supports.has('response_schema')) return request
  if ((format as { type?: unknown }).type !== 'text') warn('response_format')
  return rest
}

/** The most output tokens of one choice that the caller wants. */
export function outputTokensAsked({ max_completion_tokens, max_tokens }: ChatRequest): number | null {
  return max_completion_tokens ?? max_tokens ?? null
}

function checkSampling(request: ProtocolObject): void {
  checkInteger(request.n, 'n', 1, MAX_CHOICES)
  checkInteger(request.max_tokens, 'max_tokens', 1, Number.MAX_SAFE_INTEGER)
  checkInteger(request.max_completion_tokens, 'max_completion_tokens', 1, Number.MAX_SAFE_INTEGER)
  checkNumber(request.temperature, 'temperature', 0, 2)
  checkNumber(request.top_p, 'top_p', 0, 1)
  checkNumber(request.frequency_penalty, 'frequency_penalty', -2, 2)
  checkNumber(request.presence_penalty, 'presence_penalty', -2, 2)
  checkInteger(request.seed, 'seed', Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
  checkBoolean(request.logprobs, 'logprobs')
  checkInteger(request.top_logprobs, 'top_logprobs', 0, MAX_TOP_LOGPROBS)
  if (!isAbsent(request.top_logprobs) && request.logprobs !== true) {
    refuse('invalid_request', 'top_logprobs', "'top_logprobs' needs 'logprobs' to be true.")
  }
  checkStop(request.stop)
  if (isAbsent(request.logit_bias)) return
  for (const [token, bias] of Object.entries(objectAt(request.logit_bias, 'logit_bias')))
    checkNumber(bias, `logit_bias.${token}`, -100, 100)
}

function checkStop(stop: unknown): void {
  if (isAbsent(stop) || typeof stop === 'string') return
  if (!Array.isArray(stop)) refuse('invalid_type', 'stop', "'stop' must be a string or an array of strings.")
  for (const [index, text] of listAt(stop, 'stop', 1, MAX_STOPS).entries()) textAt(text, `stop[${index}]`)
}

function checkStream(request: ProtocolObject, isStream: boolean): void {
  checkBoolean(request.stream, 'stream')
  if (request.stream === true && !isStream) {
    refuse('invalid_request', 'stream', "'stream' is true: use the subscription `chatCompletion`.")
  }
  if (isAbsent(request.stream_options)) return
  if (!isStream) refuse('invalid_request', 'stream_options', "'stream_options' needs 'stream' to be true.")
  checkBoolean(objectAt(request.stream_options, 'stream_options').include_usage, 'stream_options.include_usage')
}

function checkTools(request: ProtocolObject): void {
  checkBoolean(request.parallel_tool_calls, 'parallel_tool_calls')
  if (!isAbsent(request.tools)) {
    for (const [index, value] of listAt(request.tools, 'tools', 0, MAX_TOOLS).entries()) checkTool(value, `tools[${index}]`)
  }
  if (!isAbsent(request.functions)) {
    for (const [index, value] of listAt(request.functions, 'functions', 0, MAX_TOOLS).entries()) {
      checkName(objectAt(value, `functions[${index}]`).name, `functions[${index}].name`)
    }
  }
  const { tool_choice } = request
  if (isAbsent(tool_choice)) return
  if (typeof tool_choice === 'string') checkOneOf(tool_choice, 'tool_choice', ['none', 'auto', 'required'])
  else textAt(objectAt(tool_choice, 'tool_choice').type, 'tool_choice.type')
}

function checkTool(value: unknown, param: string): void {
  const tool = objectAt(value, param)
  if (textAt(tool.type, `${param}.type`) !== 'function') return
  const definition = objectAt(tool.function, `${param}.function`)
  checkName(definition.name, `${param}.function.name`)
  if (!isAbsent(definition.parameters)) objectAt(definition.parameters, `${param}.function.parameters`)
}

function checkResponseFormat(value: unknown): void {
  if (isAbsent(value)) return
  const format = objectAt(value, 'response_format')
  checkOneOf(textAt(format.type, 'response_format.type'), 'response_format.type', ['text', 'json_object', 'json_schema'])
  if (format.type !== 'json_schema') return
  const { name, schema } = objectAt(format.json_schema, 'response_format.json_schema')
  checkName(name, 'response_format.json_schema.name')
  if (!isAbsent(schema)) objectAt(schema, 'response_format.json_schema.schema')
}

function checkName(value: unknown, param: string): void {
  if (!NAME.test(textAt(value, param))) refuse('invalid_request', param, `'${param}' must be 1 to 64 letters, digits, '_' or '-'.`)
}

function checkMetadata(value: unknown): void {
  if (isAbsent(value)) return
  const pairs = Object.entries(objectAt(value, 'metadata'))
  if (pairs.length > MAX_METADATA.pairs) {
    refuse('array_above_max_length', 'metadata', `'metadata' must have at most ${MAX_METADATA.pairs} pairs; it has ${pairs.length}.`)
  }
  for (const [key, text] of pairs) {
    checkLength(key, 'metadata', MAX_METADATA.keyLength)
    checkLength(textAt(text, `metadata.${key}`), `metadata.${key}`, MAX_METADATA.valueLength)
  }
}
