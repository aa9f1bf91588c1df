import { createHash } from 'node:crypto'
import { checkInteger, checkNumber, checkOneOf, isAbsent, listAt, objectAt, refuse, textAt } from '../../subgraphs/common/check.ts'
import type { KisError } from '../../subgraphs/common/errors.ts'
import { type JsonObject, withParam } from '../http/route.ts'
import { wantsCache } from './cache.ts'
import { Conversation } from './conversation.ts'
import { readOutput } from './output.ts'
import { toToolChoice, toTools } from './tools.ts'

/** One request of the Messages API, translated to the chat protocol. */
export interface Translation {
  readonly request: JsonObject
  /** Fields without a counterpart that were left out, as `context_management_not_honored`. */
  readonly warnings: readonly string[]
  /** The caller wants signed thinking without its text. */
  readonly hidesThinking: boolean
  /** Translates an error about the chat protocol's request to the caller's names. */
  inOwnNames(error: KisError): KisError
}

const TRANSLATED = new Set([
  ...['model', 'messages', 'system', 'max_tokens', 'stream', 'stop_sequences', 'temperature', 'top_p', 'top_k', 'metadata'],
  ...['tools', 'tool_choice', 'thinking', 'output_config', 'output_format', 'cache_control'],
])
/** Fields for bookkeeping, caching and queues, which do not change the response. */
const WITHOUT_EFFECT = new Set(['service_tier', 'diagnostics', 'betas', 'user_profile_id', 'workspace_id'])
/** Fields that change the response, so leaving them out would mislead the caller. */
const REFUSED: Readonly<Record<string, string>> = {
  container: 'Containers are not offered.',
  mcp_servers: 'MCP servers are not called from here. Pass their tools in `tools`, and call them yourself.',
  thread: 'The service stores no conversations. Send the whole conversation each time.',
  inference_geo: 'The residency policy of the organization decides where a request is processed.',
}
/** The caller's fields by the fields in inference's warnings. */
const OWN_FIELDS: Readonly<Record<string, string>> = {
  stop: 'stop_sequences',
  max_completion_tokens: 'max_tokens',
  response_format: 'output_config',
  reasoning_effort: 'thinking',
  reasoning_effort_if_supported: 'thinking',
  parallel_tool_calls: 'tool_choice',
  user: 'metadata',
}
/** Warnings of one request. All go into one header. */
const MAX_WARNINGS = 24
/** The API's minimum thinking budget, in tokens. */
const MIN_BUDGET = 1_024
/** OpenAI's limit for the ID of an end user. A longer ID is sent as a hash. */
const MAX_USER_LENGTH = 64

/**
 * @param isCount the request is for `count_tokens`, which needs no `max_tokens`
 * @throws {KisError} `invalid_request`: a field has a wrong value, or requests something that is not offered
 */
export function toChatRequest(body: JsonObject, isCount = false): Translation {
  for (const [field, message] of Object.entries(REFUSED))
    if (!isEmpty(body[field])) refuse('unsupported_value', field, `'${field}' cannot be honoured. ${message}`)
  const maxTokens = body.max_tokens
  if (!isCount && isAbsent(maxTokens))
    refuse('missing_required_parameter', 'max_tokens', "Missing required parameter: 'max_tokens', the most tokens of the reply.")
  checkInteger(maxTokens, 'max_tokens', 1, Number.MAX_SAFE_INTEGER)
  checkNumber(body.temperature, 'temperature', 0, 1)
  checkInteger(body.top_k, 'top_k', 0, Number.MAX_SAFE_INTEGER)
  const conversation = new Conversation(body.system, body.messages)
  const tools = toTools(body.tools)
  const thinking = readThinking(body.thinking, maxTokens as number | null | undefined)
  const output = readOutput(body)
  const effort = thinking.isOff ? null : (output.effort ?? thinking.effort)
  const request: JsonObject = {
    model: body.model,
    messages: conversation.messages,
    ...(!isAbsent(maxTokens) && { max_completion_tokens: maxTokens }),
    ...(!isAbsent(body.temperature) && { temperature: body.temperature }),
    ...(!isAbsent(body.top_p) && { top_p: body.top_p }),
    ...(!isAbsent(body.top_k) && { top_k: body.top_k }),
    ...toStop(body.stop_sequences),
    ...toUser(body.metadata),
    ...(tools.length > 0 && { tools, ...toToolChoice(body.tool_choice) }),
    ...(output.format && { response_format: output.format }),
    ...(wantsCache(body) && { cache_control: { type: 'ephemeral' } }),
    ...(effort !== null && { reasoning_effort_if_supported: effort }),
  }
  return {
    request,
    warnings: unknownFields(body).map((field) => `${named(field)}_not_honored`),
    hidesThinking: thinking.isHidden,
    inOwnNames: (error) => inOwnNames(error, conversation),
  }
}

