import { ERRORS } from '../../schema/errors.ts'
import type { KisError } from '../../subgraphs/common/errors.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import { responseAnnotations } from '../chat/annotations.ts'
import type { ChargedUsage } from '../chat/chat-operations.ts'
import type { JsonObject } from '../http/route.ts'
import { FunctionCallItem, MessageItem, type OutputItem, type OutputSlot, ReasoningItem } from './items.ts'
import { echoSettings, toUsage } from './object.ts'
import { wantsSummary } from './request.ts'

interface ResponseEvent extends JsonObject {
  readonly type: string
  readonly sequence_number: number
}

interface ToolCallDelta {
  readonly index?: unknown
  readonly id?: unknown
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown } | null
  readonly extra_content?: unknown
}

interface Choice {
  readonly index?: unknown
  readonly delta?: JsonObject | null
  readonly logprobs?: { readonly content?: readonly JsonObject[] | null } | null
  readonly finish_reason?: unknown
}

/** The chat protocol's word for the end → why the response is incomplete. */
const INCOMPLETE = new Map<unknown, string>([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
])

/** Turns chunks of the chat protocol into a response and its events. */
export class ResponseWriter {
  readonly #ids: IdSource
  readonly #settings: JsonObject
  readonly #head: { readonly id: string; readonly object: 'response'; readonly created_at: number }
  readonly #reasoningForm: 'text' | 'summary'
  readonly #items: OutputItem[] = []
  /** By the index in the chat protocol, each with the engine's id. */
  readonly #calls = new Map<unknown, { readonly engineId: unknown; readonly item: FunctionCallItem }>()
  #model: unknown
  #serviceTier: unknown
  /** Indexes of the signed reasoning pieces already written. A chunk may repeat all earlier ones. */
  readonly #signed = new Set<unknown>()
  /** The item that grew last. An early end cuts it off. */
  #last: OutputItem | undefined
  #finishReason: string | null = null
  #reported: JsonObject | null = null
  #events: ResponseEvent[] = []
  #sequenceNumber = 0

  /**
   * @param body the caller's request
   * @param first the first chunk, which says when the answer began and which model gives it
   */
  constructor(ids: IdSource, body: JsonObject, { created, model }: JsonObject, nowMs: number) {
    this.#ids = ids
    this.#settings = echoSettings(body)
    this.#model = model ?? body.model
    this.#reasoningForm = wantsSummary(body) ? 'summary' : 'text'
    this.#head = { id: ids('resp'), object: 'response', created_at: Number.isSafeInteger(created) ? (created as number) : seconds(nowMs) }
  }

  start(): void {
    this.#emit('response.created', { response: this.#response({ status: 'in_progress' }) })
    this.#emit('response.in_progress', { response: this.#response({ status: 'in_progress' }) })
  }

  write({ model, service_tier: tier, usage, choices }: JsonObject): void {
    if (typeof model === 'string') this.#model = model
    if (typeof tier === 'string') this.#serviceTier = tier
    // Vendors that report usage in every chunk report the sum so far.
    if (typeof usage === 'object' && usage !== null) this.#reported = usage as JsonObject
    for (const choice of (Array.isArray(choices) ? choices : []) as readonly (Choice | null)[]) {
      if (!choice || (choice.index ?? 0) !== 0) continue
      if (choice.delta) this.#grow(choice.delta, choice.logprobs?.content ?? [])
      if (typeof choice.finish_reason === 'string') this.#finishReason = choice.finish_reason
    }
  }

