import { isAbort } from '../../../common/errors.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { randomHex } from '../../../common/process/ids.ts'
import type { Log } from '../../../common/process/log.ts'
import type { Billing } from '../../ports/billing.ts'
import type { KeyedCalls } from '../idempotency/keyed-calls.ts'
import type { Collections } from '../tables.ts'

/** Pause between attempts. The holds of earlier processes should be released within 10 s of the start. */
const RETRY_MS = 1_000
/** Most former processes that are read at once. There is one, unless billing was unavailable at several starts. */
const MAX_FORMERS = 100

/** This process as the holder of the money of its calls. */
export interface Holder {
  /** Null when other processes cannot know that this one is gone, so that its holds end only when they expire. */
  readonly id: string | null
  /** Since when billing holds no money for an earlier process, or null while it may. */
  readonly aloneSince: Date | null
}

/**
 * The holder when several processes use the store. A process that is silent may still work, cut off from the store but
 * not from billing.
 */
export const UNKNOWN_HOLDER: Holder = { id: null, aloneSince: null }

/** The holder when only one process uses the store, so that all holds of earlier processes can be ended. */
export class SoleHolder implements Holder {
  readonly #deps: { readonly collections: Collections; readonly billing: Billing; readonly clock: Clock; readonly log: Log }
  readonly #ownId = randomHex(16)
  #id: string | null = null
  #aloneSince: Date | null = null

  constructor(deps: { readonly collections: Collections; readonly billing: Billing; readonly clock: Clock; readonly log: Log }) {
    this.#deps = deps
  }

  get id(): string | null {
    return this.#id
  }

  get aloneSince(): Date | null {
    return this.#aloneSince
  }

  /** Ends the holds of earlier processes, once the store is open. Retries until it succeeds or the signal aborts. */
  async succeed(keyedCalls: KeyedCalls, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps
    for (let attempt = 1; !signal.aborted && !this.#aloneSince; attempt++) {
      try {
        await this.#endFormers(keyedCalls, signal)
        this.#aloneSince = clock.now()
      } catch (error) {
        if (isAbort(error)) return
        // At a start, billing may be ready a moment later.
        log[attempt === 1 ? 'info' : 'warn']({ err: error }, 'what an earlier process held is not free yet')
        await clock.sleep(RETRY_MS, signal).catch(() => undefined)
      }
    }
  }

  async #endFormers(keyedCalls: KeyedCalls, signal: AbortSignal): Promise<void> {
    const { collections, billing, clock } = this.#deps
    await collections.replicas.findOneAndUpdate({ _id: this.#ownId }, { $set: { seenAt: clock.now() } }, { upsert: true })
    // From here on the next process can find this id.
    this.#id = this.#ownId
    // Kept answers are charged first, while their holds are open.
    await keyedCalls.chargeAnswered(signal)
    for (;;) {
      const found = await collections.replicas.find({}, { limit: MAX_FORMERS })
      const formers = found.filter(({ _id }) => _id !== this.#ownId)
      if (formers.length === 0) return
      for (const { _id } of formers) {
        await billing.endHoldsOf(_id, signal)
        await collections.replicas.findOneAndDelete({ _id })
      }
    }
  }
}
