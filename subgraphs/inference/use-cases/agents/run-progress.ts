import type { RunEvent, RunStep } from '../../domain/agents/run.ts'
import type { RunEventWriter } from '../runs/run-log.ts'

/**
 * Writes the events of an agent's run, each once. A process that continues a run repeats it from the beginning with the
 * answers that are kept, and does not write the events that an earlier process wrote.
 */
export class RunProgress {
  readonly #steps: RunStep[] = []
  readonly #stepsBefore: readonly RunStep[]
  readonly #writer: RunEventWriter<RunEvent>
  /** The number of times that an event was written before and has not come again, by the event's name. */
  readonly #writtenBefore = new Map<string, number>()
  /** By step, the text that was written before and has not come again. */
  readonly #textBefore = new Map<number, string>()
  /** Steps that have written text. */
  readonly #withText = new Set<number>()

  constructor(writer: RunEventWriter<RunEvent>) {
    this.#writer = writer
    this.#stepsBefore = writer.before.flatMap((event) => (event.type === 'usage' ? event.step : []))
    for (const event of writer.before) {
      if (event.type === 'text_delta') {
        this.#withText.add(event.number)
        this.#textBefore.set(event.number, (this.#textBefore.get(event.number) ?? '') + event.text)
      } else {
        // The step began again, without the text that it had.
        if (event.type === 'step_started') this.#textBefore.delete(event.number)
        this.#writtenBefore.set(nameEvent(event), (this.#writtenBefore.get(nameEvent(event)) ?? 0) + 1)
      }
    }
  }

  /**
   * The receipt so far, in the order of the calls. While a repeated run has fewer steps than before, it is the receipt
   * from before.
   */
  get receipt(): readonly RunStep[] {
    return this.#steps.length < this.#stepsBefore.length ? this.#stepsBefore : this.#steps
  }

  report(event: RunEvent): void {
    if (event.type === 'text_delta') {
      this.#reportText(event.number, event.text)
      return
    }
    if (event.type === 'usage') this.#steps.push(event.step)
    const name = nameEvent(event)
    const times = this.#writtenBefore.get(name) ?? 0
    if (times > 0) this.#writtenBefore.set(name, times - 1)
    else this.#writer.write(event)
  }

  /**
   * Called when the model is asked. A second `step_started` with the same number tells followers to discard the text of
   * the step.
   */
  modelCalled(number: number): void {
    if (!this.#withText.delete(number)) return
    this.#textBefore.delete(number)
    this.#writer.write({ type: 'step_started', number })
  }

  flushed(): Promise<void> {
    return this.#writer.flushed()
  }

  #reportText(number: number, text: string): void {
    const before = this.#textBefore.get(number) ?? ''
    this.#textBefore.set(number, before.slice(text.length))
    const rest = text.slice(before.length)
    if (rest === '') return
    this.#withText.add(number)
    this.#writer.write({ type: 'text_delta', number, text: rest })
  }
}

/** Returns a name that identifies an event within its run. Only repeated searches with the same query share a name. */
function nameEvent(event: RunEvent): string {
  switch (event.type) {
    case 'step_started':
    case 'text_delta':
      return `${event.type} ${event.number}`
    case 'tool_call':
      return `${event.type} ${event.number} ${event.id}`
    case 'search':
      return `${event.type} ${event.number} ${event.collectionId} ${event.query}`
    case 'usage': {
      const { kind, number } = event.step
      return kind === 'search' ? `usage search ${number} ${event.step.collectionId} ${event.step.query}` : `usage ${kind} ${number}`
    }
    default:
      return event.type
  }
}
