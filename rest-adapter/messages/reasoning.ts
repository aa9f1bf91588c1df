import type { JsonObject } from '../http/route.ts'

/**
 * Separates the engine's kind from the signature. Reasoning that goes back to the vendor travels in the two opaque
 * fields that clients of the Messages API return unchanged: `signature` of a thinking block and `data` of a redacted
 * block. The chat protocol also says which engine signed it. These fields have no room for that, so the engine's kind
 * precedes the signature. Anthropic's signatures have no prefix, so that a conversation can move between Anthropic and
 * this service.
 */
const SEPARATOR = ':'
const BARE = 'anthropic'
/**
 * Stands instead of an engine's kind for reasoning that nobody signed. Some engines need it back to continue after tool
 * calls.
 */
const UNSIGNED = 'unsigned'
/**
 * Stands instead of an engine's kind for Gemini's signature of one tool call. It precedes the call, in a redacted block
 * of its own.
 */
const CALL = 'google-call'

/** A reasoning block of the Messages API. */
export interface ReasoningBlock {
  readonly type: 'thinking' | 'redacted_thinking'
  readonly thinking?: string
  readonly signature?: string
  readonly data?: string
}

/** Returns the block for one of the chat protocol's `reasoning_details`; null when no vendor signed it. */
export function blockOfDetail(detail: unknown): ReasoningBlock | null {
  const { text, signature, data, format } = (detail ?? {}) as JsonObject
  const kind = typeof format === 'string' ? format : BARE
  if (typeof signature === 'string' && signature !== '')
    return { type: 'thinking', thinking: typeof text === 'string' ? text : '', signature: marked(kind, signature) }
  if (typeof data === 'string' && data !== '') return { type: 'redacted_thinking', data: marked(kind, data) }
  return null
}

/** Returns the signature field of reasoning that nobody signed. */
export function unsignedSignature(): string {
  return marked(UNSIGNED, '')
}

/** Returns the block with the signature of one call; null if the call has none. */
export function blockOfCall(call: unknown): ReasoningBlock | null {
  const { extra_content: extra } = (call ?? {}) as {
    readonly extra_content?: { readonly google?: { readonly thought_signature?: unknown } }
  }
  const signature = extra?.google?.thought_signature
  return typeof signature === 'string' ? { type: 'redacted_thinking', data: marked(CALL, signature) } : null
}

/**
 * Collects what the reasoning blocks of one assistant message add to the chat protocol's message, and the signatures of
 * the calls that follow them.
 */
export class ReasoningOfMessage {
  readonly #details: JsonObject[] = []
  #unsigned = ''
  #callSignature: string | null = null

  thinking(thinking: string, signature: string): void {
    const [kind, value] = split(signature)
    if (kind === UNSIGNED) this.#unsigned += thinking
    else if (value !== '')
      this.#details.push({ type: 'reasoning.text', text: thinking, signature: value, format: kind, index: this.#details.length })
  }

  redacted(data: string): void {
    const [kind, value] = split(data)
    if (kind === CALL) this.#callSignature = value
    else this.#details.push({ type: 'reasoning.encrypted', data: value, format: kind, index: this.#details.length })
  }

  /** Returns the signature for the next tool call, once. */
  consumeCallSignature(): JsonObject {
    const signature = this.#callSignature
    this.#callSignature = null
    return signature === null ? {} : { extra_content: { google: { thought_signature: signature } } }
  }

  get fields(): JsonObject {
    return {
      ...(this.#unsigned !== '' && { reasoning_content: this.#unsigned }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
    }
  }
}

function marked(kind: string, value: string): string {
  return kind === BARE ? value : `${kind}${SEPARATOR}${value}`
}

/** Splits a prefixed value. Signatures are base64, so a colon can only be ours. */
function split(value: string): readonly [kind: string, value: string] {
  const at = value.indexOf(SEPARATOR)
  return at < 0 ? [BARE, value] : [value.slice(0, at), value.slice(at + 1)]
}
