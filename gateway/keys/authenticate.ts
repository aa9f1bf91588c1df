import { LRUCache } from 'lru-cache'
import { InvalidApiKey, KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import { isSessionToken, isToken, nameOfToken } from '../../subgraphs/common/identity/credentials.ts'
import { hasScope, type Principal } from '../../subgraphs/common/identity/principal.ts'
import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { untilAborted } from '../../subgraphs/common/process/until-aborted.ts'

/**
 * Gives the principal that an API key stands for, or an access token or a session's token in its place.
 * @throws {InvalidApiKey} it is unknown, revoked or expired
 * @throws {OrganizationSuspended} its organization is suspended
 */
export type Authenticate = (apiKey: string, context: Pick<LinkContext, 'requestId' | 'signal'>) => Promise<Principal>

/**
 * How long an accepted key is trusted without asking billing again, unless rules change through this process. Open
 * sockets are checked every second, so a revoked key stops working everywhere within 5 s.
 */
const PRINCIPAL_TTL_MS = 3_500
/**
 * How long a refusal is trusted. Shorter, because the key may have been created since; not zero, so that repeated
 * attempts do not each cost a lookup.
 */
const REFUSAL_TTL_MS = 1_000
/**
 * Accepted keys remembered, and as many refused keys. They are counted separately, so that guesses do not push out keys
 * in use.
 */
const MAX_KEYS = 10_000
/** Distinct keys being looked up at once. Beyond it a flood of invented keys is refused here. */
const MAX_KEY_LOOKUPS = 1_000
/** The same for access tokens. They wait for their issuer, and leave the lookups of keys alone when it hangs. */
const MAX_TOKEN_LOOKUPS = 100
/**
 * A lookup is one read, which takes seconds while processes start on the same cores. Callers learn within this time that
 * billing is stopped.
 */
const LOOKUP_TIMEOUT_MS = 4_000
/** A key in use is looked up again this long before its answer is too old. So its callers wait only for a slow billing. */
const REFRESH_MS = 2_000
/** Billing also checks the checksum. This avoids the call for text that cannot be a key. */
const KEY_SHAPE = /^kis_live_[0-9A-Za-z]{36}$/

/** A lookup in flight. */
interface Lookup {
  readonly found: Promise<Principal>
  /** Organizations whose rules have changed since the lookup began. At most the changes of `LOOKUP_TIMEOUT_MS`. */
  readonly changed: Set<string>
  /** Whether a refusal may be older than a change that lifted it. */
  mayRefuseWrongly: boolean
}

/**
 * Turns API keys into principals. Answers are remembered for seconds, and concurrent lookups of one key share one call.
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
   * `acceptsTokens`: access tokens of an issuer count as keys. `accepted` hears of each key or token that was found to be
   * valid, every few seconds. `identified` hears whose each request is. `lookedUp` hears of each request whether billing
   * need not be asked.
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
   * @throws {ServiceUnavailable} billing or the issuer does not answer, or too many keys or tokens are being looked up
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
      // A refusal counts from then on. After a failure the next caller asks again.
      if (known.until - now <= REFRESH_MS && !inFlight && canLookUp) lookUp().catch(() => undefined)
      return known.principal
    }
    const refused = this.#refused.get(name)
    if (refused && isAhead(refused.until, now, REFUSAL_TTL_MS)) throw refused.error
    if (inFlight) return sharedOf(inFlight, () => lookups.get(name)?.found ?? lookUp())
    if (!canLookUp) throw new ServiceUnavailable('Authentication')
    return lookUp()
  }

  /** Asks again for a session that has just ended here. */
  evict(token: string): void {
    this.#known.delete(token)
    // Its answer may be older than the end.
    this.#keyLookups.delete(token)
  }

  /**
   * Asks billing again for what a change of rules by this caller may concern: the keys and sessions of its organization,
   * for an operator those of all. Lookups in flight may be older than the change. Refusals do not say whose they are:
   * `liftsRefusals` drops those of all organizations, if the change may let a refused key in.
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
    // Not the signal of the first caller: others wait for the same answer.
    const signal = AbortSignal.timeout(LOOKUP_TIMEOUT_MS)
    try {
      return await untilAborted(this.#authenticate(apiKey, { requestId, signal }), signal)
    } catch (error) {
      throw signal.aborted ? new ServiceUnavailable('Authentication', { cause: error }) : error
    }
  }
}

/** What a lookup that began earlier finds. If a change has made that old, what `again` finds, which began later. */
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
 * True while `until` is in the future. False when it is further off than `ttlMs`, because the clock was then set back.
 */
function isAhead(until: number, now: number, ttlMs: number): boolean {
  return until > now && until - now <= ttlMs
}

/**
 * True for the error of a missing, unknown, revoked or expired key, or of a suspended organization, also when it came
 * from another process.
 */
export function isRefusal(error: unknown): error is KisError {
  return error instanceof KisError && (error.code === 'invalid_api_key' || error.code === 'organization_suspended')
}
