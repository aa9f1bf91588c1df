import type { KisError } from '../../subgraphs/common/errors.ts'
import { withParam } from '../http/route.ts'

/** The origin of one message of the chat request, as paths in the caller's own request. */
export interface MessageOrigin {
  /** `input[3]`, or `instructions`. */
  readonly path: string
  /** The path of the message's content, if that is one text. */
  readonly content: string
  /** The paths of the message's parts, if its content is a list. */
  readonly parts: readonly string[]
  /** The paths of the message's tool calls. */
  readonly calls: readonly string[]
}

/** Fields of the chat request with those of the caller's request. The first entry that a path starts with counts. */
const FIELDS: readonly (readonly [string, string])[] = [
  ['messages', 'input'],
  ['max_completion_tokens', 'max_output_tokens'],
  ['reasoning_effort', 'reasoning.effort'],
  ['verbosity', 'text.verbosity'],
  ['response_format.json_schema', 'text.format'],
  ['response_format', 'text.format'],
  ['tool_choice.function', 'tool_choice'],
  ['tool_choice.allowed_tools', 'tool_choice'],
  ['logprobs', 'include'],
]
const PART_FIELDS: readonly (readonly [string, string])[] = [
  ['.image_url.url', '.image_url'],
  ['.image_url.detail', '.detail'],
]
const CALL_FIELDS: readonly (readonly [string, string])[] = [
  ['.id', '.call_id'],
  ['.function', ''],
]

/**
 * Translates a path of the chat request to the caller's request: `messages[2].tool_calls[0].function.name` →
 * `input[3].name`.
 */
export function responsesParam(param: string, origins: readonly MessageOrigin[]): string {
  const [, index, rest = ''] = /^messages\[(\d+)\](.*)$/s.exec(param) ?? []
  const origin = index === undefined ? undefined : origins[Number(index)]
  if (origin) return inMessage(origin, rest)
  // Tools are flat here: the fields that the chat protocol puts inside `function` are beside the type.
  return renamed(param, FIELDS).replace(/^((?:tools|tool_choice\.tools)\[\d+\])\.function(?=\.|$)/, '$1')
}

function inMessage({ path, content, parts, calls }: MessageOrigin, rest: string): string {
  const [, list, index, inner = ''] = /^\.(content|tool_calls)\[(\d+)\](.*)$/s.exec(rest) ?? []
  if (list === 'content') return (parts[Number(index)] ?? path) + renamed(inner, PART_FIELDS)
  if (list === 'tool_calls') return (calls[Number(index)] ?? path) + renamed(inner, CALL_FIELDS)
  if (rest === '.content') return content
  if (rest === '.tool_call_id') return `${path}.call_id`
  return path + rest
}

function renamed(path: string, names: readonly (readonly [string, string])[]): string {
  for (const [from, to] of names)
    if (path.startsWith(from) && /^(?:$|[.[])/.test(path.slice(from.length))) return to + path.slice(from.length)
  return path
}

/** Translates an error about the chat request to the names of the caller's request, in its text too. */
export function inResponsesNames(error: KisError, origins: readonly MessageOrigin[]): KisError {
  const { param, message } = error
  if (param === null) return error
  const named = message.replace(/(['`])([\w.[\]]+)\1/g, (_quoted, quote, path) => quote + responsesParam(path, origins) + quote)
  return withParam(error, responsesParam(param, origins), named)
}

/** Translates a warning, such as `reasoning_effort_not_honored` to `reasoning.effort_not_honored`. */
export function inResponsesWarning(warning: string): string {
  const field = /^(\w+)_not_honored$/.exec(warning)?.[1]
  return field === undefined ? warning : `${renamed(field, FIELDS)}_not_honored`
}