  /** Ends the response, and gives it. */
  end(charged: ChargedUsage | null, nowMs: number): JsonObject {
    const reason = INCOMPLETE.get(this.#finishReason)
    if (!reason && this.#items.length === 0) this.#message().addText('', [])
    this.#closeAll(reason === undefined)
    const usage = toUsage(this.#reported, charged)
    const response = reason
      ? this.#response({ status: 'incomplete', incomplete_details: { reason }, usage })
      : this.#response({ status: 'completed', completed_at: Math.max(this.#head.created_at, seconds(nowMs)), usage })
    this.#emit(reason ? 'response.incomplete' : 'response.completed', { response })
    return response
  }

  /** Ends a response that failed. Its usage is the engine's report: without one a failed call costs nothing. */
  fail({ code, message, param }: KisError): void {
    this.#closeAll(false)
    const error = { code, message, param, type: ERRORS[code].type }
    this.#emit('response.failed', { response: this.#response({ status: 'failed', error, usage: toUsage(this.#reported, null) }) })
  }

  /** Gives the events since the last call. */
  drain(): readonly ResponseEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  #grow(delta: JsonObject, logprobs: readonly JsonObject[]): void {
    const { content, annotations, refusal, reasoning_content, reasoning, reasoning_details: details, tool_calls: calls } = delta
    // vLLM and DeepSeek use the first name, OpenRouter and newer vLLM the second.
    const thought = reasoning_content ?? reasoning
    if (typeof thought === 'string' && thought !== '') this.#reasoning().addText(thought)
    if (Array.isArray(details)) this.#sign(details)
    if (typeof content === 'string' && content !== '') this.#message().addText(content, logprobs)
    if (Array.isArray(annotations) && annotations.length > 0) this.#message().addAnnotations(responseAnnotations(annotations))
    if (typeof refusal === 'string' && refusal !== '') this.#message().addRefusal(refusal)
    if (Array.isArray(calls)) for (const call of calls as readonly (ToolCallDelta | null)[]) this.#call(call ?? {})
  }

  #sign(details: readonly (JsonObject | null)[]): void {
    const fresh = details.filter((detail, position) => !this.#signed.has(detail?.index ?? position))
    if (fresh.length > 0) this.#reasoning().addState({ details: fresh })
    for (const [position, detail] of details.entries()) this.#signed.add(detail?.index ?? position)
  }

  /**
   * The pieces of a call have its index, and may come between those of others. Some servers send each call in one
   * piece, all with index 0 but with ids of their own.
   */
  #call({ index = 0, id, function: called, extra_content: extra }: ToolCallDelta): void {
    const name = typeof called?.name === 'string' ? called.name : ''
    const known = this.#calls.get(index)
    const isSame = known !== undefined && (typeof id !== 'string' || id === '' || id === known.engineId)
    const item = isSame ? known.item : this.#openCall(index, id, name, extra)
    item.addName(name)
    this.#last = item
    if (typeof called?.arguments === 'string' && called.arguments !== '') item.addArguments(called.arguments)
  }

  #openCall(index: unknown, id: unknown, name: string, extra: unknown): FunctionCallItem {
    const callId = this.#isFree(id) ? id : this.#ids('call')
    if (typeof extra === 'object' && extra !== null) this.#reasoning().addState({ calls: { [callId]: extra } })
    this.#closeSpeech()
    const item = this.#add('fc', (slot) => new FunctionCallItem(slot, callId, name))
    this.#calls.set(index, { engineId: id, item })
    return item
  }

  /** Whether a call can be answered by this id. Not every engine gives each call one. */
  #isFree(id: unknown): id is string {
    return typeof id === 'string' && id !== '' && !this.#items.some((item) => item instanceof FunctionCallItem && item.callId === id)
  }

  #message(): MessageItem {
    return this.#speech(MessageItem) ?? this.#add('msg', (slot) => new MessageItem(slot))
  }

  #reasoning(): ReasoningItem {
    return this.#speech(ReasoningItem) ?? this.#add('rs', (slot) => new ReasoningItem(slot, this.#reasoningForm))
  }

  /** Gives the open item if it is of this kind. Any other open item that is not a call is closed. */
  #speech<Item extends OutputItem>(kind: new (...args: never[]) => Item): Item | undefined {
    const open = this.#items.find((item): item is Item => item.isOpen && item instanceof kind)
    if (!open) this.#closeSpeech()
    else this.#last = open
    return open
  }

  #closeSpeech(): void {
    for (const item of this.#items) if (!(item instanceof FunctionCallItem)) item.close('completed')
  }

  #add<Item extends OutputItem>(prefix: 'msg' | 'rs' | 'fc', create: (slot: OutputSlot) => Item): Item {
    const emit: OutputSlot['emit'] = (type, fields) => this.#emit(type, fields)
    const item = create({ id: this.#ids(prefix), index: this.#items.length, emit })
    this.#items.push(item)
    this.#last = item
    return item.open()
  }

  #closeAll(isWhole: boolean): void {
    for (const item of this.#items) item.close(isWhole || item !== this.#last ? 'completed' : 'incomplete')
  }

  #emit(type: string, fields: JsonObject): void {
    this.#events.push({ type, sequence_number: this.#sequenceNumber++, ...fields })
  }

  #response(rest: JsonObject): JsonObject {
    return {
      ...this.#head,
      completed_at: null,
      error: null,
      incomplete_details: null,
      model: this.#model,
      output: this.#items.map(({ object }) => object),
      usage: null,
      ...this.#settings,
      ...(this.#serviceTier !== undefined && { service_tier: this.#serviceTier }),
      ...rest,
    }
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000)
}

/** A whole completion as the single chunk of an equivalent stream. */
export function toChunk(completion: JsonObject): JsonObject {
  const choices = (Array.isArray(completion.choices) ? completion.choices : []) as readonly JsonObject[]
  return {
    ...completion,
    choices: choices.map(({ message, ...choice }) => {
      const { tool_calls: calls, ...rest } = (message ?? {}) as JsonObject
      const indexed = Array.isArray(calls) ? calls.map((call: JsonObject, index) => ({ ...call, index })) : []
      return { ...choice, delta: { ...rest, tool_calls: indexed } }
    }),
  }
}
