import { isAbsent, refuse } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'
import { toConversation } from './input.ts'
import type { MessageOrigin } from './params.ts'
import { toChatToolChoice, toChatTools } from './tools.ts'

/** A request for a response, translated to the chat protocol. */
export interface TranslatedRequest {
  readonly request: JsonObject
  /** The origins of the messages, for the paths in errors. */
  readonly origins: readonly MessageOrigin[]
  /** Fields without effect here, such as `truncation_not_honored`. */
  readonly warnings: readonly string[]
}

/** Fields that request more than a response, and what to do instead. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  previous_response_id: 'Responses are not stored: send the whole conversation as `input`, with the `output` of the responses before.',
  conversation: 'Conversations are not stored: send the whole conversation as `input`.',
  prompt: 'Prompts are not stored: send `instructions` and `input`.',
  background: 'Responses are not created in the background. Leave it out, and use `stream` for long ones.',
  context_management: 'Conversations are not truncated. Leave what is no longer needed out of `input`.',
  moderation: 'Nothing is moderated here. Check input and output with a call of your own.',
}

/**
 * Fields with the same name in the chat protocol. Not `metadata`: there it belongs to stored responses, here the
 * response returns it.
 */
const SAME = ['model', 'temperature', 'top_p', 'user', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention', 'service_tier']
/** Fields that are translated, returned unchanged, or request what happens anyway. */
const OTHERS = [
  ...['input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_output_tokens', 'text', 'reasoning', 'include'],
  ...['top_logprobs', 'metadata', 'stream', 'stream_options', 'store', 'max_tool_calls', 'truncation'],
]
const KNOWN = new Set([...SAME, ...OTHERS, ...Object.keys(NOT_OFFERED)])

/** Warnings of one request. Callers choose the names of unknown fields, and all warnings go into one header. */
const MAX_WARNINGS = 16
const FIELD_NAME = /^[a-z_]{1,64}$/

/** @throws {KisError} an error in the names of the caller's request */
export function translateRequest(body: JsonObject): TranslatedRequest {
  for (const [field, instead] of Object.entries(NOT_OFFERED)) {
    if (!isAbsent(body[field]) && body[field] !== false) refuse('unsupported_value', field, `'${field}' is not offered. ${instead}`)
  }
  const { messages, origins } = toConversation(body.instructions, body.input)
  const request = {
    messages,
    ...Object.fromEntries(SAME.filter((field) => !isAbsent(body[field])).map((field) => [field, body[field]])),
    ...(!isAbsent(body.max_output_tokens) && { max_completion_tokens: body.max_output_tokens }),
    ...toToolFields(body),
    ...toTextFields(body.text as JsonObject | null | undefined),
    ...toReasoningFields(body.reasoning as JsonObject | null | undefined),
    ...(wantsLogprobs(body) && { logprobs: true, ...(!isAbsent(body.top_logprobs) && { top_logprobs: body.top_logprobs }) }),
  }
  return { request, origins, warnings: findWarnings(body) }
}

/** Whether to send the text as a summary of the reasoning, the form that clients of this API show. */
export function wantsSummary({ reasoning }: JsonObject): boolean {
  const { summary, generate_summary: older } = (reasoning ?? {}) as JsonObject
  return !isAbsent(summary ?? older)
}

function wantsLogprobs({ include, top_logprobs: top }: JsonObject): boolean {
  return (Array.isArray(include) && include.includes('message.output_text.logprobs')) || (typeof top === 'number' && top > 0)
}

function toToolFields({ tools: requested, tool_choice: choice, parallel_tool_calls: parallel }: JsonObject): JsonObject {
  const tools = toChatTools(requested)
  const toolChoice = toChatToolChoice(choice)
  // Many clients always send these two fields. Vendors refuse them without tools.
  if (tools.length === 0) return isAbsent(toolChoice) || toolChoice === 'auto' || toolChoice === 'none' ? {} : { tool_choice: toolChoice }
  return {
    tools,
    ...(!isAbsent(toolChoice) && { tool_choice: toolChoice }),
    ...(!isAbsent(parallel) && { parallel_tool_calls: parallel }),
  }
}

function toTextFields(text: JsonObject | null | undefined): JsonObject {
  const { format, verbosity } = text ?? {}
  const { type, name, description, schema, strict } = (format ?? {}) as JsonObject
  const jsonSchema = { name, schema, ...(!isAbsent(description) && { description }), ...(!isAbsent(strict) && { strict }) }
  return {
    // Plain text is the default.
    ...(!isAbsent(format) && type !== 'text' && { response_format: { type, ...(type === 'json_schema' && { json_schema: jsonSchema }) } }),
    ...(!isAbsent(verbosity) && { verbosity }),
  }
}

function toReasoningFields(reasoning: JsonObject | null | undefined): JsonObject {
  const { effort, mode } = reasoning ?? {}
  if (!isAbsent(mode) && mode !== 'standard')
    refuse('unsupported_value', 'reasoning.mode', "'reasoning.mode' must be 'standard': choose the model that you want.")
  return isAbsent(effort) ? {} : { reasoning_effort: effort }
}

function findWarnings(body: JsonObject): readonly string[] {
  const unknown = Object.keys(body).filter((field) => !KNOWN.has(field) && !isAbsent(body[field]))
  const names = unknown.map((field) => (FIELD_NAME.test(field) ? field : 'unknown_field'))
  if (body.truncation === 'auto') names.push('truncation')
  return [...new Set(names)].slice(0, MAX_WARNINGS).map((name) => `${name}_not_honored`)
}