/** Translates a warning, such as `response_format_not_honored` to `output_config_not_honored`. */
export function ownWarning(warning: string): string {
  const field = /^(\w+)_not_honored$/.exec(warning)?.[1]
  return field !== undefined && Object.hasOwn(OWN_FIELDS, field) ? `${OWN_FIELDS[field]}_not_honored` : warning
}

function inOwnNames(error: KisError, conversation: Conversation): KisError {
  const { param, message } = error
  if (param === null) return error
  const own = ownPath(param, conversation)
  // Messages quote the path. The same word without quotes is prose.
  const text = ["'", '`'].reduce((left, quote) => left.replaceAll(`${quote}${param}${quote}`, `${quote}${own}${quote}`), message)
  return withParam(error, own, text)
}

function ownPath(param: string, conversation: Conversation): string {
  if (param.startsWith('messages[')) return conversation.toPath(param)
  const [, tool, rest = ''] = /^tools\[(\d+)\](?:\.function)?(.*)$/s.exec(param) ?? []
  if (tool !== undefined) return `tools[${tool}]${rest.replace(/^\.parameters/, '.input_schema')}`
  const [, first = '', others = ''] = /^([^.[]*)(.*)$/s.exec(param)!
  if (first === 'response_format') return 'output_config.format'
  return Object.hasOwn(OWN_FIELDS, first) ? OWN_FIELDS[first]! + (first === 'stop' ? others : '') : param
}

function isEmpty(value: unknown): boolean {
  return isAbsent(value) || (Array.isArray(value) && value.length === 0)
}

function isUnknown(field: string, value: unknown): boolean {
  return !isEmpty(value) && !TRANSLATED.has(field) && !WITHOUT_EFFECT.has(field) && !(field in REFUSED) && value !== 'standard'
}

function unknownFields(body: JsonObject): readonly string[] {
  return Object.keys(body)
    .filter((field) => isUnknown(field, body[field]))
    .slice(0, MAX_WARNINGS)
}

/** Returns the name of an unknown field in a form that a header can carry: callers choose these names. */
function named(field: string): string {
  return /^\w{1,64}$/.test(field) ? field : 'unknown_field'
}

function toStop(sequences: unknown): JsonObject {
  if (isEmpty(sequences)) return {}
  const stop = listAt(sequences, 'stop_sequences', 1, Number.POSITIVE_INFINITY)
  for (const [index, text] of stop.entries()) textAt(text, `stop_sequences[${index}]`)
  return { stop }
}

function toUser(metadata: unknown): JsonObject {
  if (isAbsent(metadata)) return {}
  const { user_id: id } = objectAt(metadata, 'metadata')
  if (isAbsent(id) || id === '') return {}
  const user = textAt(id, 'metadata.user_id')
  return { user: user.length > MAX_USER_LENGTH ? createHash('sha256').update(user).digest('hex') : user }
}

interface Thinking {
  readonly isOff: boolean
  readonly effort: string | null
  readonly isHidden: boolean
}

/**
 * Converts a budget of tokens into the effort nearest to its share of `max_tokens`: the chat protocol knows only
 * efforts.
 */
function readThinking(value: unknown, maxTokens: number | null | undefined): Thinking {
  if (isAbsent(value)) return { isOff: false, effort: null, isHidden: false }
  const { type, budget_tokens: budget, display } = objectAt(value, 'thinking')
  checkOneOf(textAt(type, 'thinking.type'), 'thinking.type', ['enabled', 'adaptive', 'between_tools', 'disabled'])
  if (!isAbsent(display)) checkOneOf(display, 'thinking.display', ['summarized', 'omitted'])
  const isHidden = display === 'omitted'
  if (type === 'disabled') return { isOff: true, effort: null, isHidden }
  // `high` is the default effort of the API.
  if (type !== 'enabled') return { isOff: false, effort: 'high', isHidden }
  if (isAbsent(budget))
    refuse('missing_required_parameter', 'thinking.budget_tokens', "Missing required parameter: 'thinking.budget_tokens'.")
  checkInteger(budget, 'thinking.budget_tokens', MIN_BUDGET, isAbsent(maxTokens) ? Number.MAX_SAFE_INTEGER : maxTokens - 1)
  const share = isAbsent(maxTokens) ? 1 : (budget as number) / maxTokens
  return { isOff: false, effort: share < 0.2 ? 'low' : share < 0.45 ? 'medium' : 'high', isHidden }
}
