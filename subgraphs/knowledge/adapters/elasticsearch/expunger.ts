import type { Client } from '@elastic/elasticsearch'
import type { Log } from '../../../common/process/log.ts'
import { described } from './client.ts'

export interface ExpungeTimes {
  /** From a deletion: the server keeps what was deleted for its replicas until their leases move on, every 30 s. */
  readonly afterMs: number
  /** From one rewriting to the next. A segment has up to 5 GB, and is rewritten whole. */
  readonly everyMs: number
}

const TIMES: ExpungeTimes = { afterMs: 60_000, everyMs: 900_000 }
/** Longer rewritings go on without anybody who waits. */
const TIMEOUT_MS = 600_000

/**
 * Rewrites the segments that hold something deleted, in the background and one time after the other: Elasticsearch only marks what is deleted, and
 * may keep it in a segment for good. What a process before has left is expunged after the start.
 */
export class Expunger implements Disposable {
  readonly #client: Client
  readonly #index: string
  readonly #log: Log
  readonly #times: ExpungeTimes
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #isRunning = false
  #isWanted = false
  #deletedAt = 0
  #notBefore = 0

  constructor(client: Client, index: string, log: Log, times: ExpungeTimes = TIMES) {
    this.#client = client
    this.#index = index
    this.#log = log
    this.#times = times
    this.deleted()
  }

  /** Something was deleted. */
  deleted(): void {
    this.#deletedAt = performance.now()
    this.#schedule()
  }

  #schedule(): void {
    this.#isWanted = true
    if (this.#timer || this.#isRunning || this.#closing.signal.aborted) return
    const { afterMs } = this.#times
    this.#timer = setTimeout(() => this.#expunge(), Math.max(afterMs, this.#notBefore - performance.now()))
    this.#timer.unref()
  }

  [Symbol.dispose](): void {
    this.#closing.abort()
    clearTimeout(this.#timer)
  }

  async #expunge(): Promise<void> {
    this.#timer = undefined
    this.#isRunning = true
    // What was deleted a moment ago is kept by the leases still.
    this.#isWanted = performance.now() - this.#deletedAt < this.#times.afterMs
    try {
      await this.#client.indices.forcemerge(
        { index: this.#index, only_expunge_deletes: true, ignore_unavailable: true },
        { requestTimeout: TIMEOUT_MS, maxRetries: 0, signal: this.#closing.signal, ignore: [404] },
      )
    } catch (error) {
      this.#isWanted = true
      if (!this.#closing.signal.aborted)
        this.#log.warn({ error: described(error) }, 'what was deleted is still in segments of Elasticsearch')
    }
    this.#isRunning = false
    this.#notBefore = performance.now() + this.#times.everyMs
    if (this.#isWanted) this.#schedule()
  }
}
