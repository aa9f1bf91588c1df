import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { MAX_SIGNED_LENGTH } from '../../domain/chat/complete-response.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { EngineErrors } from '../vendor/engine-errors.ts'
import { classifyEnd, type ResponseFacts, readRefusal, toCreated, toExtraContent, toFinishReason, toStopText } from './completion.ts'
import { type ReasoningDetail, toReasoningDetail } from './reasoning-details.ts'
import { toUsage } from './usage.ts'
import type { Vendor } from './vendors.ts'

interface OpenCall {
  readonly index: number
  /** Whether any of the call's arguments were sent on. */
  hasArguments: boolean
}

/** Converts the parts of the SDK's stream to the protocol's chunks. */
export class ChunkWriter {
  readonly #vendor: Vendor
  readonly #errors: EngineErrors
  #head: ProtocolObject
  readonly #facts: ResponseFacts
  #hasRole = false
  readonly #calls = new Map<string, OpenCall>()
  /** Text of the open pieces of reasoning, by the SDK's ids. */
  readonly #reasoning = new Map<string, string>()
  #details: readonly ReasoningDetail[] = []
  #detailsLength = 0
  #signedLength = 0
  #finish: LanguageModelV4FinishReason | undefined

  constructor(vendor: Vendor, facts: ResponseFacts, errors: EngineErrors) {
    this.#vendor = vendor
    this.#errors = errors
    this.#facts = facts
    this.#head = { id: facts.id, object: 'chat.completion.chunk', created: facts.created, model: facts.model }
  }

  /** How the response ended. Undefined until then. */
  get finish(): LanguageModelV4FinishReason | undefined {
    return this.#finish
  }

  /** Returns the chunks for one part; none for most kinds. */
  write(part: LanguageModelV4StreamPart): readonly ProtocolObject[] {
    switch (part.type) {
      case 'response-metadata':
        // The same fields in every chunk of a response.
        if (!this.#hasRole) {
          const created = toCreated(part.timestamp, this.#facts)
          this.#head = { ...this.#head, id: part.id ?? this.#facts.id, created, model: part.modelId ?? this.#facts.model }
        }
        return []
      case 'text-delta':
        return part.delta === '' ? [] : this.#deltas({ content: part.delta })
      case 'reasoning-start':
        this.#reasoning.set(part.id, '')
        return this.#sign(part.id, part.providerMetadata)
      case 'reasoning-delta': {
        this.#reasoning.set(part.id, (this.#reasoning.get(part.id) ?? '') + part.delta)
        const text = part.delta === '' ? [] : this.#deltas({ reasoning_content: part.delta })
        return [...text, ...this.#sign(part.id, part.providerMetadata)]
      }
      case 'reasoning-end':
        return this.#sign(part.id, part.providerMetadata)
      case 'tool-input-start':
        return part.providerExecuted ? [] : this.#openCall(part.id, part.toolName, '', part.providerMetadata)
      case 'tool-input-delta':
        return this.#arguments(part.id, part.delta)
      case 'tool-call':
        if (part.providerExecuted) return []
        if (!this.#calls.has(part.toolCallId))
          return this.#openCall(part.toolCallId, part.toolName, part.input || '{}', part.providerMetadata)
        // A call without arguments has no pieces.
        return this.#calls.get(part.toolCallId)!.hasArguments ? [] : this.#arguments(part.toolCallId, part.input || '{}')
      case 'finish':
        return this.#end(part)
      default:
        return []
    }
  }

  #openCall(id: string, name: string, text: string, metadata: Parameters<typeof toExtraContent>[0]): readonly ProtocolObject[] {
    const index = this.#calls.size
    this.#calls.set(id, { index, hasArguments: text !== '' })
    return this.#deltas({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: text }, ...toExtraContent(metadata) }],
    })
  }

  #arguments(id: string, text: string): readonly ProtocolObject[] {
    const call = this.#calls.get(id)
    if (!call || text === '') return []
    call.hasArguments = true
    return this.#deltas({ tool_calls: [{ index: call.index, function: { arguments: text } }] })
  }

  /**
   * Sends all signed pieces so far, because clients store only the last value of a field that they do not know.
   * @throws {KisError} `engine_error`: the pieces are too many
   */
  #sign(id: string, metadata: Parameters<typeof toExtraContent>[0]): readonly ProtocolObject[] {
    const detail = toReasoningDetail(this.#vendor, this.#reasoning.get(id) ?? '', metadata, this.#details.length)
    if (!detail) return []
    this.#detailsLength += JSON.stringify(detail).length
    this.#signedLength += this.#detailsLength
    if (this.#signedLength > MAX_SIGNED_LENGTH) throw this.#errors.stopped('returned too much signed reasoning')
    this.#details = [...this.#details, detail]
    return this.#deltas({ reasoning_details: this.#details })
  }

  #end({ finishReason, usage, providerMetadata }: Extract<LanguageModelV4StreamPart, { type: 'finish' }>): readonly ProtocolObject[] {
    this.#finish = finishReason
    const reported = toUsage(this.#vendor, usage)
    const usageChunk = reported ? [{ ...this.#head, choices: [], usage: reported }] : []
    if (classifyEnd(finishReason) !== 'whole') return usageChunk
    const refusal = readRefusal(this.#vendor, providerMetadata)
    const choice = {
      index: 0,
      delta: {},
      logprobs: null,
      finish_reason: toFinishReason(finishReason, this.#calls.size > 0),
      ...toStopText(this.#vendor, providerMetadata),
    }
    return [...(refusal === null ? this.#deltas() : this.#deltas({ refusal })), { ...this.#head, choices: [choice] }, ...usageChunk]
  }

  /**
   * Returns a chunk with the delta, after the chunk that opens the response. Without a delta, only the opening chunk.
   */
  #deltas(delta?: ProtocolObject): readonly ProtocolObject[] {
    const all = this.#hasRole ? [] : [{ role: 'assistant', content: '', refusal: null }]
    this.#hasRole = true
    return [...all, ...(delta ? [delta] : [])].map((each) => ({
      ...this.#head,
      choices: [{ index: 0, delta: each, logprobs: null, finish_reason: null }],
    }))
  }
}
