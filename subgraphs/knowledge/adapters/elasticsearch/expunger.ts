import type { Client } from '@elastic/elasticsearch'
import type { Log } from '../../../common/process/log.ts'
import { described } from './client.ts'

export interface ExpungeTimes {
  /** From a deletion: the server keeps deleted data for its replicas until their leases advance, every 30 s. */
  readonly afterMs: number
  /** Between two rewrites. A segment has up to 5 GB, and is rewritten as a whole. */
  readonly everyMs: number
}

const TIMES: ExpungeTimes = { afterMs: 60_000, everyMs: 900_000 }
/** Longer rewrites go on without a caller. */
const TIMEOUT_MS = 600_000

/**
 * Rewrites segments with deleted data, in the background and one at a time: Elasticsearch only marks what is deleted,
 * and may keep it in a segment forever. Data from before the start is expunged after it.
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

  /** Call it after a deletion. */
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
    // The leases still keep what was deleted a moment ago.
    this.#isWanted = performance.now() - this.#deletedAt < this.#times.afterMs
    try {
      await this.#client.indices.forcemerge(
        { index: this.#index, only_expunge_deletes: true, ignore_unavailable: true },
        { requestTimeout: TIMEOUT_MS, maxRetries: 0, signal: this.#closing.signal, ignore: [404] },
      )
    } catch (error) {
      this.#isWanted = true
      if (!this.#closing.signal.aborted) this.#log.warn({ error: described(error) }, 'deleted data is still in segments of Elasticsearch')
    }
    this.#isRunning = false
    this.#notBefore = performance.now() + this.#times.everyMs
    if (this.#isWanted) this.#schedule()
  }
}
