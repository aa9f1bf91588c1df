import { isDeepStrictEqual } from 'node:util'
import { KisError } from '../../../common/errors.ts'
import { firstChoiceDelta, readChoices, type ToolCall } from '../../domain/chat/chat-response.ts'
import { checkCount, MAX_SIGNED_LENGTH } from '../../domain/chat/complete-response.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { ChatCompletion } from '../calls/create-chat-completion.ts'
import { type ChatEvent, streamChatCompletion } from '../calls/stream-chat-completion.ts'
import type { CallDeps, CallRecord, RequestContext } from '../deps.ts'

/** The reply of a model in one step. */
export interface ModelReply {
  /** The model that replied: the requested one, or its fallback. */
  readonly modelId: string
  readonly text: string
  readonly refusal: string | null
  readonly toolCalls: readonly ToolCall[]
  readonly finishReason: string | null
  /** The message to send back with the results of its tools. It includes reasoning that the vendor signed. */
  readonly message: ProtocolObject
  readonly quantities: Quantities
  readonly cost: bigint
}

/**
 * Calls the model once. `onText` receives the text as it arrives. The record of `requestContext` stores the whole
 * reply.
 * @throws {KisError} `engine_error`: the engine sent no reply, or too much signed reasoning.
 * @throws {KisError} as `streamChatCompletion`.
 */
export async function callModel(
  deps: CallDeps,
  requestContext: RequestContext,
  request: ProtocolObject,
  onText: (text: string) => void,
): Promise<ModelReply> {
  const reply = new ReplyBuilder()
  const recordingContext = requestContext.record
    ? { ...requestContext, record: new ReplyRecord(requestContext.record, reply) }
    : requestContext
  for await (const { chunks, usage, cost, modelId } of streamChatCompletion(deps, recordingContext, request)) {
    const { text } = firstChoiceDelta(chunks)
    if (text) onText(text)
    const isLast = usage !== null && cost !== null
    if (!isLast || !recordingContext.record) for (const chunk of chunks) reply.add(chunk)
    if (isLast) return reply.finish(modelId!, usage.quantities, cost)
  }
  requestContext.signal.throwIfAborted()
  throw new KisError('engine_error', 'The engine returned no response.')
}

/** The record of a streamed call. It stores the whole reply instead of the last event. */
class ReplyRecord implements CallRecord {
  readonly #record: CallRecord
  readonly #reply: ReplyBuilder

  constructor(record: CallRecord, reply: ReplyBuilder) {
    this.#record = record
    this.#reply = reply
  }

  get isFreeWhenCut(): boolean {
    return this.#record.isFreeWhenCut
  }

  holding(holdId: string): Promise<void> {
    return this.#record.holding(holdId)
  }

  holdEnded(charged: bigint | null): void {
    this.#record.holdEnded(charged)
  }

  completed(usage: Usage, last: Pick<ChatEvent, 'chunks' | 'modelId'>): Promise<void> {
    for (const chunk of last.chunks) this.#reply.add(chunk)
    return this.#record.completed(usage, this.#reply.finish(last.modelId!, usage.quantities, 0n))
  }
}

/**
 * Converts a whole chat completion to a `ModelReply`.
 * @throws {KisError} `engine_error`: the engine sent too much signed reasoning.
 */
export function toModelReply({
  response,
  usage,
  cost,
  modelId,
}: Pick<ChatCompletion, 'response' | 'usage' | 'cost' | 'modelId'>): ModelReply {
  const reply = new ReplyBuilder()
  reply.add({ ...response, choices: readChoices(response).map((choice) => ({ ...choice, delta: choice.message })) })
  return reply.finish(modelId, usage.quantities, cost)
}

interface Delta {
  readonly content?: unknown
  readonly refusal?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning_details?: unknown
  readonly tool_calls?: unknown
}

/** Assembles a message from its deltas. */
class ReplyBuilder {
  #text = ''
  #refusal = ''
  #reasoning = ''
  #finishReason: string | null = null
  readonly #details: unknown[] = []
  /** Characters of signed reasoning, as JSON. */
  #signedLength = 0
  readonly #calls = new Map<number, { id: string; name: string; arguments: string; extra: ProtocolObject }>()

  add(chunk: ProtocolObject): void {
    for (const choice of readChoices(chunk)) {
      if ((choice.index ?? 0) !== 0) continue
      if (typeof choice.finish_reason === 'string') this.#finishReason = choice.finish_reason
      const { content, refusal, reasoning_content, reasoning_details, tool_calls } = (choice.delta ?? {}) as Delta
      if (typeof content === 'string') this.#text += content
      if (typeof refusal === 'string') this.#refusal += refusal
      if (typeof reasoning_content === 'string') this.#reasoning += reasoning_content
      if (Array.isArray(reasoning_details)) {
        this.#countSigned(reasoning_details)
        for (const detail of this.#fresh(reasoning_details)) this.#details.push(detail)
      }
      if (Array.isArray(tool_calls)) for (const [position, call] of tool_calls.entries()) this.#addCall(call, position)
    }
  }

  finish(modelId: string, quantities: Quantities, cost: bigint): ModelReply {
    const calls = [...this.#calls.entries()].sort(([a], [b]) => a - b).map(([, call]) => call)
    return {
      modelId,
      text: this.#text,
      refusal: this.#refusal || null,
      toolCalls: calls,
      finishReason: this.#finishReason,
      message: {
        role: 'assistant',
        content: this.#text || (calls.length > 0 ? null : ''),
        ...(this.#reasoning && { reasoning_content: this.#reasoning }),
        ...(this.#details.length > 0 && { reasoning_details: this.#details }),
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ id, name, arguments: text, extra }) => ({
            id,
            type: 'function',
            function: { name, arguments: text },
            ...extra,
          })),
        }),
      },
      quantities,
      cost,
    }
  }

  /** Returns the new items of a list. Some engines repeat all earlier signed pieces each time (`ai-sdk/chunks.ts`). */
  #fresh(details: readonly unknown[]): readonly unknown[] {
    const known = this.#details
    const isAll = details.length > known.length && known.every((detail, index) => isDeepStrictEqual(detail, details[index]))
    return isAll ? details.slice(known.length) : details
  }

  /** @throws {KisError} `engine_error`: the reply has too much signed reasoning */
  #countSigned(value: unknown): void {
    this.#signedLength += JSON.stringify(value).length
    checkCount(this.#signedLength, MAX_SIGNED_LENGTH, 'characters of signed reasoning')
  }

  #addCall(delta: unknown, position: number): void {
    const {
      index,
      id,
      function: called,
      extra_content,
    } = (delta ?? {}) as {
      index?: unknown
      id?: unknown
      function?: { name?: unknown; arguments?: unknown } | null
      extra_content?: unknown
    }
    const key = typeof index === 'number' ? index : position
    const call = this.#calls.get(key) ?? { id: '', name: '', arguments: '', extra: {} }
    this.#calls.set(key, call)
    if (typeof id === 'string' && id) call.id = id
    if (typeof called?.name === 'string') call.name += called.name
    if (typeof called?.arguments === 'string') call.arguments += called.arguments
    if (extra_content !== undefined) {
      this.#countSigned(extra_content)
      call.extra = { extra_content }
    }
  }
}
