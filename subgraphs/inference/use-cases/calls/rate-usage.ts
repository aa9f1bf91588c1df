import { LRUCache } from 'lru-cache'
import type { RateLimit, RateLimits } from '../../../../schema/errors.ts'
import type { KeyRates } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { RateMeter } from '../../domain/engines/rate-meter.ts'

/**
 * Most keys whose use a process stores, about 20 MB. The key that was idle longest is dropped first; its meters are
 * empty by then.
 */
export const MAX_KEYS = 50_000

/** Milliseconds until each limit has room for a call. */
export interface RateWaits {
  readonly requestMs: number
  readonly tokenMs: number
}

export const NO_WAITS: RateWaits = { requestMs: 0, tokenMs: 0 }

/** The use of keys' rates by their calls. */
export interface RateUsage {
  /**
   * Consumes one request and `tokens` from the limits of the key if both fit, and returns `NO_WAITS`. Otherwise
   * consumes nothing. Never rejects.
   */
  consume(rates: KeyRates, tokens: number): RateWaits | Promise<RateWaits>
  /** Consumes more, whether or not it fits. Negative amounts are returned to the limits. */
  correct(rates: KeyRates, requests: number, tokens: number): void
  /** The remaining limits of the key. Null: it has no limits. */
  read(rates: KeyRates): RateLimits | null
}

/** The use of one key. */
export interface Meters {
  readonly requests: RateMeter
  readonly tokens: RateMeter
}

/** Milliseconds until each of both amounts fits. A limit of null admits everything. */
export function waitsOf({ requests, tokens }: Meters, rates: KeyRates, amounts: Amounts, now: number): RateWaits {
  const { requestsPerMinute, tokensPerMinute } = rates
  return {
    requestMs: requestsPerMinute === null ? 0 : requests.waitMs(amounts.requests, requestsPerMinute, now),
    tokenMs: tokensPerMinute === null ? 0 : tokens.waitMs(amounts.tokens, tokensPerMinute, now),
  }
}

/** What a call consumes of the limits of requests and of tokens per minute. */
export interface Amounts {
  readonly requests: number
  readonly tokens: number
}

/** Returns whether a call need not wait for its rate limits. */
export function isFree({ requestMs, tokenMs }: RateWaits): boolean {
  return requestMs === 0 && tokenMs === 0
}

/** Consumes the amounts whether or not they fit. */
export function consumeFrom({ requests, tokens }: Meters, rates: KeyRates, amounts: Amounts, now: number): void {
  const { requestsPerMinute, tokensPerMinute } = rates
  if (requestsPerMinute !== null) requests.consume(amounts.requests, requestsPerMinute, now)
  if (tokensPerMinute !== null) tokens.consume(amounts.tokens, tokensPerMinute, now)
}

export function readMeters({ requests, tokens }: Meters, rates: KeyRates, now: number): RateLimits | null {
  const { requestsPerMinute, tokensPerMinute } = rates
  if (requestsPerMinute === null && tokensPerMinute === null) return null
  return { requests: readMeter(requests, requestsPerMinute, now), tokens: readMeter(tokens, tokensPerMinute, now) }
}

function readMeter(meter: RateMeter, limit: number | null, now: number): RateLimit | null {
  return limit === null ? null : { limit, remaining: meter.remaining(limit, now), resetMs: meter.resetMs(limit, now) }
}

/** The rates of keys in the only process of inference. Nothing is stored: a restart clears all use. */
export class OwnRates implements RateUsage {
  readonly #clock: Clock
  readonly #meters = new LRUCache<string, Meters>({ max: MAX_KEYS })

  constructor(clock: Clock) {
    this.#clock = clock
  }

  consume(rates: KeyRates, tokens: number): RateWaits {
    const meters = this.#getMeters(rates)
    const amounts = { requests: 1, tokens }
    const now = this.#now()
    const waits = waitsOf(meters, rates, amounts, now)
    if (isFree(waits)) consumeFrom(meters, rates, amounts, now)
    return waits
  }

  correct(rates: KeyRates, requests: number, tokens: number): void {
    consumeFrom(this.#getMeters(rates), rates, { requests, tokens }, this.#now())
  }

  read(rates: KeyRates): RateLimits | null {
    return readMeters(this.#getMeters(rates), rates, this.#now())
  }

  #getMeters({ apiKeyId }: KeyRates): Meters {
    let meters = this.#meters.get(apiKeyId)
    if (!meters) {
      meters = { requests: new RateMeter(), tokens: new RateMeter() }
      this.#meters.set(apiKeyId, meters)
    }
    return meters
  }

  #now(): number {
    return this.#clock.now().getTime()
  }
}
