import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import { type Clock, systemClock } from '../../../common/process/clock.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { keepWorking } from '../../../common/process/keep-working.ts'
import type { Log } from '../../../common/process/log.ts'
import type { Replica } from '../tables.ts'

/** How soon a process that has begun counts for the others. */
const BEAT_MS = 5_000
/** A process that has said nothing for this long is gone: two beats may be lost. */
const LIVE_MS = 15_000
/** A stop does not wait longer for a store that is lost; the others find out by themselves. */
const GOODBYE_MS = 1_000

/**
 * How many processes of inference there are, as each tells the others in the store. Without the store the last count
 * holds; it is about a share of a limit, not about money.
 */
export class LiveReplicas implements AsyncDisposable {
  readonly #replicas: DocumentCollection<Replica>
  readonly #id = randomHex(24)
  readonly #clock: Clock
  readonly #stop = new AbortController()
  #beating: Promise<void> | undefined
  #count = 1

  /** Begins when `opened`, the store, is. */
  constructor(replicas: DocumentCollection<Replica>, opened: Promise<unknown>, clock: Clock, log: Log) {
    this.#replicas = replicas
    this.#clock = clock
    opened.then(
      () => {
        const failed = (error: unknown) => log.debug({ err: error }, 'replicas could not be counted')
        this.#beating = keepWorking(() => this.beat(), { clock, pauseMs: BEAT_MS, failed }, this.#stop.signal)
      },
      // The start ends with it.
      () => undefined,
    )
  }

  /** 1 or more: this process is one of them. */
  get count(): number {
    return this.#count
  }

  /** Says that this process lives, and counts. @throws the store does not answer. */
  async beat(): Promise<void> {
    const now = this.#clock.now()
    const gone = new Date(now.getTime() - LIVE_MS)
    await this.#replicas.findOneAndUpdate({ _id: this.#id }, { $set: { seenAt: now } }, { upsert: true })
    await this.#replicas.deleteMany({ seenAt: { $lt: gone } })
    this.#count = Math.max(1, await this.#replicas.countDocuments({ seenAt: { $gte: gone } }))
  }

  /** The others count without this process at their next beat. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    if (!this.#beating) return
    const goodbye = this.#beating.then(() => this.#replicas.findOneAndDelete({ _id: this.#id })).catch(() => undefined)
    const said = new AbortController()
    await Promise.race([goodbye, systemClock.sleep(GOODBYE_MS, said.signal)])
    said.abort()
  }
}
