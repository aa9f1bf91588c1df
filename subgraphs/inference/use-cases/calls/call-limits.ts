import { LRUCache } from 'lru-cache'
import type { RateLimit, RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { KeyRates, Principal } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { RateMeter } from '../../domain/engines/rate-meter.ts'

/**
 * Most keys whose use is remembered, about 20 MB. The key that was idle longest is dropped first; its meters are empty
 * by then.
 */
const MAX_KEYS = 50_000
/** When a call in progress ends is unknown; most take about a second. */
const CONCURRENCY_RETRY_MS = 1_000

/**
 * Most tokens that one call can add to its key's use, in minutes of the key's limit. So an engine that reports absurd
 * usage does not lock a key out for days.
 */
const MAX_DEBT_MINUTES = 10

interface Meters {
  readonly requests: RateMeter
  readonly tokens: RateMeter
}

/** What one call takes of one key's limits. */
interface Share {
  /** @throws {KisError} `rate_limit_exceeded` */
  check(now: number): void
  take(now: number): void
  spent(tokens: number): void
  leave(): void
  /** Returns the request. */
  undo(): void
}

/** The fewest tokens a minute that the key or one that it descends from may use. Null: no limit. */
export function leastTokensPerMinute({ tokensPerMinute, ancestorRates = [] }: Principal): number | null {
  const limits = [tokensPerMinute, ...ancestorRates.map((rates) => rates.tokensPerMinute)].filter((limit) => limit !== null)
  return limits.length === 0 ? null : Math.min(...limits)
}

/** The share of the limits that one call has taken. */
export interface Taken {
  /** Counts used tokens against the tokens taken. May be called several times, also after `leave`. */
  spent(tokens: number): void
  /** Ends the call: frees its place and returns the tokens that it did not use. Can be repeated. */
  leave(): void
  /** Ends the call as `leave` does, and returns the request as well, because the call was not made. */
  undo(): void
}

/**
 * The limits of keys and organizations in one process. Among `replicas` processes, each counts every request and token
 * `replicas` times, which divides each limit by `replicas`. What remains is reported on the scale of the whole limit.
 * Nothing is stored: a restart clears all use.
 */
export class CallLimits {
  readonly #clock: Clock
  readonly #replicas: () => number
  readonly #meters = new LRUCache<string, Meters>({ max: MAX_KEYS })
  /** Calls in progress, by organization. */
  readonly #underWay = new Map<string, number>()

  constructor(clock: Clock, replicas: () => number) {
    this.#clock = clock
    this.#replicas = replicas
  }

  /**
   * Takes one request and `tokens` from the limits of the key and of the keys that it descends from, and one of its
   * organization's concurrent calls. With null for `tokens`, it takes only the concurrent call.
   * @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was taken.
   */
  enter(principal: Principal, tokens: number | null): Taken {
    const replicas = this.#replicas()
    const now = this.#now()
    const shares = tokens === null ? [] : this.#shares(principal, tokens, replicas)
    for (const { check } of shares) check(now)
    this.#checkConcurrency(principal, replicas)

    const { organizationId } = principal
    for (const { take } of shares) take(now)
    this.#underWay.set(organizationId, this.#countUnderWay(principal) + 1)

    let isOver = false
    const leave = () => {
      if (isOver) return
      isOver = true
      for (const share of shares) share.leave()
      const left = this.#countUnderWay(principal) - 1
      if (left > 0) this.#underWay.set(organizationId, left)
      else this.#underWay.delete(organizationId)
    }
    return {
      spent(used) {
        for (const share of shares) share.spent(used)
      },
      leave,
      undo: () => {
        if (!isOver) for (const share of shares) share.undo()
        leave()
      },
    }
  }

  /** Returns what remains of the key's limits, or null when it has none. */
  readState(principal: Principal): RateLimits | null {
    const { requestsPerMinute, tokensPerMinute } = principal
    if (requestsPerMinute === null && tokensPerMinute === null) return null
    const { requests, tokens } = this.#getMeters(principal)
    const now = this.#now()
    return { requests: readState(requests, requestsPerMinute, now), tokens: readState(tokens, tokensPerMinute, now) }
  }

  /** What one call takes of each key's limits: its own first. */
  #shares(principal: Principal, tokens: number, replicas: number): readonly Share[] {
    const { ancestorRates = [] } = principal
    return [this.#share(principal, tokens, replicas, true), ...ancestorRates.map((rates) => this.#share(rates, tokens, replicas, false))]
  }

  #share(rates: KeyRates, tokens: number, replicas: number, isOwn: boolean): Share {
    const { requestsPerMinute, tokensPerMinute } = rates
    const takeRequests = (amount: number, now: number) => {
      if (requestsPerMinute !== null) this.#getMeters(rates).requests.take(amount * replicas, requestsPerMinute, now)
    }
    const takeTokens = (amount: number, now: number) => {
      if (tokensPerMinute !== null) this.#getMeters(rates).tokens.take(amount * replicas, tokensPerMinute, now)
    }
    let unused = tokens
    let isOver = false
    return {
      check: (now) => this.#checkRates(rates, tokens, replicas, now, isOwn),
      take(now) {
        takeRequests(1, now)
        takeTokens(tokens, now)
      },
      spent: (used) => {
        const amount = Math.min(used, tokens + (tokensPerMinute ?? 0) * MAX_DEBT_MINUTES)
        if (isOver) takeTokens(amount, this.#now())
        else unused -= amount
      },
      leave: () => {
        isOver = true
        takeTokens(-unused, this.#now())
      },
      undo: () => takeRequests(-1, this.#now()),
    }
  }

  /** The figures of another key are not told. */
  #checkRates(rates: KeyRates, tokens: number, replicas: number, now: number, isOwn: boolean): void {
    const { requestsPerMinute, tokensPerMinute } = rates
    const meters = this.#getMeters(rates)
    if (tokensPerMinute !== null && tokens > tokensPerMinute) {
      const most = isOwn ? `the key may use ${tokensPerMinute} a minute` : 'a key that it descends from may use fewer a minute'
      const text = `The request takes about ${tokens} tokens, and ${most}: shorten it, or ask for fewer output tokens. It is not answered later either.`
      throw new KisError('rate_limit_exceeded', text, { shouldRetry: false })
    }
    const requestMs = requestsPerMinute === null ? 0 : meters.requests.waitMs(replicas, requestsPerMinute, now)
    const tokenMs = tokensPerMinute === null ? 0 : meters.tokens.waitMs(tokens * replicas, tokensPerMinute, now)
    const retryAfterMs = Math.max(requestMs, tokenMs)
    if (retryAfterMs === 0) return
    const ownLimit =
      requestMs >= tokenMs
        ? `the key may make ${requestsPerMinute} requests a minute`
        : `the key may use ${tokensPerMinute} tokens a minute, and the request takes about ${tokens}`
    const limit = isOwn ? ownLimit : `the rate of a key that this one descends from`
    throw new KisError('rate_limit_exceeded', `Rate limit reached: ${limit}. Try again in ${retryAfterMs / 1_000} s.`, { retryAfterMs })
  }

  /** Always admits a first call; otherwise a small limit divided among many processes would admit none. */
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

  #getMeters({ apiKeyId }: Pick<KeyRates, 'apiKeyId'>): Meters {
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
