import type { JsonObject } from '../http/route.ts'
import { encodeReasoning, type ReasoningState } from './reasoning.ts'

/** An item's position in the output, and where its events go. */
export interface OutputSlot {
  readonly id: string
  /** Counts from 0. */
  readonly index: number
  readonly emit: (type: string, fields: JsonObject) => void
}

type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** One item of a response's output. It grows, and is closed once. */
export abstract class OutputItem {
  readonly #slot: OutputSlot
  #status: ItemStatus = 'in_progress'

  constructor(slot: OutputSlot) {
    this.#slot = slot
  }

  get id(): string {
    return this.#slot.id
  }

  get isOpen(): boolean {
    return this.#status === 'in_progress'
  }

  /** The item as the output contains it. */
  get object(): JsonObject {
    return { id: this.id, ...this.fields(), status: this.#status }
  }

  open(): this {
    this.#slot.emit('response.output_item.added', { output_index: this.#slot.index, item: this.object })
    return this
  }

  close(status: Exclude<ItemStatus, 'in_progress'>): void {
    if (!this.isOpen) return
    this.closeContent()
    this.#status = status
    this.#slot.emit('response.output_item.done', { output_index: this.#slot.index, item: this.object })
  }

  /** Emits an event about the content of the item. */
  protected emit(type: string, fields: JsonObject): void {
    this.#slot.emit(type, { item_id: this.id, output_index: this.#slot.index, ...fields })
  }

  protected abstract fields(): JsonObject
  protected abstract closeContent(): void
}

interface TextPart {
  readonly type: 'output_text'
  text: string
  readonly annotations: JsonObject[]
  readonly logprobs: unknown[]
}
interface RefusalPart {
  readonly type: 'refusal'
  refusal: string
}

/** Text of the model, or its refusal. */
export class MessageItem extends OutputItem {
  readonly #parts: (TextPart | RefusalPart)[] = []

  addText(delta: string, logprobs: readonly JsonObject[]): void {
    let part = this.#parts.at(-1)
    if (part?.type !== 'output_text') {
      part = { type: 'output_text', text: '', annotations: [], logprobs: [] }
      this.#openPart(part)
    }
    part.text += delta
    part.logprobs.push(...logprobs)
    if (delta !== '') this.emit('response.output_text.delta', { content_index: this.#parts.length - 1, delta, logprobs })
  }

  /** Adds citations of the text so far. */
  addAnnotations(annotations: readonly JsonObject[]): void {
    const part = this.#parts.at(-1)
    if (part?.type !== 'output_text') return
    for (const annotation of annotations) {
      const position = { content_index: this.#parts.length - 1, annotation_index: part.annotations.length }
      part.annotations.push(annotation)
      this.emit('response.output_text.annotation.added', { ...position, annotation })
    }
  }

  addRefusal(delta: string): void {
    let part = this.#parts.at(-1)
    if (part?.type !== 'refusal') {
      part = { type: 'refusal', refusal: '' }
      this.#openPart(part)
    }
    part.refusal += delta
    this.emit('response.refusal.delta', { content_index: this.#parts.length - 1, delta })
  }

  protected override fields(): JsonObject {
    return { type: 'message', role: 'assistant', content: this.#parts.map((part) => ({ ...part })) }
  }

  protected override closeContent(): void {
    const part = this.#parts.at(-1)
    if (!part) return
    const content_index = this.#parts.length - 1
    if (part.type === 'refusal') this.emit('response.refusal.done', { content_index, refusal: part.refusal })
    else this.emit('response.output_text.done', { content_index, text: part.text, logprobs: part.logprobs })
    this.emit('response.content_part.done', { content_index, part: { ...part } })
  }

  #openPart(part: TextPart | RefusalPart): void {
    this.closeContent()
    this.#parts.push(part)
    const empty = part.type === 'refusal' ? part : { ...part, annotations: [], logprobs: [] }
    this.emit('response.content_part.added', { content_index: this.#parts.length - 1, part: { ...empty } })
  }
}

/** A call of a function that the model asks for. */
export class FunctionCallItem extends OutputItem {
  readonly callId: string
  #name: string
  #arguments = ''

  constructor(slot: OutputSlot, callId: string, name: string) {
    super(slot)
    this.callId = callId
    this.#name = name
  }

  /** For engines that send the name late. */
  addName(name: string): void {
    if (this.#name === '') this.#name = name
  }

  addArguments(delta: string): void {
    this.#arguments += delta
    this.emit('response.function_call_arguments.delta', { delta })
  }

  protected override fields(): JsonObject {
    return { type: 'function_call', call_id: this.callId, name: this.#name, arguments: this.#arguments }
  }

  protected override closeContent(): void {
    this.emit('response.function_call_arguments.done', { name: this.#name, arguments: this.#arguments })
  }
}

/** Names of the two forms of reasoning text. */
const FORMS = {
  text: { part: 'reasoning_text', added: 'content_part.added', delta: 'reasoning_text.delta', index: 'content_index' },
  summary: {
    part: 'summary_text',
    added: 'reasoning_summary_part.added',
    delta: 'reasoning_summary_text.delta',
    index: 'summary_index',
  },
} as const

/** The model's reasoning, as far as the engine shows it, and what the engine wants back of it. */
export class ReasoningItem extends OutputItem {
  readonly #form: (typeof FORMS)[keyof typeof FORMS]
  readonly #details: unknown[] = []
  readonly #calls: Record<string, unknown> = {}
  #text: string | null = null

  constructor(slot: OutputSlot, form: keyof typeof FORMS) {
    super(slot)
    this.#form = FORMS[form]
  }

  addText(delta: string): void {
    const { part, added, delta: deltaType, index } = this.#form
    if (this.#text === null) this.emit(`response.${added}`, { [index]: 0, part: { type: part, text: '' } })
    this.#text = (this.#text ?? '') + delta
    this.emit(`response.${deltaType}`, { [index]: 0, delta })
  }

  addState({ details = [], calls = {} }: Partial<ReasoningState>): void {
    this.#details.push(...details)
    Object.assign(this.#calls, calls)
  }

  protected override fields(): JsonObject {
    const parts = this.#text === null ? [] : [{ type: this.#form.part, text: this.#text }]
    return {
      type: 'reasoning',
      summary: this.#form === FORMS.summary ? parts : [],
      ...(this.#form === FORMS.text && { content: parts }),
      encrypted_content: encodeReasoning({ details: this.#details, calls: this.#calls }),
    }
  }

  protected override closeContent(): void {
    if (this.#text === null) return
    const { part, added, delta, index } = this.#form
    this.emit(`response.${delta.replace('.delta', '.done')}`, { [index]: 0, text: this.#text })
    this.emit(`response.${added.replace('.added', '.done')}`, { [index]: 0, part: { type: part, text: this.#text } })
  }
}
