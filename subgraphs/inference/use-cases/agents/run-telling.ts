import type { RunEvent, RunStep } from '../../domain/agents/run.ts'
import type { RunEventWriter } from '../runs/run-log.ts'

/**
 * Tells an agent's run, each event once. A process that goes on with a run goes through it from the beginning, with the
 * answers that are kept: what an earlier process has told is not told again.
 */
export class RunTelling {
  readonly #steps: RunStep[] = []
  readonly #stepsBefore: readonly RunStep[]
  readonly #writer: RunEventWriter<RunEvent>
  /** How often an event was told before, by its name. */
  readonly #toldBefore = new Map<string, number>()
  /** By step, the text that was told before and has not come again. */
  readonly #textBefore = new Map<number, string>()
  /** Steps of which text was told. */
  readonly #withText = new Set<number>()

  constructor(writer: RunEventWriter<RunEvent>) {
    this.#writer = writer
    this.#stepsBefore = writer.before.flatMap((event) => (event.type === 'usage' ? event.step : []))
    for (const event of writer.before) {
      if (event.type === 'text_delta') {
        this.#withText.add(event.number)
        this.#textBefore.set(event.number, (this.#textBefore.get(event.number) ?? '') + event.text)
      } else {
        // The step was begun again, without the text that it had.
        if (event.type === 'step_started') this.#textBefore.delete(event.number)
        this.#toldBefore.set(nameEvent(event), (this.#toldBefore.get(nameEvent(event)) ?? 0) + 1)
      }
    }
  }

  /**
   * The receipt so far, in the order of the calls; of a run that has not come as far again as it was, as far as it was.
   */
  get receipt(): readonly RunStep[] {
    return this.#steps.length < this.#stepsBefore.length ? this.#stepsBefore : this.#steps
  }

  tell(event: RunEvent): void {
    if (event.type === 'text_delta') {
      this.#tellText(event.number, event.text)
      return
    }
    if (event.type === 'usage') this.#steps.push(event.step)
    const name = nameEvent(event)
    const times = this.#toldBefore.get(name) ?? 0
    if (times > 0) this.#toldBefore.set(name, times - 1)
    else this.#writer.write(event)
  }

  /** The model is asked. A second `step_started` with the number says that the text told of the step does not count. */
  asks(number: number): void {
    if (!this.#withText.delete(number)) return
    this.#textBefore.delete(number)
    this.#writer.write({ type: 'step_started', number })
  }

  flushed(): Promise<void> {
    return this.#writer.flushed()
  }

  #tellText(number: number, text: string): void {
    const before = this.#textBefore.get(number) ?? ''
    this.#textBefore.set(number, before.slice(text.length))
    const rest = text.slice(before.length)
    if (rest === '') return
    this.#withText.add(number)
    this.#writer.write({ type: 'text_delta', number, text: rest })
  }
}

/** What tells an event from the others of its run, but for searches for the same. */
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
