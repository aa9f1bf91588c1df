import { LRUCache } from 'lru-cache'
import { InvalidApiKey, KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import { isSessionToken, isToken, nameOfToken } from '../../subgraphs/common/identity/credentials.ts'
import { hasScope, type Principal } from '../../subgraphs/common/identity/principal.ts'
import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { untilAborted } from '../../subgraphs/common/process/until-aborted.ts'

/**
 * Returns the principal of an API key, an access token or the token of a session.
 * @throws {InvalidApiKey} it is unknown, revoked or expired
 * @throws {OrganizationSuspended} its organization is suspended
 */
export type Authenticate = (apiKey: string, context: Pick<LinkContext, 'requestId' | 'signal'>) => Promise<Principal>

/**
 * How long an accepted key is trusted without another call to billing, unless rules change through this process. Open
 * sockets are checked every second, so a revoked key stops working everywhere within 5 s.
 */
const PRINCIPAL_TTL_MS = 3_500
/**
 * How long a refusal is trusted. It is short, because the key may have been created since; it is not zero, so that
 * repeated attempts do not each cost a lookup.
 */
const REFUSAL_TTL_MS = 1_000
/**
 * Cached accepted keys, and as many refused keys. The two are counted separately, so that guesses do not evict keys in
 * use.
 */
const MAX_KEYS = 10_000
/** Distinct keys in lookup at once. Beyond this limit a flood of invented keys is refused here. */
const MAX_KEY_LOOKUPS = 1_000
/**
 * Distinct access tokens in lookup at once. They wait for their issuer and do not delay the lookups of keys when it
 * hangs.
 */
const MAX_TOKEN_LOOKUPS = 100
/**
 * Limit of one lookup, which is one read and may take seconds while processes start on the same cores. Within this time
 * callers learn that billing is stopped.
 */
const LOOKUP_TIMEOUT_MS = 4_000
/**
 * A key in use is looked up again this long before its cached principal expires, so its callers wait only if billing is
 * slow.
 */
const REFRESH_MS = 2_000
/** The shape of a key. Billing also checks the checksum; this check avoids the call for text that cannot be a key. */
const KEY_SHAPE = /^kis_live_[0-9A-Za-z]{36}$/

interface Lookup {
  readonly found: Promise<Principal>
  /**
   * Organizations whose rules have changed since the lookup started. The set holds at most the changes of
   * `LOOKUP_TIMEOUT_MS`.
   */
  readonly changed: Set<string>
  /** Whether a refusal may be older than a change that lifted it. */
  mayRefuseWrongly: boolean
}

/**
 * Resolves API keys to principals. Results are cached for seconds, and concurrent lookups of one key share one call.
 */
export class Authenticator {
  readonly #authenticate: Authenticate
  readonly #clock: Clock
  readonly #acceptsTokens: boolean
  readonly #accepted: (credentials: string) => void
  readonly #identified: (requestId: string, principal: Principal) => void
  readonly #lookedUp: (isKnown: boolean) => void
  readonly #known = new LRUCache<string, { readonly principal: Principal; readonly until: number }>({ max: MAX_KEYS })
  readonly #refused = new LRUCache<string, { readonly error: KisError; readonly until: number }>({ max: MAX_KEYS })
  readonly #keyLookups = new Map<string, Lookup>()
  readonly #tokenLookups = new Map<string, Lookup>()

  /**
   * @param acceptsTokens whether access tokens of an issuer count as keys
   * @param accepted called with each key or token that was found to be valid, every few seconds
   * @param identified called with the principal of each request
   * @param lookedUp called for each request with whether the cache made a call to billing unnecessary
   */
  constructor(
    authenticate: Authenticate,
    clock: Clock,
    {
      acceptsTokens = false,
      accepted = (_credentials: string) => {},
      identified = (_requestId: string, _principal: Principal) => {},
      lookedUp = (_isKnown: boolean) => {},
    } = {},
  ) {
    this.#authenticate = authenticate
    this.#clock = clock
    this.#acceptsTokens = acceptsTokens
    this.#accepted = accepted
    this.#identified = identified
    this.#lookedUp = lookedUp
  }

  /**
   * `credentials` is the key as the client sent it, with or without `Bearer`, or the token of a session.
   * @throws {InvalidApiKey} the key is missing, malformed, unknown, revoked or expired
   * @throws {OrganizationSuspended} the key's organization is suspended
   * @throws {ServiceUnavailable} billing or the issuer does not respond, or too many keys or tokens are in lookup
   */
  async getPrincipal(credentials: string | null | undefined, requestId: string): Promise<Principal> {
    const principal = await this.#find(credentials, requestId)
    this.#identified(requestId, principal)
    return principal
  }

  #find(credentials: string | null | undefined, requestId: string): Principal | Promise<Principal> {
    const apiKey = credentials?.replace(/^bearer\s+/i, '') ?? ''
    const isKey = KEY_SHAPE.test(apiKey) || isSessionToken(apiKey)
    if (!isKey && !(this.#acceptsTokens && isToken(apiKey))) throw new InvalidApiKey()
    const name = isKey ? apiKey : nameOfToken(apiKey)
    const now = this.#clock.now().getTime()
    const known = this.#known.get(name)
    const isKnown = known !== undefined && isAhead(known.until, now, PRINCIPAL_TTL_MS)
    this.#lookedUp(isKnown)
    const lookups = isKey ? this.#keyLookups : this.#tokenLookups
    const inFlight = lookups.get(name)
    const canLookUp = lookups.size < (isKey ? MAX_KEY_LOOKUPS : MAX_TOKEN_LOOKUPS)
    const lookUp = () => this.#startLookup(lookups, name, apiKey, requestId, now).found
    if (isKnown) {
      // A refusal is cached from then on. After a failure the next caller looks the key up again.
      if (known.until - now <= REFRESH_MS && !inFlight && canLookUp) lookUp().catch(() => undefined)
      return known.principal
    }
    const refused = this.#refused.get(name)
    if (refused && isAhead(refused.until, now, REFUSAL_TTL_MS)) throw refused.error
    if (inFlight) return sharedOf(inFlight, () => lookups.get(name)?.found ?? lookUp())
    if (!canLookUp) throw new ServiceUnavailable('Authentication')
    return lookUp()
  }

  /** Evicts a session that has just ended here, so that its next use is looked up. */
  evict(token: string): void {
    this.#known.delete(token)
    // The result of a running lookup may be older than the end.
    this.#keyLookups.delete(token)
  }

  /**
   * Evicts the principals that a change of rules by this caller may concern: the keys and sessions of its organization,
   * for an operator those of all. Lookups in flight may be older than the change. Refusals do not name their
   * organization: `liftsRefusals` evicts those of all organizations, if the change may let a refused key in.
   */
  evictAfterChange(by: Principal, liftsRefusals: boolean): void {
    const isOperator = hasScope(by, 'operator')
    for (const [name, { principal }] of this.#known)
      if (isOperator || principal.organizationId === by.organizationId) this.#known.delete(name)
    for (const lookups of [this.#keyLookups, this.#tokenLookups]) {
      if (isOperator) lookups.clear()
      for (const lookup of lookups.values()) {
        lookup.changed.add(by.organizationId)
        lookup.mayRefuseWrongly ||= liftsRefusals
      }
    }
    if (isOperator || liftsRefusals) this.#refused.clear()
  }

  #startLookup(lookups: Map<string, Lookup>, name: string, apiKey: string, requestId: string, requestedAt: number): Lookup {
    const found = this.#lookUp(apiKey, requestId)
      .then(
        (principal) => {
          if (lookups.get(name) !== lookup || isOutdated(lookup, principal)) return principal
          this.#known.set(name, { principal, until: requestedAt + PRINCIPAL_TTL_MS })
          this.#accepted(apiKey)
          return principal
        },
        (error: unknown) => {
          if (lookups.get(name) === lookup && isRefusal(error) && !lookup.mayRefuseWrongly) {
            this.#known.delete(name)
            this.#refused.set(name, { error, until: requestedAt + REFUSAL_TTL_MS })
          }
          throw error
        },
      )
      .finally(() => {
        if (lookups.get(name) === lookup) lookups.delete(name)
      })
    const lookup: Lookup = { found, changed: new Set(), mayRefuseWrongly: false }
    lookups.set(name, lookup)
    return lookup
  }

  async #lookUp(apiKey: string, requestId: string): Promise<Principal> {
    // Not the signal of the first caller: others wait for the same result.
    const signal = AbortSignal.timeout(LOOKUP_TIMEOUT_MS)
    try {
      return await untilAborted(this.#authenticate(apiKey, { requestId, signal }), signal)
    } catch (error) {
      throw signal.aborted ? new ServiceUnavailable('Authentication', { cause: error }) : error
    }
  }
}

/**
 * Returns the result of a running lookup. If a change has made that result stale, returns the result of `again`, which
 * starts later.
 */
async function sharedOf(lookup: Lookup, again: () => Promise<Principal>): Promise<Principal> {
  const principal = await lookup.found.catch((error: unknown) => {
    if (isRefusal(error) && lookup.mayRefuseWrongly) return null
    throw error
  })
  return principal === null || isOutdated(lookup, principal) ? again() : principal
}

function isOutdated({ changed }: Lookup, { organizationId }: Principal): boolean {
  return changed.has(organizationId)
}

/**
 * Whether `until` is in the future. False when `until` is further off than `ttlMs`, because the clock was then set
 * back.
 */
function isAhead(until: number, now: number, ttlMs: number): boolean {
  return until > now && until - now <= ttlMs
}

/**
 * Whether the error is that of a missing, unknown, revoked or expired key, or of a suspended organization, also when it
 * came from another process.
 */
export function isRefusal(error: unknown): error is KisError {
  return error instanceof KisError && (error.code === 'invalid_api_key' || error.code === 'organization_suspended')
}
