import { LRUCache } from 'lru-cache'
import type { RateLimit, RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { RateMeter } from '../../domain/engines/rate-meter.ts'

/**
 * Keys whose use is remembered, some 20 MB. The one that was quiet longest is forgotten first, when its meters are
 * empty again.
 */
const MAX_KEYS = 50_000
/** Nobody knows when one of the calls under way ends; most take about a second. */
const CONCURRENCY_RETRY_MS = 1_000

/**
 * The most that one call adds to what its key has taken, in minutes of the limit: an engine that reports nonsense locks
 * nobody out for days.
 */
const MAX_DEBT_MINUTES = 10

interface Meters {
  readonly requests: RateMeter
  readonly tokens: RateMeter
}

/** What one call has taken. */
export interface Taken {
  /** Counts what was used against what was taken; may come in parts, also after `leave`. */
  spent(tokens: number): void
  /** The call is over: its place is free, and the tokens that it did not use are given back. Repeatable. */
  leave(): void
  /** As `leave`, and the request is given back too: the call has not been made. */
  undo(): void
}

/**
 * The limits of keys and organizations, as one process keeps them. With `replicas` processes each counts what it admits
 * so many times, which comes to a limit divided by them, and what is left is told on the scale of the whole limit.
 * Nothing is stored: a restart forgets.
 */
export class CallLimits {
  readonly #clock: Clock
  readonly #replicas: () => number
  readonly #meters = new LRUCache<string, Meters>({ max: MAX_KEYS })
  /** Calls under way, by organization. */
  readonly #underWay = new Map<string, number>()

  constructor(clock: Clock, replicas: () => number) {
    this.#clock = clock
    this.#replicas = replicas
  }

  /**
   * Takes one request and the tokens of the key's limits, and a place among the calls of its organization; with null
   * for tokens the place alone.
   * @throws {KisError} `rate_limit_exceeded`: nothing was taken.
   */
  enter(principal: Principal, tokens: number | null): Taken {
    const replicas = this.#replicas()
    const now = this.#now()
    if (tokens !== null) this.#checkRates(principal, tokens, replicas, now)
    this.#checkConcurrency(principal, replicas)

    const { organizationId, requestsPerMinute } = principal
    if (tokens !== null && requestsPerMinute !== null) this.#getMeters(principal).requests.take(replicas, requestsPerMinute, now)
    const takeTokens = (amount: number) => {
      const { tokensPerMinute } = principal
      if (tokens !== null && tokensPerMinute !== null)
        this.#getMeters(principal).tokens.take(amount * replicas, tokensPerMinute, this.#now())
    }
    takeTokens(tokens ?? 0)
    this.#underWay.set(organizationId, this.#countUnderWay(principal) + 1)

    let unused = tokens ?? 0
    let isOver = false
    const leave = () => {
      if (isOver) return
      isOver = true
      takeTokens(-unused)
      const left = this.#countUnderWay(principal) - 1
      if (left > 0) this.#underWay.set(organizationId, left)
      else this.#underWay.delete(organizationId)
    }
    return {
      spent(used) {
        const amount = Math.min(used, (tokens ?? 0) + (principal.tokensPerMinute ?? 0) * MAX_DEBT_MINUTES)
        if (isOver) takeTokens(amount)
        else unused -= amount
      },
      leave,
      undo: () => {
        if (tokens !== null && requestsPerMinute !== null && !isOver)
          this.#getMeters(principal).requests.take(-replicas, requestsPerMinute, this.#now())
        leave()
      },
    }
  }

  /** What is left to the key; null: it has no limits. */
  readState(principal: Principal): RateLimits | null {
    const { requestsPerMinute, tokensPerMinute } = principal
    if (requestsPerMinute === null && tokensPerMinute === null) return null
    const { requests, tokens } = this.#getMeters(principal)
    const now = this.#now()
    return { requests: readState(requests, requestsPerMinute, now), tokens: readState(tokens, tokensPerMinute, now) }
  }

  #checkRates(principal: Principal, tokens: number, replicas: number, now: number): void {
    const { requestsPerMinute, tokensPerMinute } = principal
    const meters = this.#getMeters(principal)
    if (tokensPerMinute !== null && tokens > tokensPerMinute) {
      const text = `The request takes about ${tokens} tokens, and the key may use ${tokensPerMinute} a minute: shorten it, or ask for fewer output tokens. It is not answered later either.`
      throw new KisError('rate_limit_exceeded', text, { shouldRetry: false })
    }
    const requestMs = requestsPerMinute === null ? 0 : meters.requests.waitMs(replicas, requestsPerMinute, now)
    const tokenMs = tokensPerMinute === null ? 0 : meters.tokens.waitMs(tokens * replicas, tokensPerMinute, now)
    const retryAfterMs = Math.max(requestMs, tokenMs)
    if (retryAfterMs === 0) return
    const limit =
      requestMs >= tokenMs
        ? `the key may make ${requestsPerMinute} requests a minute`
        : `the key may use ${tokensPerMinute} tokens a minute, and the request takes about ${tokens}`
    throw new KisError('rate_limit_exceeded', `Rate limit reached: ${limit}. Try again in ${retryAfterMs / 1_000} s.`, { retryAfterMs })
  }

  /** One call is always let in, or a small limit among many processes would be none. */
  #checkConcurrency(principal: Principal, replicas: number): void {
    const underWay = this.#countUnderWay(principal)
    const { concurrency } = principal.plan
    if (underWay === 0 || (underWay + 1) * replicas <= concurrency) return
    const text = `Rate limit reached: the organization may have ${concurrency} calls under way at once.`
    throw new KisError('rate_limit_exceeded', text, { retryAfterMs: CONCURRENCY_RETRY_MS })
  }

  #countUnderWay({ organizationId }: Principal): number {
    return this.#underWay.get(organizationId) ?? 0
  }

  #getMeters({ apiKeyId }: Principal): Meters {
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

function readState(meter: RateMeter, limit: number | null, now: number): RateLimit | null {
  return limit === null ? null : { limit, remaining: meter.remaining(limit, now), resetMs: meter.resetMs(limit, now) }
}
