import { ServiceUnavailable } from '../../../common/errors.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import { randomHex } from '../../../common/process/ids.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import type { CallRecord, With } from '../deps.ts'
import type { KeyedCall } from '../tables.ts'
import { type KeyedOutcome, packOutcome, toFailure, tooLong } from './keyed-outcome.ts'

/** A process that has not renewed it for so long is gone. */
export const LEASE_MS = 30_000
/** A third of it, so that two renewals may be lost. */
export const LEASE_RENEW_MS = 10_000
/** JSON text of a streamed answer that is gathered to be kept; it shrinks to a tenth or so. */
const MAX_GATHERED_CHARACTERS = 16 * 1024 * 1024

type KeptDeps = Pick<With<'background'>, 'background' | 'clock' | 'log'>

/**
 * The one run of a call with an idempotency key. It writes down how far the call is; who takes the call over ends its
 * writing.
 */
export class KeyedRun implements CallRecord {
  readonly #calls: DocumentCollection<KeyedCall>
  readonly #deps: KeptDeps
  readonly #id: string
  readonly #token: string
  readonly #onEnd: () => void
  readonly #isFree: () => boolean
  readonly #renewing: NodeJS.Timeout
  /** Of a stream, until it is too long to be kept. */
  #events: object[] | null = []
  #gathered = 0
  #isDelivered = false
  /** What is to be kept, and whether it is. */
  #outcome: string | null
  #isKept: boolean
  #charged = 0n
  /** The end of the newest hold, with what was charged, or null when billing has not said so. */
  #holdEnd: PromiseWithResolvers<bigint | null> | undefined
  #isHoldOpen = false

  /** `isFree`: whether the call costs nothing when it is cut before any of its answer was delivered. */
  constructor(
    calls: DocumentCollection<KeyedCall>,
    { _id, token, outcome }: KeyedCall,
    deps: KeptDeps,
    onEnd: () => void,
    isFree: () => boolean,
  ) {
    this.#outcome = outcome
    this.#isKept = outcome !== null
    this.#calls = calls
    this.#deps = deps
    this.#id = _id
    this.#token = token
    this.#onEnd = onEnd
    this.#isFree = isFree
    this.#renewing = setInterval(() => this.#renew(), LEASE_RENEW_MS)
    this.#renewing.unref()
  }

  get isFreeWhenCut(): boolean {
    return !this.#isDelivered && this.#isFree()
  }

  static newToken(): string {
    return randomHex(32)
  }

  async holding(holdId: string): Promise<void> {
    if (!(await this.#write({ holdId }))) throw new ServiceUnavailable('The record of the call')
    this.#holdEnd = Promise.withResolvers()
    this.#isHoldOpen = true
  }

  holdEnded(charged: bigint | null): void {
    this.#isHoldOpen = false
    this.#charged += charged ?? 0n
    this.#holdEnd?.resolve(charged)
  }

  /** The caller has a part of the answer. */
  delivered(): void {
    this.#isDelivered = true
  }

  gather(event: object): void {
    if (!this.#events) return
    this.#gathered += JSON.stringify(event).length
    if (this.#gathered > MAX_GATHERED_CHARACTERS) this.#events = null
    else this.#events.push(event)
  }

  async answered(usage: Usage, value: object): Promise<void> {
    const events = this.#events
    const outcome = events ? { usage, value, events, failure: null } : { usage, value: null, events: [], failure: tooLong() }
    try {
      this.#outcome = await packOutcome(outcome)
      this.#isKept = await this.#write({ state: 'answered', outcome: this.#outcome })
    } catch (error) {
      // The caller gets the answer all the same, and the end of the call may still be written down.
      this.#deps.log.warn({ err: error }, 'the answer to a call with an idempotency key is not kept')
      return
    }
    // Whoever has taken the call over makes it again, and charges for it.
    if (!this.#isKept && this.isFreeWhenCut) throw new ServiceUnavailable('The record of the call')
  }

  /** The call is charged. */
  async end(cost: bigint): Promise<void> {
    try {
      await this.#write({ state: 'ended', cost: String(cost), ...(!this.#isKept && { outcome: this.#outcome }) })
    } catch (error) {
      // A repeat asks billing again.
      this.#deps.log.warn({ err: error }, 'the end of a call with an idempotency key is not written down')
    } finally {
      this.release()
    }
  }

  /**
   * The call has failed. When nothing was charged, the key is free for a repeat; else the failure is what is replayed.
   * Waits for billing only when that has answered already: the caller is to hear of the failure.
   */
  async fail(error: unknown): Promise<void> {
    const isKnown = !this.#isHoldOpen
    const closing = this.#deps.background.track(this.#close(error))
    if (isKnown) await closing
  }

  /** Ends a call of which billing says that it was charged. */
  async endCharged(cost: bigint, failure: KeyedOutcome['failure']): Promise<KeyedOutcome> {
    const outcome = { usage: null, value: null, events: this.#events ?? [], failure }
    await this.#write({ state: 'ended', cost: String(cost), outcome: await packOutcome(outcome) })
    this.release()
    return outcome
  }

  /** Forgets the answer that is kept: nobody has paid for it. */
  async forget(): Promise<void> {
    this.#outcome = null
    this.#isKept = false
    if (!(await this.#write({ state: 'running', outcome: null }))) throw new ServiceUnavailable('The record of the call')
  }

  /** Leaves the call to whoever repeats it. */
  release(): void {
    clearInterval(this.#renewing)
    this.#onEnd()
  }

  async #close(error: unknown): Promise<void> {
    try {
      const end = this.#holdEnd ? await this.#holdEnd.promise : 0n
      // What billing did with the hold is asked when the lease is over.
      if (end === null) return
      if (this.#outcome !== null) await this.#write({ leaseUntil: this.#deps.clock.now() })
      else if (this.#charged > 0n) await this.endCharged(this.#charged, toFailure(error, this.#charged))
      else await this.#calls.findOneAndDelete({ _id: this.#id, token: this.#token })
    } catch (cause) {
      this.#deps.log.warn({ err: cause }, 'the failure of a call with an idempotency key is not written down')
    } finally {
      this.release()
    }
  }

  /** False when another has taken the call over. */
  async #write(fields: Partial<KeyedCall>): Promise<boolean> {
    return (await this.#calls.findOneAndUpdate({ _id: this.#id, token: this.#token }, { $set: fields })) !== null
  }

  #renew(): void {
    const { background, clock, log } = this.#deps
    const leaseUntil = new Date(clock.now().getTime() + LEASE_MS)
    background
      .track(this.#write({ leaseUntil }))
      .catch((error) => log.warn({ err: error }, 'a call with an idempotency key is not renewed'))
  }
}
