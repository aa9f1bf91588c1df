import type { RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { KeyRates, Principal } from '../../../common/identity/principal.ts'
import { isFree, type RateUsage, type RateWaits } from './rate-usage.ts'

/** When a call in progress ends is unknown; most take about a second. */
const CONCURRENCY_RETRY_MS = 1_000

/**
 * Most tokens that one call can add to its key's use, in minutes of the key's limit. So an engine that reports absurd
 * usage does not lock a key out for days.
 */
const MAX_DEBT_MINUTES = 10
/** A limit that needs longer until all of it is available again has given more than it had. */
const MINUTE_MS = 60_000

/** What one call takes of one key's limits. */
interface Share {
  /** @throws {KisError} `rate_limit_exceeded`: the call never fits */
  checkSize(): void
  /** @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was taken */
  acquire(): void | Promise<void>
  spent(tokens: number): void
  release(): void
  /** Returns the request. */
  undo(): void
}

/** The fewest tokens a minute that the key or one that it descends from may use. Null: no limit. */
export function leastTokensPerMinute({ tokensPerMinute, ancestorRates = [] }: Principal): number | null {
  const limits = [tokensPerMinute, ...ancestorRates.map((rates) => rates.tokensPerMinute)].filter((limit) => limit !== null)
  return limits.length === 0 ? null : Math.min(...limits)
}

/** The share of the limits that one call has taken. */
export interface CallPermit {
  /** Counts used tokens against the tokens taken. May be called several times, also after `leave`. */
  spent(tokens: number): void
  /** Ends the call: frees its place and returns the tokens that it did not use. Can be repeated. */
  release(): void
  /** Ends the call as `leave` does, and returns the request as well, because the call was not made. */
  undo(): void
}

/**
 * The limits of keys and organizations. The calls of an organization at once are counted in each process: among
 * `replicas` processes, each admits its part of them.
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
   * Takes one request and `tokens` from the limits of the key and of the keys that it descends from, and one of its
   * organization's concurrent calls. With null for `tokens`, it takes only the concurrent call.
   * @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was taken.
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
   * Takes one request from the limits of the key and of the keys that it descends from, for work that is no call of a
   * model. It takes no tokens and no concurrent call.
   * @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was taken.
   */
  async consumeRequest(principal: Principal): Promise<void> {
    await this.#acquireAll(this.#shares(principal, null), () => undefined)
  }

  /**
   * Counts a request whose large body was read, also when none is left. A key can owe one request at most, so that a
   * burst does not lock it out for long.
   */
  countBody(principal: Principal): void {
    for (const rates of requestRates(principal)) if (this.#owedMs(rates) === 0) this.#rates.correct(rates, 1, 0)
  }

  /** @throws {KisError} `rate_limit_exceeded`: the large bodies of the key have taken more than its limit. */
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

  /** Returns what remains of the key's limits, or null when it has none. */
  readState(principal: Principal): RateLimits | null {
    return this.#rates.read(principal)
  }

  /** Takes all shares, or none when one is refused or `begin` throws. */
  async #acquireAll(shares: readonly Share[], start: () => void): Promise<void> {
    const acquired: Share[] = []
    try {
      for (const share of shares) {
        const taking = share.acquire()
        // In one process nothing is waited for, so that calls are judged in the order in which they come.
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

  /** What one call takes of each key's limits: its own first. Null for `tokens`: a request alone. */
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
    const text = `Rate limit reached: the organization may have ${concurrency} calls under way at once.`
    throw new KisError('rate_limit_exceeded', text, { retryAfterMs: CONCURRENCY_RETRY_MS })
  }

  #countInFlight({ organizationId }: Principal): number {
    return this.#inFlight.get(organizationId) ?? 0
  }
}

/** The limits of requests alone: of the key, and then of those that it descends from. */
function requestRates({ ancestorRates = [], ...own }: Principal): readonly KeyRates[] {
  return [own, ...ancestorRates].map(({ apiKeyId, requestsPerMinute }) => ({ apiKeyId, requestsPerMinute, tokensPerMinute: null }))
}

function checkSize({ tokensPerMinute }: KeyRates, tokens: number, isOwn: boolean): void {
  if (tokensPerMinute === null || tokens <= tokensPerMinute) return
  const most = isOwn ? `the key may use ${tokensPerMinute} a minute` : 'a key that it descends from may use fewer a minute'
  const text = `The request takes about ${tokens} tokens, and ${most}: shorten it, or ask for fewer output tokens. It is not answered later either.`
  throw new KisError('rate_limit_exceeded', text, { shouldRetry: false })
}

/** The figures of another key are not told. */
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
