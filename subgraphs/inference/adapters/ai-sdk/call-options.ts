import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, SharedV4ProviderOptions, SharedV4Warning } from '@ai-sdk/provider'
import { isAbsent, refuse } from '../../../common/check.ts'
import type { ChatCall, ProtocolObject } from '../../ports/engines.ts'
import { toPrompt } from './prompt.ts'
import { chooseReasoning } from './reasoning-effort.ts'
import { toTools } from './tools.ts'
import type { Vendor } from './vendors.ts'

/** Fields that this file or the vendor's own options translate. */
const TRANSLATED = [
  ...['model', 'messages', 'n', 'max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'frequency_penalty', 'presence_penalty'],
  ...[
    'seed',
    'top_k',
    'stop',
    'stream',
    'stream_options',
    'tools',
    'tool_choice',
    'functions',
    'function_call',
    'response_format',
    'reasoning_effort',
    'cache_control',
  ],
]
/**
 * Fields that do not change what the model writes: bookkeeping, caching and speed. They are left out without a warning.
 */
const WITHOUT_EFFECT = [
  ...['user', 'safety_identifier', 'metadata', 'store', 'service_tier', 'prompt_cache_key', 'prompt_cache_retention', 'prediction'],
]
const QUIET = new Set([...TRANSLATED, ...WITHOUT_EFFECT, 'parallel_tool_calls'])

/** The SDK's names for features that it left out → the protocol's fields. */
const FIELD_OF_FEATURE: Readonly<Record<string, string>> = {
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  seed: 'seed',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stopSequences: 'stop',
  maxOutputTokens: 'max_completion_tokens',
  responseFormat: 'response_format',
  toolChoice: 'tool_choice',
  strict: 'tools',
  reasoning: 'reasoning_effort',
  'providerOptions.anthropic.thinking': 'reasoning_effort',
  'providerOptions.anthropic.effort': 'reasoning_effort',
}

/** For vendors without a JSON mode. Most models obey, but none guarantees it. */
const JSON_INSTRUCTION = 'Answer with one JSON object and nothing else: no Markdown fence, no text before or after it.'
const NO_TOOLS_INSTRUCTION = 'Answer without calling a tool.'

/**
 * Translates a request of the protocol to the SDK. Fields without a counterpart at the vendor are left out, and
 * `call.warn` is called for each.
 * @throws {KisError} `invalid_request`: without a field, the response would differ
 */
export function toCallOptions(
  vendor: Vendor,
  call: ChatCall,
  request: ProtocolObject,
  abortSignal: AbortSignal,
): LanguageModelV4CallOptions {
  refuseOthers(request)
  for (const field of Object.keys(request)) if (!QUIET.has(field) && !isNeutral(field, request[field])) call.warn(field)
  const conversation = toPrompt(vendor, request.messages as readonly ProtocolObject[])
  const { tools, toolChoice } = toTools(request)
  const { responseFormat, schemaOptions, instruction } = toResponseFormat(vendor, call, request)
  const { providerOptions, ...reasoning } = chooseReasoning(vendor, call, request, conversation, {
    forTool: toolChoice?.type === 'required' || toolChoice?.type === 'tool',
    forJson: responseFormat !== undefined,
  })
  const isToolless = toolChoice?.type === 'none' && vendor.needsToolsOfHistory && conversation.some(({ role }) => role === 'tool')
  if (isToolless) call.warn('tool_choice')
  const single = request.parallel_tool_calls === false && tools.length > 0 ? vendor.singleToolCalls : {}
  if (!single) call.warn('parallel_tool_calls')
  return {
    prompt: withInstructions(conversation, [...(instruction ? [instruction] : []), ...(isToolless ? [NO_TOOLS_INSTRUCTION] : [])]),
    abortSignal,
    headers: { 'x-client-request-id': call.requestId },
    ...toSampling(request),
    ...(tools.length > 0 && { tools }),
    ...(toolChoice && !isToolless && { toolChoice }),
    ...(responseFormat && { responseFormat }),
    ...reasoning,
    providerOptions: merged(vendor.toOptions?.(request), schemaOptions, single ?? {}, providerOptions),
    ...(vendor.hidesErrors && { includeRawChunks: true }),
  }
}

/** Reports to the caller what the SDK left out. */
export function passWarnings(warnings: readonly SharedV4Warning[], call: ChatCall): void {
  for (const warning of warnings) {
    const field = 'feature' in warning ? FIELD_OF_FEATURE[warning.feature] : undefined
    if (field && warning.type === 'unsupported') call.warn(field)
  }
}

/** Refuses fields without which the response would differ. */
function refuseOthers({ n, modalities, function_call: functionCall }: ProtocolObject): void {
  if (!isAbsent(n) && n !== 1) refuse('unsupported_value', 'n', 'This model returns only one choice for each request.')
  if (Array.isArray(modalities) && modalities.some((modality) => modality !== 'text'))
    refuse('unsupported_value', 'modalities', 'This model returns text only.')
  if (!isAbsent(functionCall))
    refuse('unsupported_value', 'function_call', "This model accepts 'tool_choice', not the older 'function_call'.")
}

/** True for a value that requests the default behavior. */
function isNeutral(field: string, value: unknown): boolean {
  if (isAbsent(value) || value === false || value === 0) return true
  if (field === 'modalities') return true
  return field === 'logit_bias' && Object.keys(value as object).length === 0
}

/** Leaves out the protocol's defaults, which many clients always send and some vendors refuse. */
function toSampling(request: ProtocolObject): Partial<LanguageModelV4CallOptions> {
  const options: Partial<LanguageModelV4CallOptions> = {}
  if (typeof request.temperature === 'number') options.temperature = request.temperature
  if (typeof request.top_p === 'number' && request.top_p !== 1) options.topP = request.top_p
  if (typeof request.top_k === 'number') options.topK = request.top_k
  if (request.frequency_penalty) options.frequencyPenalty = request.frequency_penalty as number
  if (request.presence_penalty) options.presencePenalty = request.presence_penalty as number
  if (typeof request.seed === 'number') options.seed = request.seed
  const stop = [request.stop ?? []].flat() as string[]
  if (stop.length > 0) options.stopSequences = stop
  return options
}

interface JsonSchemaFormat {
  readonly name: string
  readonly description?: string | null
  readonly schema?: object | null
  readonly strict?: boolean | null
}

function toResponseFormat(vendor: Vendor, call: ChatCall, { response_format: format }: ProtocolObject) {
  const { type = 'text', json_schema: jsonSchema } = (format ?? {}) as { readonly type?: string; readonly json_schema?: JsonSchemaFormat }
  if (type === 'text') return {}
  if (jsonSchema?.schema) {
    const { name, description, schema, strict } = jsonSchema
    return {
      responseFormat: { type: 'json' as const, schema, name, ...(!isAbsent(description) && { description }) },
      schemaOptions: strict === true ? vendor.strictSchema : undefined,
    }
  }
  if (vendor.hasJsonMode) return { responseFormat: { type: 'json' as const } }
  call.warn('response_format')
  return { instruction: JSON_INSTRUCTION }
}

function withInstructions(prompt: LanguageModelV4Prompt, instructions: readonly string[]): LanguageModelV4Prompt {
  const added = instructions.map((content) => ({ role: 'system' as const, content }))
  const start = prompt.findIndex(({ role }) => role !== 'system')
  return prompt.toSpliced(start < 0 ? prompt.length : start, 0, ...added)
}

function merged(...all: readonly (SharedV4ProviderOptions | undefined)[]): SharedV4ProviderOptions {
  const result: SharedV4ProviderOptions = {}
  for (const options of all) for (const [key, value] of Object.entries(options ?? {})) result[key] = { ...result[key], ...value }
  return result
}
