import { checkLength, checkOneOf, isAbsent, listAt, objectAt, refuse, textAt } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { checkImageUrl } from './images.ts'

/** OpenAI's bound for one request. */
const MAX_MESSAGES = 2_048
/** More parts than any message has. The size of the body bounds images. */
const MAX_PARTS = 2_048
const MAX_TOOL_CALLS = 128
/**
 * The allowed kinds of parts for each role: those whose tokens can be computed in advance. Audio and files cannot, so
 * no hold could cover them.
 */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  developer: ['text'],
  system: ['text'],
  user: ['text', 'image_url'],
  assistant: ['text', 'refusal'],
  tool: ['text', 'image_url'],
  function: ['text'],
}
/** The protocol's bound. */
const MAX_NAME_LENGTH = 64
const IMAGE_DETAILS = ['auto', 'low', 'high']

/**
 * Checks the messages of a chat request, whose path is `param`.
 * @throws {KisError} a message is wrong; has a path such as `messages[0].content[1].image_url.url`
 */
export function checkMessages(value: unknown, param = 'messages'): asserts value is readonly ProtocolObject[] {
  const calls = new Set<unknown>()
  for (const [index, message] of listAt(value, param, 1, MAX_MESSAGES).entries()) {
    checkMessage(message, `${param}[${index}]`)
    checkResult(message as ProtocolObject, `${param}[${index}]`, calls)
  }
}

/** Refuses a result of a call that no message before it has made. `calls` collects the ids of the calls. */
function checkResult({ role, tool_call_id: id, tool_calls: toolCalls }: ProtocolObject, param: string, calls: Set<unknown>): void {
  if (role === 'tool' && !calls.has(id))
    refuse('invalid_request', `${param}.tool_call_id`, `No message before this result has a tool call with the id '${id}'.`)
  for (const call of (toolCalls ?? []) as readonly ProtocolObject[]) calls.add(call.id)
}

function checkMessage(value: unknown, param: string): void {
  const message = objectAt(value, param)
  const role = textAt(message.role, `${param}.role`)
  checkOneOf(role, `${param}.role`, Object.keys(PARTS))
  if (!isAbsent(message.name)) checkLength(textAt(message.name, `${param}.name`), `${param}.name`, MAX_NAME_LENGTH)
  if (role === 'tool') textAt(message.tool_call_id, `${param}.tool_call_id`)
  if (!isAbsent(message.tool_calls)) {
    for (const [index, call] of listAt(message.tool_calls, `${param}.tool_calls`, 1, MAX_TOOL_CALLS).entries()) {
      checkToolCall(call, `${param}.tool_calls[${index}]`)
    }
  }
  const mayBeEmpty =
    role === 'function' ||
    (role === 'assistant' && ['tool_calls', 'function_call', 'refusal', 'audio'].some((field) => !isAbsent(message[field])))
  checkContent(message.content, `${param}.content`, mayBeEmpty, PARTS[role]!)
}

function checkContent(content: unknown, param: string, mayBeEmpty: boolean, kinds: readonly string[]): void {
  if (typeof content === 'string' || (isAbsent(content) && mayBeEmpty)) return
  if (isAbsent(content)) refuse('missing_required_parameter', param, `Missing required parameter: '${param}'.`)
  if (!Array.isArray(content)) refuse('invalid_type', param, `'${param}' must be a string or an array of content parts.`)
  for (const [index, part] of listAt(content, param, 1, MAX_PARTS).entries()) checkPart(part, `${param}[${index}]`, kinds)
}

function checkPart(value: unknown, param: string, kinds: readonly string[]): void {
  const part = objectAt(value, param)
  checkOneOf(textAt(part.type, `${param}.type`), `${param}.type`, kinds)
  if (part.type === 'text') textAt(part.text, `${param}.text`)
  if (part.type === 'refusal') textAt(part.refusal, `${param}.refusal`)
  if (part.type !== 'image_url') return
  const image = objectAt(part.image_url, `${param}.image_url`)
  if (!isAbsent(image.detail)) checkOneOf(image.detail, `${param}.image_url.detail`, IMAGE_DETAILS)
  checkImageUrl(textAt(image.url, `${param}.image_url.url`), `${param}.image_url.url`)
}

function checkToolCall(value: unknown, param: string): void {
  const call = objectAt(value, param)
  textAt(call.id, `${param}.id`)
  if (textAt(call.type, `${param}.type`) !== 'function') return
  const { name, arguments: text } = objectAt(call.function, `${param}.function`)
  textAt(name, `${param}.function.name`)
  textAt(text, `${param}.function.arguments`)
}
