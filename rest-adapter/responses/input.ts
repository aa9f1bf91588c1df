import { checkOneOf, isAbsent, listAt, objectAt, refuse, textAt } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'
import { type Part, toContent, toParts } from './content.ts'
import type { MessageOrigin } from './params.ts'
import { type ReasoningState, readReasoning } from './reasoning.ts'

/** The conversation as messages of the chat protocol, each with its origin. */
interface Conversation {
  readonly messages: readonly JsonObject[]
  readonly origins: readonly MessageOrigin[]
}

/**
 * Twice the messages of a chat request: one turn of the model (reasoning, text, calls) is several items but one
 * message.
 */
const MAX_ITEMS = 4_096
const ROLES = ['user', 'assistant', 'system', 'developer']

/** @throws {KisError} `invalid_request`, with a path in the request such as `input[2].call_id` */
export function toConversation(instructions: unknown, input: unknown): Conversation {
  const messages = new MessageList()
  if (!isAbsent(instructions)) messages.addText('system', textAt(instructions, 'instructions'), 'instructions')
  if (typeof input === 'string') messages.addText('user', input, 'input')
  else for (const [index, item] of listAt(input, 'input', 1, MAX_ITEMS).entries()) addItem(messages, item, `input[${index}]`)
  return messages.end()
}

function addItem(messages: MessageList, value: unknown, path: string): void {
  const item = objectAt(value, path)
  // Only messages may leave out their type.
  const type = isAbsent(item.type) && !isAbsent(item.role) ? 'message' : textAt(item.type, `${path}.type`)
  switch (type) {
    case 'message':
      addMessage(messages, item, path)
      break
    case 'function_call':
      messages.turn(path).addCall(item, path)
      break
    case 'function_call_output':
      messages.add('tool', toParts(item.output, `${path}.output`, true), path, { tool_call_id: textAt(item.call_id, `${path}.call_id`) })
      break
    case 'reasoning':
      messages.turn(path).addReasoning(readReasoning(item, path))
      break
    case 'item_reference':
      refuse(
        'unsupported_value',
        `${path}.type`,
        'Items are not stored. Send the item itself, not its id, as clients do with `store: false`.',
      )
      break
    default:
      refuse(
        'unsupported_value',
        `${path}.type`,
        `Items of the type '${type}' are not accepted: they belong to tools that run elsewhere. Types: 'message', 'function_call', 'function_call_output', 'reasoning'.`,
      )
  }
}

function addMessage(messages: MessageList, { role: roleInput, content }: JsonObject, path: string): void {
  const role = textAt(roleInput, `${path}.role`)
  checkOneOf(role, `${path}.role`, ROLES)
  const parts = toParts(content, `${path}.content`, role === 'user')
  if (role === 'assistant') messages.turn(path).addParts(parts)
  else messages.add(role, parts, path)
}

class MessageList {
  readonly #messages: JsonObject[] = []
  readonly #origins: MessageOrigin[] = []
  #turn: AssistantTurn | undefined

  addText(role: string, text: string, path: string): void {
    this.add(role, [{ part: { type: 'text', text }, path }], path)
  }

  add(role: string, parts: readonly Part[], path: string, rest: JsonObject = {}): void {
    this.#endTurn()
    this.#push({ role, content: toContent(parts), ...rest }, path, parts, [])
  }

  /** The model's current turn, until someone else speaks. The chat protocol puts all of it into one message. */
  turn(path: string): AssistantTurn {
    this.#turn ??= new AssistantTurn(path)
    return this.#turn
  }

  end(): Conversation {
    this.#endTurn()
    return { messages: this.#messages, origins: this.#origins }
  }

  #endTurn(): void {
    const turn = this.#turn
    this.#turn = undefined
    // Reasoning without an answer (a response that met its bound) makes no message.
    if (turn && !turn.isEmpty) this.#push(turn.message(), turn.path, turn.parts, turn.callPaths)
  }

  #push(message: JsonObject, path: string, parts: readonly Part[], calls: readonly string[]): void {
    this.#messages.push(message)
    const paths = parts.map((part) => part.path)
    this.#origins.push({ path, content: paths[0] ?? path, parts: paths, calls })
  }
}

class AssistantTurn {
  /** The path of its first item. */
  readonly path: string
  readonly parts: Part[] = []
  readonly callPaths: string[] = []
  readonly #calls: JsonObject[] = []
  readonly #details: unknown[] = []
  readonly #extraContents = new Map<string, unknown>()
  #reasoning = ''

  constructor(path: string) {
    this.path = path
  }

  get isEmpty(): boolean {
    return this.parts.length === 0 && this.#calls.length === 0
  }

  addParts(parts: readonly Part[]): void {
    this.parts.push(...parts)
  }

  addReasoning({ text, details, calls }: ReasoningState & { readonly text: string }): void {
    this.#reasoning += text
    this.#details.push(...details)
    for (const [id, extra] of Object.entries(calls)) this.#extraContents.set(id, extra)
  }

  addCall({ call_id, name, arguments: text }: JsonObject, path: string): void {
    const id = textAt(call_id, `${path}.call_id`)
    const extra = this.#extraContents.get(id)
    this.#calls.push({
      id,
      type: 'function',
      function: { name: textAt(name, `${path}.name`), arguments: textAt(text, `${path}.arguments`) },
      ...(extra !== undefined && { extra_content: extra }),
    })
    this.callPaths.push(path)
  }

  message(): JsonObject {
    return {
      role: 'assistant',
      content: this.parts.length === 0 ? null : toContent(this.parts),
      ...(this.#reasoning !== '' && { reasoning_content: this.#reasoning }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
    }
  }
}
