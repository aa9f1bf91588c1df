import type { ProtocolObject } from '../../ports/engines.ts'

/** Whether a streamed answer that ended without the end mark lacks anything. */
export class StreamCompleteness {
  readonly #choices: number
  readonly #finished = new Set<unknown>()
  readonly #open = new Set<unknown>()
  #usage = false

  /** `choices`: how many the request asks for. */
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

  /** Every choice has its finish reason, and the usage is there. */
  get complete(): boolean {
    return this.#usage && this.#open.size === 0 && this.#finished.size >= this.#choices
  }
}
