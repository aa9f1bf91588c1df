import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import { type Clock, systemClock } from '../../../common/process/clock.ts'
import { randomHex } from '../../../common/process/ids.ts'
import type { Task } from '../../../common/process/tasks.ts'
import type { Replica } from '../tables.ts'

/** The heartbeat interval of a process. The other processes count a new process after this time. */
const BEAT_MS = 5_000
/** A process that was silent for this long is gone: two heartbeats may be lost. */
const LIVE_MS = 15_000
/**
 * Longest time that a stop waits for the store. Otherwise the other processes detect the stop by its missing
 * heartbeats.
 */
const GOODBYE_MS = 1_000

/**
 * Counts the processes of the inference subgraph, which send heartbeats to the store. While the store is unavailable,
 * the last count applies: it divides limits, and no money depends on it.
 */
export class LiveReplicas implements AsyncDisposable {
  readonly #replicas: DocumentCollection<Replica>
  readonly #id = randomHex(24)
  readonly #clock: Clock
  readonly task: Task = { name: 'count_replicas', everyMs: BEAT_MS, run: () => this.beat() }
  #count = 1
  #hasBeaten = false

  constructor(replicas: DocumentCollection<Replica>, clock: Clock) {
    this.#replicas = replicas
    this.#clock = clock
  }

  /** The number of processes, at least 1: this process is one of them. */
  get count(): number {
    return this.#count
  }

  /**
   * Writes the heartbeat of this process, and counts the processes.
   * @throws the store does not respond.
   */
  async beat(): Promise<void> {
    this.#hasBeaten = true
    const now = this.#clock.now()
    const gone = new Date(now.getTime() - LIVE_MS)
    await this.#replicas.findOneAndUpdate({ _id: this.#id }, { $set: { seenAt: now } }, { upsert: true })
    await this.#replicas.deleteMany({ seenAt: { $lt: gone } })
    this.#count = Math.max(1, await this.#replicas.countDocuments({ seenAt: { $gte: gone } }))
  }

  /** Removes this process from the store, once its task has stopped. The others notice at their next heartbeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#hasBeaten) return
    const goodbye = this.#replicas.findOneAndDelete({ _id: this.#id }).catch(() => undefined)
    const said = new AbortController()
    await Promise.race([goodbye, systemClock.sleep(GOODBYE_MS, said.signal)])
    said.abort()
  }
}
