import { checkBoolean, checkOneOf, isAbsent, listAt, objectAt, refuse, textAt } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'
import { ACCEPTED_BLOCKS, readText, readTexts, toImagePart } from './blocks.ts'
import { ReasoningOfMessage } from './reasoning.ts'

/** The Messages API's own bound. Inference has a lower one for the messages that result. */
const MAX_MESSAGES = 100_000
/** More blocks than any message has. The size of the body bounds images. */
const MAX_BLOCKS = 4_096

/** Where a message of the chat protocol comes from: its path, and the paths of its content parts. */
interface Origin {
  readonly path: string
  readonly parts: readonly string[]
}

/** The messages of one request in the chat protocol, with their origin in the caller's request. */
export class Conversation {
  readonly messages: JsonObject[] = []
  readonly #origins: Origin[] = []

  /** @throws {KisError} `invalid_request`, with a path in the caller's request */
  constructor(system: unknown, messages: unknown) {
    this.#addSystem(system, 'system')
    for (const [index, message] of listAt(messages, 'messages', 1, MAX_MESSAGES).entries()) this.#add(message, `messages[${index}]`)
  }

  /** `messages[3].content[1].text` of the chat protocol → the same place in the caller's request */
  toPath(param: string): string {
    const [, index, part, rest = ''] = /^messages\[(\d+)\](?:\.content(?:\[(\d+)\])?)?(.*)$/s.exec(param) ?? []
    const origin = this.#origins[Number(index)]
    if (!origin) return param
    if (part !== undefined) return origin.parts[Number(part)] ?? origin.path
    if (rest === '.tool_call_id') return origin.path.replace(/\.content$/, '.tool_use_id')
    // The rest names fields of the chat protocol, such as calls of tools.
    return rest.startsWith('.') || rest === '' ? origin.path : param
  }

  #push(message: JsonObject, path: string, parts: readonly string[] = []): void {
    this.messages.push(message)
    this.#origins.push({ path, parts })
  }

  #addSystem(content: unknown, path: string): void {
    if (isAbsent(content)) return
    const texts = readTexts(content, path)
    if (texts.length > 0) this.#push({ role: 'system', content: texts.join('\n\n') }, path)
  }

  #add(value: unknown, path: string): void {
    const { role, content } = objectAt(value, path)
    checkOneOf(textAt(role, `${path}.role`), `${path}.role`, ['user', 'assistant', 'system'])
    if (role === 'system') this.#addSystem(content, `${path}.content`)
    else if (typeof content === 'string') this.#push({ role, content }, `${path}.content`)
    else {
      const blocks = listAt(content, `${path}.content`, 1, MAX_BLOCKS).map((block, index) => ({
        block: objectAt(block, `${path}.content[${index}]`),
        path: `${path}.content[${index}]`,
      }))
      if (role === 'user') this.#addUser(blocks, `${path}.content`)
      else this.#addAssistant(blocks, `${path}.content`)
    }
  }

  /**
   * Results of tools become messages of their own, right after the calls. The rest of the user's message comes after
   * them.
   */
  #addUser(blocks: readonly Block[], path: string): void {
    const content = new UserContent()
    for (const each of blocks) {
      if (textAt(each.block.type, `${each.path}.type`) === 'tool_result') this.#addResult(each, content)
      else content.add(each.block, each.path)
    }
    const { parts, paths } = content
    const [only] = parts
    // A single text goes as a string, which every engine accepts.
    if (parts.length === 1 && only?.type === 'text') this.#push({ role: 'user', content: only.text }, path, paths)
    else if (parts.length > 0) this.#push({ role: 'user', content: parts }, path, paths)
  }

  /**
   * Results hold only text in the chat protocol. Their images go to the user's message, which says which call they
   * belong to.
   */
  #addResult({ block, path }: Block, user: UserContent): void {
    const id = textAt(block.tool_use_id, `${path}.tool_use_id`)
    checkBoolean(block.is_error, `${path}.is_error`)
    const result = new UserContent()
    if (typeof block.content === 'string') result.add({ type: 'text', text: block.content }, `${path}.content`)
    else if (!isAbsent(block.content)) {
      for (const [index, inner] of listAt(block.content, `${path}.content`, 0, MAX_BLOCKS).entries())
        result.add(objectAt(inner, `${path}.content[${index}]`), `${path}.content[${index}]`)
    }
    const texts = result.parts.flatMap(({ type, text }) => (type === 'text' ? [text as string] : []))
    const images = result.parts.flatMap((part, index) => (part.type === 'text' ? [] : [{ part, path: result.paths[index]! }]))
    if (images.length > 0) {
      texts.push(`(${images.length === 1 ? 'An image' : `${images.length} images`} of this result in the next message.)`)
      user.push({ type: 'text', text: `Of the result of the tool call ${id}:` }, path)
      for (const image of images) user.push(image.part, image.path)
    }
    const text = texts.join('\n')
    this.#push({ role: 'tool', tool_call_id: id, content: block.is_error === true ? `Error: ${text}` : text }, `${path}.content`)
  }

  #addAssistant(blocks: readonly Block[], path: string): void {
    const reasoning = new ReasoningOfMessage()
    const toolCalls: JsonObject[] = []
    let text = ''
    for (const { block, path: at } of blocks) {
      switch (textAt(block.type, `${at}.type`)) {
        case 'text':
          text += textAt(block.text, `${at}.text`)
          break
        case 'thinking':
          reasoning.thinking(textAt(block.thinking, `${at}.thinking`), textAt(block.signature, `${at}.signature`))
          break
        case 'redacted_thinking':
          reasoning.redacted(textAt(block.data, `${at}.data`))
          break
        case 'tool_use':
          toolCalls.push({
            id: textAt(block.id, `${at}.id`),
            type: 'function',
            function: { name: textAt(block.name, `${at}.name`), arguments: JSON.stringify(objectAt(block.input, `${at}.input`)) },
            ...reasoning.consumeCallSignature(),
          })
          break
        default:
          refuse('unsupported_value', `${at}.type`, `Blocks of the type '${block.type}' cannot be sent here. ${ACCEPTED_BLOCKS}`)
      }
    }
    const fields = { ...reasoning.fields, ...(toolCalls.length > 0 && { tool_calls: toolCalls }) }
    this.#push({ role: 'assistant', content: text === '' && toolCalls.length > 0 ? null : text, ...fields }, path)
  }
}

interface Block {
  readonly block: JsonObject
  readonly path: string
}

/** The parts of a user's message, each with its path in the caller's request. */
class UserContent {
  readonly parts: JsonObject[] = []
  readonly paths: string[] = []

  push(part: JsonObject, path: string): void {
    this.parts.push(part)
    this.paths.push(path)
  }

  add(block: JsonObject, path: string): void {
    if (textAt(block.type, `${path}.type`) === 'image') this.push(toImagePart(block, path), path)
    else if (block.type === 'document' && isBlockSource(block)) {
      for (const [index, inner] of listAt(block.source.content, `${path}.source.content`, 0, MAX_BLOCKS).entries())
        this.add(objectAt(inner, `${path}.source.content[${index}]`), `${path}.source.content[${index}]`)
    } else this.push({ type: 'text', text: readText(block, path) }, path)
  }
}

function isBlockSource(block: JsonObject): block is { readonly source: { readonly content: readonly unknown[] } } {
  const { type, content } = (block.source ?? {}) as JsonObject
  return type === 'content' && Array.isArray(content)
}
