import { KisError } from '../../subgraphs/common/errors.ts'
import { messageCitations } from '../chat/annotations.ts'
import type { ChargedUsage } from '../chat/chat-operations.ts'
import type { JsonObject } from '../http/route.ts'
import { describeEnd, type Ending, messageHead, messageUsage, readReasoningText, textBlock, toolUseBlock } from './message-response.ts'
import { blockOfCall, blockOfDetail, unsignedSignature } from './reasoning.ts'

export interface MessageEvent extends JsonObject {
  readonly type: string
}

interface OpenBlock {
  readonly index: number
  readonly kind: 'text' | 'thinking' | 'tool_use'
  /** The call's position among the calls of the answer. */
  readonly call: number | null
}

/** Before the first chunk no usage is known. The last events give it, for the whole message. */
const NO_USAGE: ChargedUsage = { promptTokens: 0, cachedPromptTokens: 0, cacheWritePromptTokens: 0, completionTokens: 0, totalTokens: 0 }

/**
 * Turns chunks of the chat protocol into the events of one message: block after block, each closed before the next
 * begins.
 */
export class MessageEvents {
  readonly #hidesThinking: boolean
  readonly #newId: () => string
  readonly #ending: Ending = { finishReason: null, stopText: null, refusal: '', hasToolCalls: false }
  #isStarted = false
  #blocks = 0
  #open: OpenBlock | null = null
  #calls = 0
  /** Indexes of the signed reasoning pieces already written. A chunk may repeat all earlier ones. */
  readonly #signed = new Set<number>()
  #reported: unknown = null

  /** @param newId names calls that the engine left without an id */
  constructor(hidesThinking: boolean, newId: () => string) {
    this.#hidesThinking = hidesThinking
    this.#newId = newId
  }

  /**
   * The events of one chunk.
   * @throws {KisError} the engine continued a call that had ended
   */
  write(chunk: JsonObject): readonly MessageEvent[] {
    if (chunk.usage) this.#reported = chunk.usage
    const events = this.#isStarted ? [] : this.#start(chunk)
    const choices = Array.isArray(chunk.choices) ? (chunk.choices as readonly JsonObject[]) : []
    const choice = choices.find(({ index }) => (index ?? 0) === 0)
    if (!choice) return events
    const delta = (choice.delta ?? {}) as JsonObject
    this.#ending.finishReason = choice.finish_reason ?? this.#ending.finishReason
    this.#ending.stopText = choice.stop_reason ?? this.#ending.stopText
    if (typeof delta.refusal === 'string') this.#ending.refusal += delta.refusal
    return [
      ...events,
      ...this.#reasoning(delta),
      ...this.#text(delta.content),
      ...this.#citations(delta.annotations),
      ...this.#toolCalls(delta.tool_calls),
    ]
  }

  /** The last events, with the charged usage. */
  end(usage: ChargedUsage): readonly MessageEvent[] {
    const { stop_reason, stop_sequence, stop_details } = describeEnd(this.#ending)
    return [
      ...this.#close(),
      {
        type: 'message_delta',
        delta: { stop_reason, stop_sequence, stop_details, container: null },
        usage: messageUsage(usage, this.#reported),
      },
      { type: 'message_stop' },
    ]
  }

  #start({ id, model }: JsonObject): readonly MessageEvent[] {
    this.#isStarted = true
    const unknown = { content: [], stop_reason: null, stop_sequence: null, stop_details: null }
    return [
      { type: 'message_start', message: { ...messageHead(id, model), ...unknown, usage: messageUsage(NO_USAGE, null) } },
      { type: 'ping' },
    ]
  }

  #text(text: unknown): readonly MessageEvent[] {
    if (typeof text !== 'string' || text === '') return []
    return [...this.#enter('text', textBlock('')), this.#delta({ type: 'text_delta', text })]
  }

  /** The citations of the open block's text. */
  #citations(annotations: unknown): readonly MessageEvent[] {
    if (this.#open?.kind !== 'text') return []
    return messageCitations(annotations).map((citation) => this.#delta({ type: 'citations_delta', citation }))
  }

  #reasoning(delta: JsonObject): readonly MessageEvent[] {
    const events: MessageEvent[] = []
    const text = readReasoningText(delta)
    if (text !== '') {
      events.push(...this.#enter('thinking', { type: 'thinking', thinking: '', signature: '' }))
      if (!this.#hidesThinking) events.push(this.#delta({ type: 'thinking_delta', thinking: text }))
    }
    const details = Array.isArray(delta.reasoning_details) ? (delta.reasoning_details as readonly (JsonObject | null)[]) : []
    for (const [position, detail] of details.entries()) {
      const block = blockOfDetail(detail)
      const index = typeof detail?.index === 'number' ? detail.index : position
      if (!block || this.#signed.has(index)) continue
      this.#signed.add(index)
      if (block.type === 'redacted_thinking') events.push(...this.#whole({ ...block }))
      else {
        // The text came earlier, unless the vendor sends the signature alone.
        events.push(...this.#enter('thinking', { type: 'thinking', thinking: '', signature: '' }))
        events.push(this.#delta({ type: 'signature_delta', signature: block.signature }))
        events.push(...this.#close(true))
      }
    }
    return events
  }

  #toolCalls(calls: unknown): readonly MessageEvent[] {
    if (!Array.isArray(calls)) return []
    return (calls as readonly JsonObject[]).flatMap((call) => {
      const { name, arguments: text } = (call.function ?? {}) as JsonObject
      const at = typeof call.index === 'number' ? call.index : 0
      const events = this.#open?.call === at ? [] : this.#openCall(call, at, name)
      return typeof text === 'string' && text !== '' ? [...events, this.#delta({ type: 'input_json_delta', partial_json: text })] : events
    })
  }

  #openCall(call: JsonObject, at: number, name: unknown): readonly MessageEvent[] {
    if (at < this.#calls)
      throw new KisError('engine_error', 'The engine mixed the pieces of several tool calls, which this stream cannot represent.')
    this.#calls = at + 1
    this.#ending.hasToolCalls = true
    const signature = blockOfCall(call)
    const before = signature ? this.#whole({ ...signature }) : []
    return [...before, ...this.#close(), this.#startBlock('tool_use', toolUseBlock(call.id ?? this.#newId(), name, {}), at)]
  }

  /** Continues the open block of this kind, or begins one. */
  #enter(kind: 'text' | 'thinking', block: JsonObject): readonly MessageEvent[] {
    if (this.#open?.kind === kind) return []
    return [...this.#close(), this.#startBlock(kind, block, null)]
  }

  #startBlock(kind: OpenBlock['kind'], content_block: JsonObject, call: number | null): MessageEvent {
    const index = this.#blocks
    this.#blocks += 1
    this.#open = { index, kind, call }
    return { type: 'content_block_start', index, content_block }
  }

  /** Writes a block that comes in one piece. */
  #whole(content_block: JsonObject): readonly MessageEvent[] {
    const before = this.#close()
    const index = this.#blocks
    this.#blocks += 1
    return [...before, { type: 'content_block_start', index, content_block }, { type: 'content_block_stop', index }]
  }

  #delta(delta: JsonObject): MessageEvent {
    return { type: 'content_block_delta', index: this.#open?.index, delta }
  }

  #close(isSigned = false): readonly MessageEvent[] {
    const open = this.#open
    if (!open) return []
    const signature =
      open.kind === 'thinking' && !isSigned ? [this.#delta({ type: 'signature_delta', signature: unsignedSignature() })] : []
    this.#open = null
    return [...signature, { type: 'content_block_stop', index: open.index }]
  }
}
