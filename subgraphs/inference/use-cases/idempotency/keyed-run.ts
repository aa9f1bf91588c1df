import { ServiceUnavailable } from '../../../common/errors.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { renewWhile } from '../../../common/process/renew-while.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import type { CallRecord, With } from '../deps.ts'
import type { KeyedCall } from '../tables.ts'
import { type KeyedOutcome, packOutcome, toFailure, tooLong } from './keyed-outcome.ts'

/** A process that has not renewed a lease for this long is gone. */
export const LEASE_MS = 30_000
/** A third of the lease, so that two renewals may be lost. */
export const LEASE_RENEW_MS = 10_000
/** Most characters of a streamed response, as JSON, that are collected for replay. They compress to about a tenth. */
const MAX_GATHERED_CHARACTERS = 16 * 1024 * 1024

type KeyedRunDeps = Pick<With<'background'>, 'background' | 'clock' | 'log'>

/**
 * The only run of a call with an idempotency key. It records the call's progress. When another process takes the call
 * over, this run can no longer write.
 */
export class KeyedRun implements CallRecord {
  readonly #calls: DocumentCollection<KeyedCall>
  readonly #deps: KeyedRunDeps
  readonly #id: string
  readonly #token: string
  readonly #onEnd: () => void
  readonly #isFree: () => boolean
  readonly #renewing: Disposable
  /** The events of a stream. Null once they are too long to be stored. */
  #events: object[] | null = []
  #gathered = 0
  #isDelivered = false
  /** The packed outcome, and whether the store has it. */
  #outcome: string | null
  #isStored: boolean
  #charged: bigint
  readonly #isStep: boolean
  /** The end of the newest hold with its charge, or null when billing has not reported it. */
  #holdEnd: PromiseWithResolvers<bigint | null> | undefined
  #isHoldOpen = false

  /** `isFree`: reports whether the call costs nothing if it is interrupted before any of its response was delivered. */
  constructor(
    calls: DocumentCollection<KeyedCall>,
    { _id, token, outcome, spent = '0', step }: KeyedCall,
    deps: KeyedRunDeps,
    onEnd: () => void,
    isFree: () => boolean,
  ) {
    this.#outcome = outcome
    this.#isStored = outcome !== null
    this.#charged = BigInt(spent)
    this.#isStep = step !== undefined
    this.#calls = calls
    this.#deps = deps
    this.#id = _id
    this.#token = token
    this.#onEnd = onEnd
    this.#isFree = isFree
    const failed = (error: unknown) => deps.log.warn({ err: error }, 'a call with an idempotency key is not renewed')
    this.#renewing = renewWhile({ everyMs: LEASE_RENEW_MS, renew: () => deps.background.track(this.#renew()), failed })
  }

  /** The charges of the call's holds so far, in nano-USD. */
  get charged(): bigint {
    return this.#charged
  }

  get isFreeWhenCut(): boolean {
    return !this.#isDelivered && this.#isFree()
  }

  static newToken(): string {
    return randomHex(32)
  }

  async holding(holdId: string): Promise<void> {
    if (!(await this.#write({ holdId, ...(this.#charged > 0n && { spent: String(this.#charged) }) })))
      throw new ServiceUnavailable('The record of the call')
    this.#holdEnd = Promise.withResolvers()
    this.#isHoldOpen = true
  }

  holdEnded(charged: bigint | null): void {
    this.#isHoldOpen = false
    this.#charged += charged ?? 0n
    this.#holdEnd?.resolve(charged)
  }

  /** Called when the caller has received a part of the response. */
  delivered(): void {
    this.#isDelivered = true
  }

  gather(event: object): void {
    if (!this.#events) return
    this.#gathered += JSON.stringify(event).length
    if (this.#gathered > MAX_GATHERED_CHARACTERS) this.#events = null
    else this.#events.push(event)
  }

  async completed(usage: Usage, value: object): Promise<void> {
    const events = this.#events
    const outcome = events ? { usage, value, events, failure: null } : { usage, value: null, events: [], failure: tooLong() }
    try {
      this.#outcome = await packOutcome(outcome)
      this.#isStored = await this.#write({ state: 'answered', outcome: this.#outcome })
    } catch (error) {
      // The caller still gets the result, and the end of the call may still be recorded.
      this.#deps.log.warn({ err: error }, 'the response to a call with an idempotency key is not stored')
      return
    }
    // The process that has taken the call over repeats it and charges for it.
    if (!this.#isStored && this.isFreeWhenCut) throw new ServiceUnavailable('The record of the call')
  }

  /** Records that the call is charged. */
  async end(cost: bigint): Promise<void> {
    try {
      await this.#write({ state: 'ended', cost: String(cost), ...(!this.#isStored && { outcome: this.#outcome }) })
    } catch (error) {
      // A repeat queries billing again.
      this.#deps.log.warn({ err: error }, 'the end of a call with an idempotency key is not recorded')
    } finally {
      this.release()
    }
  }

  /**
   * Records that the call has failed. If nothing was charged, the key is free for a repeat; otherwise repeats get the
   * failure. A step that a limit or a deadline of the service ended is repeated at the next attempt, and its charge
   * counts towards the run. Waits for the record only when billing has already responded, so that the caller gets the
   * failure without delay.
   */
  async fail(error: unknown): Promise<void> {
    const isKnown = !this.#isHoldOpen
    const closing = this.#deps.background.track(this.#close(error))
    if (isKnown) await closing
  }

  /** Ends a call that billing reports as charged. */
  async endCharged(cost: bigint, failure: KeyedOutcome['failure']): Promise<KeyedOutcome> {
    const outcome = { usage: null, value: null, events: this.#events ?? [], failure }
    await this.#write({ state: 'ended', cost: String(cost), outcome: await packOutcome(outcome) })
    this.release()
    return outcome
  }

  /** Discards the stored result, because nobody has paid for it. */
  async discard(): Promise<void> {
    this.#outcome = null
    this.#isStored = false
    if (!(await this.#write({ state: 'running', outcome: null }))) throw new ServiceUnavailable('The record of the call')
  }

  /** Stops the renewals and leaves the call to a repeat. */
  release(): void {
    this.#renewing[Symbol.dispose]()
    this.#onEnd()
  }

  async #close(error: unknown): Promise<void> {
    try {
      const end = this.#holdEnd ? await this.#holdEnd.promise : 0n
      // The charge is unknown. A repeat queries billing for it once the lease has expired.
      if (end === null) return
      const leaseUntil = this.#deps.clock.now()
      if (this.#outcome !== null) await this.#write({ leaseUntil })
      else if (this.#isStep && this.#charged > 0n && (end === 0n || error instanceof StoppedByLimit))
        await this.#write({ leaseUntil, holdId: null, spent: String(this.#charged) })
      else if (this.#charged > 0n) await this.endCharged(this.#charged, toFailure(error, this.#charged))
      else await this.#calls.findOneAndDelete({ _id: this.#id, token: this.#token })
    } catch (cause) {
      this.#deps.log.warn({ err: cause }, 'the failure of a call with an idempotency key is not recorded')
    } finally {
      this.release()
    }
  }

  /** Returns false when another process has taken the call over. */
  async #write(fields: Partial<KeyedCall>): Promise<boolean> {
    return (await this.#calls.findOneAndUpdate({ _id: this.#id, token: this.#token }, { $set: fields })) !== null
  }

  #renew(): Promise<boolean> {
    return this.#write({ leaseUntil: new Date(this.#deps.clock.now().getTime() + LEASE_MS) })
  }
}
