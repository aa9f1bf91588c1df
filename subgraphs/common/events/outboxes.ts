import type { Log } from '../process/log.ts'

/** Copies the pending contents of organizations' outboxes. A failure loses nothing: the contents stay pending. */
export abstract class Outboxes implements AsyncDisposable {
  readonly #log: Log
  /** Runs by organization: the current one, and the next one for callers that came during the current one. */
  readonly #runs = new Map<string, { current: Promise<void>; next?: Promise<void> }>()
  #isClosed = false

  constructor(log: Log) {
    this.#log = log
  }

  /** Copies everything that is pending when the call starts. Repeatable, also by several processes at once. */
  protected abstract copy(organizationId: string): Promise<void>

  /** Starts a copy in the background. */
  kick(organizationId: string): void {
    if (!this.#isClosed)
      this.drain(organizationId).catch((error) => this.#log.warn({ err: error, organizationId }, 'an outbox could not be copied'))
  }

  /**
   * Resolves when everything written before the call is copied. For each organization one run at a time, and at most
   * one more waits: the current one may have read before the caller's write.
   */
  drain(organizationId: string): Promise<void> {
    const run = this.#runs.get(organizationId)
    if (!run) return this.#start(organizationId)
    run.next ??= run.current.catch(() => undefined).then(() => this.#start(organizationId))
    return run.next
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled([...this.#runs.values()].map((run) => run.next ?? run.current))
  }

  #start(organizationId: string): Promise<void> {
    const run: { current: Promise<void>; next?: Promise<void> } = {
      current: this.copy(organizationId).finally(() => {
        if (!run.next) this.#runs.delete(organizationId)
      }),
    }
    this.#runs.set(organizationId, run)
    return run.current
  }
}
