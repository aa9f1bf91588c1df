import { checkBoolean, checkLength, checkOneOf, isAbsent, listAt, objectAt, refuse, textAt } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Model } from '../catalog.ts'
import { checkMessages } from './chat-messages.ts'
import { checkTools } from './chat-tools.ts'
import { checkResponseFormat } from './response-format.ts'
import { checkSampling } from './sampling-fields.ts'

type Message = ProtocolObject

/** A chat completion request with checked known fields. All other fields are unchanged. */
export interface ChatRequest extends ProtocolObject {
  readonly model: string
  readonly messages: readonly Message[]
  readonly n?: number | null
  readonly max_tokens?: number | null
  readonly max_completion_tokens?: number | null
}

/** Limits of the protocol (OpenAI's API reference, "Create chat completion"). */
const MAX_METADATA = { pairs: 16, keyLength: 64, valueLength: 512 } as const
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const VERBOSITIES = ['low', 'medium', 'high']
const MAX_IDENTIFIER_LENGTH = 64
/** Longer than any model's id. The error for an unknown model repeats it. */
const MAX_MODEL_LENGTH = 300

/**
 * Checks a request by the rules of the protocol. `isStream`: whether it is served as a stream, whatever its own
 * `stream` says. Unknown fields pass.
 * @throws {KisError} a field is wrong; has the path of the first one
 */
export function checkChatRequest(value: unknown, isStream: boolean): ChatRequest {
  const request = objectAt(value, 'request')
  if (textAt(request.model, 'model') === '') refuse('missing_required_parameter', 'model', 'You must provide a model.')
  checkLength(request.model as string, 'model', MAX_MODEL_LENGTH)
  checkMessages(request.messages)
  checkSampling(request)
  checkStream(request, isStream)
  checkTools(request)
  checkResponseFormat(request.response_format, request.messages as readonly Message[])
  checkManner(request)
  checkBookkeeping(request)
  checkPriced(request)
  return request as ChatRequest
}

/**
 * Checks that the model supports the request. A schema is never ignored: its sender parses the response by it, and
 * prose would break that program.
 * @throws {KisError} the model does not support the request
 */
export function checkAgainstModel(request: ChatRequest, model: Model): void {
  const hasTools = ['tools', 'functions'].find((field) => Array.isArray(request[field]) && (request[field] as unknown[]).length > 0)
  if (hasTools && !model.supports.has('tools')) refuse('unsupported_value', hasTools, `The model \`${model.id}\` does not call tools.`)
  if ((request.response_format as ProtocolObject | null)?.type === 'json_schema' && !model.supports.has('response_schema')) {
    const message = `The model \`${model.id}\` does not support JSON schemas. Use a model with \`supports_response_schema\`.`
    refuse('unsupported_value', 'response_format', message)
  }
  if (model.supports.has('vision')) return
  for (const [index, { content }] of request.messages.entries()) {
    const image = Array.isArray(content) ? content.findIndex((part) => part.type === 'image_url') : -1
    if (image >= 0) refuse('unsupported_value', `messages[${index}].content[${image}]`, `The model \`${model.id}\` does not read images.`)
  }
}

/**
 * Returns the request as the engine gets it. A response format, effort or cache that the model lacks is left out, and
 * `warn` is called with the field.
 */
export function requestFor(model: Model, request: ChatRequest, warn: (field: string) => void): ProtocolObject {
  return withCache(model, withFormat(model, withEffort(model, request, warn), warn), warn)
}

function withFormat(model: Model, request: ProtocolObject, warn: (field: string) => void): ProtocolObject {
  const { response_format: format, ...rest } = request
  if (isAbsent(format) || model.supports.has('response_schema')) return request
  if ((format as { type?: unknown }).type !== 'text') warn('response_format')
  return rest
}

/**
 * Writing to a vendor's cache has its own price. The catalog's price is for five minutes, so no cache is requested for
 * longer.
 */
