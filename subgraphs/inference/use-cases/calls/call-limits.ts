import type { RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { KeyRates, Principal } from '../../../common/identity/principal.ts'
import { isFree, type RateUsage, type RateWaits } from './rate-usage.ts'

/** Retry time for a full concurrency limit. When a running call ends is unknown; most last about 1 s. */
const CONCURRENCY_RETRY_MS = 1_000

/**
 * Most tokens that one call can add to its key's use, in minutes of the key's limit. So an engine that reports absurd
 * usage does not lock a key out for days.
 */
const MAX_DEBT_MINUTES = 10
/** A limit that needs longer than this until it is fully available is in debt. */
const MINUTE_MS = 60_000

/** What one call consumes of one key's limits. */
interface Share {
  /** @throws {KisError} `rate_limit_exceeded`: the call is larger than the limit */
  checkSize(): void
  /** @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was consumed */
  acquire(): void | Promise<void>
  spent(tokens: number): void
  release(): void
  /** Returns the request to the limit. */
  undo(): void
}

/** The lowest limit of tokens per minute of the key and its ancestors. Null: no limit. */
export function leastTokensPerMinute({ tokensPerMinute, ancestorRates = [] }: Principal): number | null {
  const limits = [tokensPerMinute, ...ancestorRates.map((rates) => rates.tokensPerMinute)].filter((limit) => limit !== null)
  return limits.length === 0 ? null : Math.min(...limits)
}

/** The share of the limits that one call has acquired. */
export interface CallPermit {
  /** Corrects the acquired tokens to the tokens used. May be called several times, also after `release`. */
  spent(tokens: number): void
  /** Ends the call: frees its slot and returns the tokens that it did not use. Can be repeated. */
  release(): void
  /** Ends the call as `release` does, and returns the request as well, because the call did not happen. */
  undo(): void
}

/**
 * The limits of keys and organizations. Each process counts an organization's concurrent calls: of `replicas`
 * processes, each admits its part of them.
 */
export class CallLimits {
  readonly #rates: RateUsage
  readonly #replicas: () => number
  /** Calls in progress, by organization. */
  readonly #inFlight = new Map<string, number>()

  constructor(rates: RateUsage, replicas: () => number) {
    this.#rates = rates
    this.#replicas = replicas
  }

  /**
   * Acquires one request and `tokens` from the limits of the key and its ancestors, and one of the organization's
   * concurrent calls. With null for `tokens`, it acquires only the concurrent call.
   * @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was acquired.
   */
  async enter(principal: Principal, tokens: number | null): Promise<CallPermit> {
    const shares = tokens === null ? [] : this.#shares(principal, tokens)
    for (const { checkSize } of shares) checkSize()
    await this.#acquireAll(shares, () => this.#start(principal))
    const { organizationId } = principal
    let isOver = false
    const release = () => {
      if (isOver) return
      isOver = true
      for (const share of shares) share.release()
      const left = this.#countInFlight(principal) - 1
      if (left > 0) this.#inFlight.set(organizationId, left)
      else this.#inFlight.delete(organizationId)
    }
    return {
      spent(used) {
        for (const share of shares) share.spent(used)
      },
      release,
      undo: () => {
        if (!isOver) for (const share of shares) share.undo()
        release()
      },
    }
  }

  /**
   * Consumes one request from the limits of the key and its ancestors, for work that is not a model call. It consumes
   * no tokens and no concurrent call.
   * @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was consumed.
   */
  async consumeRequest(principal: Principal): Promise<void> {
    await this.#acquireAll(this.#shares(principal, null), () => undefined)
  }

  /**
   * Counts a request whose large body was read, even if no request is left. A key can owe one request at most, so that
   * a burst does not lock it out for long.
   */
  countBody(principal: Principal): void {
    for (const rates of requestRates(principal)) if (this.#owedMs(rates) === 0) this.#rates.correct(rates, 1, 0)
  }

  /** @throws {KisError} `rate_limit_exceeded`: the large bodies of the key have consumed more than its limit. */
  requireNoDebt(principal: Principal): void {
    const retryAfterMs = Math.max(...requestRates(principal).map((rates) => this.#owedMs(rates)))
    if (retryAfterMs === 0) return
    const text = `Rate limit reached: requests with large bodies count as well. Try again in ${retryAfterMs / 1_000} s.`
    throw new KisError('rate_limit_exceeded', text, { retryAfterMs })
  }

  /** Milliseconds until the key owes no request. */
  #owedMs(rates: KeyRates): number {
    return Math.max(0, (this.#rates.read(rates)?.requests?.resetMs ?? 0) - MINUTE_MS)
  }

  /** Returns the remaining limits of the key, or null when it has none. */
  readState(principal: Principal): RateLimits | null {
    return this.#rates.read(principal)
  }

  /** Acquires all shares, or none if one is refused or `start` throws. */
  async #acquireAll(shares: readonly Share[], start: () => void): Promise<void> {
    const acquired: Share[] = []
    try {
      for (const share of shares) {
        const taking = share.acquire()
        // In a single process nothing is awaited, so that calls are judged in the order of their arrival.
        if (taking) await taking
        acquired.push(share)
      }
      start()
    } catch (error) {
      for (const share of acquired) {
        share.undo()
        share.release()
      }
      throw error
    }
  }

  /** What one call consumes of each key's limits: its own key's first. Null for `tokens`: a request alone. */
  #shares(principal: Principal, tokens: number | null): readonly Share[] {
    const { ancestorRates = [] } = principal
    const all = tokens === null ? requestRates(principal) : [principal, ...ancestorRates]
    return all.map((rates, index) => this.#share(rates, tokens ?? 0, index === 0))
  }

  #share(rates: KeyRates, tokens: number, isOwn: boolean): Share {
    const { tokensPerMinute } = rates
    const usage = this.#rates
    let unused = tokens
    let isOver = false
    return {
      checkSize: () => checkSize(rates, tokens, isOwn),
      acquire() {
        const waits = usage.consume(rates, tokens)
        if (!(waits instanceof Promise)) return checkWaits(rates, tokens, waits, isOwn)
        return waits.then((known) => checkWaits(rates, tokens, known, isOwn))
      },
      spent: (used) => {
        const amount = Math.min(used, tokens + (tokensPerMinute ?? 0) * MAX_DEBT_MINUTES)
        if (isOver) usage.correct(rates, 0, amount)
        else unused -= amount
      },
      release: () => {
        isOver = true
        if (unused !== 0) usage.correct(rates, 0, -unused)
      },
      undo: () => usage.correct(rates, -1, 0),
    }
  }

  /**
   * Counts one more of the organization's calls. Always admits a first call; otherwise a small limit divided among many
   * processes would admit none.
   */
  #start(principal: Principal): void {
    const inFlight = this.#countInFlight(principal)
    const { organizationId, plan } = principal
    const { concurrency } = plan
    if (inFlight === 0 || (inFlight + 1) * this.#replicas() <= concurrency) {
      this.#inFlight.set(organizationId, inFlight + 1)
      return
    }
    const text = `Rate limit reached: the organization may have ${concurrency} calls in progress at once.`
    throw new KisError('rate_limit_exceeded', text, { retryAfterMs: CONCURRENCY_RETRY_MS })
  }

  #countInFlight({ organizationId }: Principal): number {
    return this.#inFlight.get(organizationId) ?? 0
  }
}

/** The request limits: those of the key, then those of its ancestors. */
function requestRates({ ancestorRates = [], ...own }: Principal): readonly KeyRates[] {
  return [own, ...ancestorRates].map(({ apiKeyId, requestsPerMinute }) => ({ apiKeyId, requestsPerMinute, tokensPerMinute: null }))
}

function checkSize({ tokensPerMinute }: KeyRates, tokens: number, isOwn: boolean): void {
  if (tokensPerMinute === null || tokens <= tokensPerMinute) return
  const most = isOwn ? `the key may use ${tokensPerMinute} a minute` : 'a key that it descends from may use fewer a minute'
  const text = `The request takes about ${tokens} tokens, and ${most}: shorten it, or request fewer output tokens. A later request of this size fails as well.`
  throw new KisError('rate_limit_exceeded', text, { shouldRetry: false })
}

/** Checks the waits. The error does not reveal the numbers of another key. */
function checkWaits({ requestsPerMinute, tokensPerMinute }: KeyRates, tokens: number, waits: RateWaits, isOwn: boolean): void {
  if (isFree(waits)) return
  const { requestMs, tokenMs } = waits
  const ownLimit =
    requestMs >= tokenMs
      ? `the key may make ${requestsPerMinute} requests a minute`
      : `the key may use ${tokensPerMinute} tokens a minute, and the request takes about ${tokens}`
  const limit = isOwn ? ownLimit : `the rate of a key that this one descends from`
  const retryAfterMs = Math.max(requestMs, tokenMs)
  throw new KisError('rate_limit_exceeded', `Rate limit reached: ${limit}. Try again in ${retryAfterMs / 1_000} s.`, { retryAfterMs })
}
