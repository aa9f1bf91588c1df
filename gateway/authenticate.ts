import { LRUCache } from 'lru-cache'
import { InvalidApiKey, KisError, ServiceUnavailable } from '../subgraphs/common/errors.ts'
import type { Principal } from '../subgraphs/common/identity/principal.ts'
import type { LinkContext } from '../subgraphs/common/link/link.ts'
import type { Clock } from '../subgraphs/common/process/clock.ts'

/** Who an API key is. @throws {InvalidApiKey} unknown, revoked or expired. */
export type Authenticate = (apiKey: string, context: Pick<LinkContext, 'requestId' | 'signal'>) => Promise<Principal>

/** How long an answer is believed. With the second between two looks at open sockets, a revoked key is dead within 5 s everywhere. */
const PRINCIPAL_TTL_MS = 3_500
/** A key that was refused may have been made since: asked again sooner, yet not at every attempt. */
const REFUSAL_TTL_MS = 1_000
/** Keys remembered, and as many refused ones, apart from each other: guesses do not push out keys in use. */
const MAX_KEYS = 10_000
/** Distinct keys asked for at once; a flood of invented ones is shed here. */
const MAX_LOOKUPS = 1_000
/** A lookup is one read. Billing that is stopped is noticed by callers within this, as it is by calls under way. */
const LOOKUP_TIMEOUT_MS = 2_000
/** Billing judges the checksum too; this spares the way there for what cannot be a key. */
const KEY_SHAPE = /^kis_live_[0-9A-Za-z]{36}$/

/** API keys → principals, remembered for seconds; lookups of one key under way are shared. */
export class Authenticator {
  readonly #authenticate: Authenticate
  readonly #clock: Clock
  readonly #known = new LRUCache<string, { readonly principal: Principal; readonly until: number }>({ max: MAX_KEYS })
  readonly #refused = new LRUCache<string, number>({ max: MAX_KEYS })
  readonly #lookups = new Map<string, Promise<Principal>>()

  constructor(authenticate: Authenticate, clock: Clock) {
    this.#authenticate = authenticate
    this.#clock = clock
  }

  /** `credentials`: the key as the client sent it, with or without `Bearer`. @throws {InvalidApiKey} @throws {ServiceUnavailable} */
  async principalOf(credentials: string | null | undefined, requestId: string): Promise<Principal> {
    const apiKey = credentials?.replace(/^bearer\s+/i, '') ?? ''
    const now = this.#clock.now().getTime()
    const known = this.#known.get(apiKey)
    if (known && isAhead(known.until, now, PRINCIPAL_TTL_MS)) return known.principal
    if (!KEY_SHAPE.test(apiKey) || isAhead(this.#refused.get(apiKey) ?? 0, now, REFUSAL_TTL_MS)) throw new InvalidApiKey()
    return this.#lookups.get(apiKey) ?? this.#lookUp(apiKey, requestId, now)
  }

  #lookUp(apiKey: string, requestId: string, askedAt: number): Promise<Principal> {
    if (this.#lookups.size >= MAX_LOOKUPS) throw new ServiceUnavailable('Authentication')
    const lookup = this.#ask(apiKey, requestId, askedAt).finally(() => this.#lookups.delete(apiKey))
    this.#lookups.set(apiKey, lookup)
    return lookup
  }

  async #ask(apiKey: string, requestId: string, askedAt: number): Promise<Principal> {
    // Not the signal of the one who asks: others wait for the same answer.
    const signal = AbortSignal.timeout(LOOKUP_TIMEOUT_MS)
    try {
      const principal = await this.#authenticate(apiKey, { requestId, signal })
      this.#known.set(apiKey, { principal, until: askedAt + PRINCIPAL_TTL_MS })
      return principal
    } catch (error) {
      if (signal.aborted) throw new ServiceUnavailable('Authentication', { cause: error })
      if (isRefusal(error)) {
        this.#known.delete(apiKey)
        this.#refused.set(apiKey, askedAt + REFUSAL_TTL_MS)
      }
      throw error
    }
  }
}

/** True until the time has come; not when a clock that was set back makes it further off than it can be. */
function isAhead(until: number, now: number, ttlMs: number): boolean {
  return until > now && until - now <= ttlMs
}

/** True for the error of a missing, unknown, revoked or expired key, also when it came from another process. */
export function isRefusal(error: unknown): boolean {
  return error instanceof KisError && error.code === 'invalid_api_key'
}
