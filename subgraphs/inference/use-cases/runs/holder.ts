import { isAbort } from '../../../common/errors.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { randomHex } from '../../../common/process/ids.ts'
import type { Log } from '../../../common/process/log.ts'
import type { Billing } from '../../ports/billing.ts'
import type { KeyedCalls } from '../idempotency/keyed-calls.ts'
import type { Collections } from '../tables.ts'

/** Holds are to be free 10 s after the start. */
const RETRY_MS = 1_000
/** Former processes that are ended together; there is one, unless billing was away at several starts. */
const MAX_FORMERS = 100

/** This process, as the holder of the money of its calls. */
export interface Holder {
  /** Null: others could not say that it is gone, so that only time ends what it holds. */
  readonly id: string | null
  /** Since when billing holds nothing for an earlier process any more; null: it may. */
  readonly aloneSince: Date | null
}

/**
 * Where several processes have the store: one that says nothing may still be at work, cut off from the store and not
 * from billing.
 */
export const UNKNOWN_HOLDER: Holder = { id: null, aloneSince: null }

/** The one process that has the store. Whatever an earlier one has left is over. */
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

  /** Ends what earlier processes have left, once the store is open. Tries until it is done or the signal aborts. */
  async succeed(keyedCalls: KeyedCalls, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps
    while (!signal.aborted && !this.#aloneSince) {
      try {
        await this.#endFormers(keyedCalls, signal)
        this.#aloneSince = clock.now()
      } catch (error) {
        if (isAbort(error)) return
        log.warn({ err: error }, 'what an earlier process held is not free yet')
        await clock.sleep(RETRY_MS, signal).catch(() => undefined)
      }
    }
  }

  async #endFormers(keyedCalls: KeyedCalls, signal: AbortSignal): Promise<void> {
    const { collections, billing, clock } = this.#deps
    await collections.replicas.findOneAndUpdate({ _id: this.#ownId }, { $set: { seenAt: clock.now() } }, { upsert: true })
    // Who comes next knows it from here on.
    this.#id = this.#ownId
    // While their holds are open.
    await keyedCalls.chargeKept(signal)
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
