import { createHash } from 'node:crypto'
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider'
import { isAbsent, refuse } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { toFilePart } from './images.ts'
import { type ReasoningDetail, toReasoningParts } from './reasoning-details.ts'
import type { Vendor } from './vendors.ts'

type Assistant = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type Part = LanguageModelV4TextPart | LanguageModelV4FilePart

interface Message {
  readonly role: string
  readonly content?: string | readonly ContentPart[] | null
  readonly refusal?: string | null
  readonly name?: string | null
  readonly tool_calls?: readonly ToolCall[] | null
  readonly tool_call_id?: string
  readonly reasoning_details?: readonly ReasoningDetail[] | null
}
interface ContentPart {
  readonly type: string
  readonly text?: string
  readonly refusal?: string
  readonly image_url?: { readonly url: string; readonly detail?: unknown }
}
interface ToolCall {
  readonly id: string
  readonly type: string
  readonly function: { readonly name: string; readonly arguments: string }
  readonly extra_content?: { readonly google?: { readonly thought_signature?: unknown } | null } | null
}

/**
 * Translates the messages to the SDK. Instructions come first for vendors that allow them only there. Results of
 * parallel tool calls, separate messages in the protocol, become one message, because the vendors need them together.
 * @throws {KisError} `invalid_request`: the vendor does not support a message
 */
export function toPrompt(vendor: Vendor, messages: readonly ProtocolObject[]): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Message[] = []
  const instructions: LanguageModelV4Message[] = []
  /** Names of the tools by call, because a result names only the call. */
  const toolNames = new Map<string, string>()
  for (const [index, value] of messages.entries()) {
    // The check of the request has validated these fields.
    const message = value as unknown as Message
    const param = `messages[${index}]`
    switch (message.role) {
      case 'system':
      case 'developer':
        ;(vendor.instructionsFirst ? instructions : prompt).push({ role: 'system', content: readText(message) })
        break
      case 'user':
        prompt.push({ role: 'user', content: toParts(vendor, message, param) })
        break
      case 'assistant': {
        const content = toAssistantContent(vendor, message, param, toolNames)
        if (content.length > 0) prompt.push({ role: 'assistant', content })
        break
      }
      case 'tool': {
        const result = toToolResult(vendor, message, param, toolNames)
        const last = prompt.at(-1)
        if (last?.role === 'tool') last.content.push(result)
        else prompt.push({ role: 'tool', content: [result] })
        break
      }
      default:
        refuse(
          'unsupported_value',
          `${param}.role`,
          `This model accepts no messages of the role '${message.role}'; use 'tool' for results of tools.`,
        )
    }
  }
  return [...instructions, ...prompt]
}

/**
 * Returns a call's id in a form that the vendor accepts; ids of other vendors may have another form. Equal ids have
 * equal results.
 */
function toCallId({ callIds }: Vendor, id: string): string {
  if (callIds.pattern.test(id)) return id
  return createHash('sha256').update(id).digest('hex').slice(0, callIds.length)
}

function readText({ content }: Message): string {
  return typeof content === 'string' ? content : (content ?? []).map(({ text, refusal }) => text ?? refusal ?? '').join('\n')
}

function toParts(vendor: Vendor, { content }: Message, param: string): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return (content ?? []).map((part, index): Part => {
    if (part.type === 'image_url') return toFilePart(vendor, part.image_url!, `${param}.content[${index}].image_url.url`)
    return { type: 'text', text: part.text ?? part.refusal ?? '' }
  })
}

function toAssistantContent(vendor: Vendor, message: Message, param: string, toolNames: Map<string, string>): Assistant {
  const parts: Assistant = toReasoningParts(vendor, message.reasoning_details)
  const texts = [readText(message), message.refusal ?? ''].filter((text) => text !== '')
  for (const text of texts) parts.push({ type: 'text', text })
  for (const [index, call] of (message.tool_calls ?? []).entries()) {
    if (call.type !== 'function')
      refuse('unsupported_value', `${param}.tool_calls[${index}].type`, 'This model accepts calls of functions only.')
    const { name } = call.function
    const toolCallId = toCallId(vendor, call.id)
    toolNames.set(toolCallId, name)
    const signature = vendor.kind === 'google' ? call.extra_content?.google?.thought_signature : undefined
    parts.push({
      type: 'tool-call',
      toolCallId,
      toolName: name,
      input: parseArguments(call.function.arguments),
      ...(typeof signature === 'string' && {
        providerOptions: { google: { thoughtSignature: signature } } satisfies SharedV4ProviderOptions,
      }),
    })
  }
  return parts
}

/** Vendors require an object. Any other text of a model is wrapped unchanged. */
function parseArguments(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {}
  return { arguments: text }
}

function toToolResult(
  vendor: Vendor,
  message: Message,
  param: string,
  toolNames: ReadonlyMap<string, string>,
): LanguageModelV4ToolResultPart {
  const toolCallId = toCallId(vendor, message.tool_call_id ?? '')
  const toolName = toolNames.get(toolCallId)
  if (toolName === undefined) {
    return refuse('invalid_request', `${param}.tool_call_id`, `No message before '${param}' has a tool call with this id.`)
  }
  const hasImages = Array.isArray(message.content) && message.content.some(({ type }) => type === 'image_url')
  if (!hasImages || isAbsent(message.content))
    return { type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: readText(message) } }
  return { type: 'tool-result', toolCallId, toolName, output: { type: 'content', value: toParts(vendor, message, param) } }
}
