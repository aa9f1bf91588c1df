import { TRANSCRIPT_DONE } from '../../domain/transcription/transcript-events.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Tracks whether a streamed response is complete, event by event. */
export interface Completeness {
  see(event: ProtocolObject): void
  /** True if nothing is missing, with or without the end mark. */
  readonly complete: boolean
  /** True if nothing follows, so that no end mark is awaited. */
  readonly over: boolean
}

/** Tracks a chat response. */
export class ChatCompleteness implements Completeness {
  readonly over = false
  readonly #choices: number
  readonly #finished = new Set<unknown>()
  readonly #open = new Set<unknown>()
  #usage = false

  /** `choices`: the number of requested choices. */
  constructor(choices: number) {
    this.#choices = choices
  }

  see({ choices, usage }: ProtocolObject): void {
    if (usage) this.#usage = true
    if (!Array.isArray(choices)) return
    for (const choice of choices) {
      const { index, finish_reason: finishReason } = (choice ?? {}) as { index?: unknown; finish_reason?: unknown }
      if (finishReason) {
        this.#finished.add(index)
        this.#open.delete(index)
      } else if (!this.#finished.has(index)) {
        this.#open.add(index)
      }
    }
  }

  /** True once every choice has its finish reason and the usage has arrived. */
  get complete(): boolean {
    return this.#usage && this.#open.size === 0 && this.#finished.size >= this.#choices
  }
}

/** Tracks a transcript, whose last event completes it. */
export class TranscriptCompleteness implements Completeness {
  #isDone = false

  see({ type }: ProtocolObject): void {
    if (type === TRANSCRIPT_DONE) this.#isDone = true
  }

  get complete(): boolean {
    return this.#isDone
  }

  get over(): boolean {
    return this.#isDone
  }
}