function withCache(model: Model, request: ProtocolObject, warn: (field: string) => void): ProtocolObject {
  const { cache_control: cache, ...rest } = request
  if (isAbsent(cache)) return request
  if (model.supports.has('prompt_cache')) return { ...rest, cache_control: { type: 'ephemeral' } }
  warn('cache_control')
  return rest
}

/**
 * `reasoning_effort_if_supported` is our own field, for clients that send the same request to every model: vendors
 * refuse `reasoning_effort` for a model that does not reason, and only the catalog knows which models do. A
 * `reasoning_effort` is sent unchanged.
 */
function withEffort(model: Model, request: ProtocolObject, warn: (field: string) => void): ProtocolObject {
  const { reasoning_effort_if_supported: effort, ...rest } = request
  if (effort === undefined) return request
  if (isAbsent(effort) || !isAbsent(rest.reasoning_effort)) return rest
  if (model.supports.has('reasoning')) return { ...rest, reasoning_effort: effort }
  warn('reasoning_effort')
  return rest
}

/** Most output tokens of one choice that the caller wants. */
export function requestedOutputTokens({ max_completion_tokens, max_tokens }: ChatRequest): number | null {
  return max_completion_tokens ?? max_tokens ?? null
}

function checkStream(request: ProtocolObject, isStream: boolean): void {
  checkBoolean(request.stream, 'stream')
  if (request.stream === true && !isStream) {
    refuse('invalid_request', 'stream', "'stream' is true: use the subscription `chatCompletion`.")
  }
  if (isAbsent(request.stream_options)) return
  if (!isStream) refuse('invalid_request', 'stream_options', "'stream_options' needs 'stream' to be true.")
  const { include_usage, include_obfuscation } = objectAt(request.stream_options, 'stream_options')
  checkBoolean(include_usage, 'stream_options.include_usage')
  checkBoolean(include_obfuscation, 'stream_options.include_obfuscation')
}

/** Checks the fields about reasoning and wording. */
function checkManner({ verbosity, prediction, ...rest }: ProtocolObject): void {
  for (const field of ['reasoning_effort', 'reasoning_effort_if_supported'])
    if (!isAbsent(rest[field])) checkOneOf(textAt(rest[field], field), field, EFFORTS)
  if (!isAbsent(verbosity)) checkOneOf(textAt(verbosity, 'verbosity'), 'verbosity', VERBOSITIES)
  if (!isAbsent(prediction)) checkOneOf(objectAt(prediction, 'prediction').type, 'prediction.type', ['content'])
}

/** Checks the fields about what the engine stores besides the response. */
function checkBookkeeping(request: ProtocolObject): void {
  for (const field of ['user', 'safety_identifier', 'prompt_cache_key', 'service_tier']) {
    if (!isAbsent(request[field])) textAt(request[field], field)
  }
  if (!isAbsent(request.safety_identifier)) checkLength(request.safety_identifier as string, 'safety_identifier', MAX_IDENTIFIER_LENGTH)
  checkBoolean(request.store, 'store')
  checkMetadata(request.metadata)
}

/** OpenAI's more expensive queues. `fast` is the newer name of `priority`. */
const DEARER_TIERS = ['priority', 'fast', 'ultrafast']

/**
 * Refuses what the catalog has no prices for: a vendor's priority queue, spoken responses and web searches cost more
 * than tokens.
 */
function checkPriced({ service_tier, modalities, audio, web_search_options }: ProtocolObject): void {
  if (DEARER_TIERS.includes(service_tier as string)) {
    refuse('unsupported_value', 'service_tier', `'service_tier' may not be '${service_tier}': no price of the catalog covers it.`)
  }
  if (!isAbsent(modalities)) {
    for (const [index, modality] of listAt(modalities, 'modalities', 1, 2).entries()) checkOneOf(modality, `modalities[${index}]`, ['text'])
  }
  if (!isAbsent(audio)) refuse('unsupported_value', 'audio', 'The output is text. Audio output is not offered.')
  if (!isAbsent(web_search_options)) {
    refuse('unsupported_value', 'web_search_options', "Web search by the vendor is not offered. Pass a tool for it in 'tools'.")
  }
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
