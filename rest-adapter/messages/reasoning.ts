import type { JsonObject } from '../http/route.ts'

/**
 * Reasoning to send back to the vendor travels in the two opaque fields that clients of the Messages API return
 * unchanged: `signature` of a thinking block and `data` of a redacted block. The chat protocol also says which engine
 * signed it. These fields have no place for that, so the engine's kind precedes the signature. Anthropic's signatures
 * have no prefix, so that a conversation can move between Anthropic and this service.
 */
const SEPARATOR = ':'
const BARE = 'anthropic'
/** In place of an engine: reasoning that nobody signed. Some engines want it back to continue after calls of tools. */
const UNSIGNED = 'unsigned'
/**
 * In place of an engine: Gemini's signature of one call of a tool. It precedes the call, in a redacted block of its
 * own.
 */
const CALL = 'google-call'

export interface ReasoningBlock {
  readonly type: 'thinking' | 'redacted_thinking'
  readonly thinking?: string
  readonly signature?: string
  readonly data?: string
}

/** The block for one of the chat protocol's `reasoning_details`; null when no vendor signed it. */
export function blockOfDetail(detail: unknown): ReasoningBlock | null {
  const { text, signature, data, format } = (detail ?? {}) as JsonObject
  const kind = typeof format === 'string' ? format : BARE
  if (typeof signature === 'string' && signature !== '')
    return { type: 'thinking', thinking: typeof text === 'string' ? text : '', signature: marked(kind, signature) }
  if (typeof data === 'string' && data !== '') return { type: 'redacted_thinking', data: marked(kind, data) }
  return null
}

export function unsignedSignature(): string {
  return marked(UNSIGNED, '')
}

/** The block with the signature of one call, if the chat protocol's call has one. */
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

  /** Gives the signature for the next call of a tool, once. */
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

/** Signatures are base64, so a colon can only be ours. */
function split(value: string): readonly [kind: string, value: string] {
  const at = value.indexOf(SEPARATOR)
  return at < 0 ? [BARE, value] : [value.slice(0, at), value.slice(at + 1)]
}
