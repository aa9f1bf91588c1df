import { LRUCache } from 'lru-cache'
import { InvalidApiKey, KisError, OrganizationSuspended, ServiceUnavailable, StalePrincipal, TooBusy } from '../../../common/errors.ts'
import { type Caller, type Principal, requireScope, withinScopes } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { Billing } from '../../ports/billing.ts'
import type { RequestContext, Services } from '../deps.ts'

/**
 * Greatest age of the rules that a run goes by. With the time of a step, a change reaches runs within 5 s, also where
 * they hold no money.
 */
const RECENT_MS = 3_500
/** Time for two reads of the store. */
const REQUEST_TIMEOUT_MS = 5_000
/** Most keys that are remembered, about 10 MB. */
const MAX_KEYS = 10_000
/** Most attempts of one call whose rules change while it is admitted. */
const MAX_TRIES = 4

interface Found {
  readonly principal: Principal | null
  readonly at: number
}

/**
 * The principals of keys by the rules in force, as far as this process has asked billing. The gateway's principal can
 * be 3.5 s old, and that of a run's start can be hours old.
 */
export class Principals {
  readonly #billing: Pick<Billing, 'findPrincipal'>
  readonly #clock: Clock
  readonly #found = new LRUCache<string, Found>({ max: MAX_KEYS })
  readonly #pending = new Map<string, Promise<Found>>()

  constructor(billing: Pick<Billing, 'findPrincipal'>, clock: Clock) {
    this.#billing = billing
    this.#clock = clock
  }

  /**
   * Returns the newest known principal of the caller, without asking billing.
   * @throws {KisError} as `actingAs`: the caller may no longer call.
   */
  latest<Who extends Caller | null>(caller: Who): Who | Principal {
    if (!caller || 'service' in caller) return caller
    const { principal } = this.#found.get(caller.apiKeyId) ?? {}
    return principal && principal.revision > caller.revision ? actingAs(caller, principal) : caller
  }

  /**
   * Returns the caller's principal, at most 3.5 s old.
   * @throws {KisError} as `actingAs`: the caller may no longer call.
   */
  async recent(caller: Principal): Promise<Principal> {
    const found = this.#found.get(caller.apiKeyId)
    const ageMs = this.#clock.now().getTime() - (found?.at ?? 0)
    return found && ageMs >= 0 && ageMs < RECENT_MS ? actingAs(caller, found.principal) : this.now(caller)
  }

  /**
   * Returns the caller's principal as billing has it now.
   * @throws {KisError} as `actingAs`: the caller may no longer call.
   */
  async now(caller: Principal): Promise<Principal> {
    const { principal } = await (this.#pending.get(caller.apiKeyId) ?? this.#request(caller))
    return actingAs(caller, principal)
  }

  /** Asks billing. All callers that wait for the same key share the request, so no caller's signal ends it. */
  #request({ organizationId, apiKeyId }: Principal): Promise<Found> {
    const at = this.#clock.now().getTime()
    const pending = this.#billing
      .findPrincipal(organizationId, apiKeyId, AbortSignal.timeout(REQUEST_TIMEOUT_MS))
      .then(
        (principal) => {
          const found = { principal, at }
          this.#found.set(apiKeyId, found)
          return found
        },
        (error) => {
          throw error instanceof KisError ? error : new ServiceUnavailable('Billing', { cause: error })
        },
      )
      .finally(() => this.#pending.delete(apiKeyId))
    this.#pending.set(apiKeyId, pending)
    return pending
  }
}

/**
 * The caller by the rules of now. It has no scope that it did not have: an access token may have fewer than its key.
 * @throws {InvalidApiKey} the key is no longer valid, or its secret was rotated.
 * @throws {OrganizationSuspended}
 * @throws {PermissionDenied} the key no longer has the scope for runs.
 */
function actingAs(caller: Principal, now: Principal | null): Principal {
  const { isRun, rotations } = caller
  if (!now || now.isEnded) throw new InvalidApiKey()
  if (now.isSuspended) throw new OrganizationSuspended()
  const narrowed = withinScopes(now, caller.scopes)
  if (isRun) return { ...requireScope(narrowed, 'agents'), isRun }
  if (now.rotations !== rotations) throw new InvalidApiKey()
  return narrowed
}

/**
 * Does work that places a hold. If the rules changed since its caller was read, the work starts again with the new
 * rules.
 * @throws {KisError} the rules in force refuse the caller, or they change too often.
 */
export async function byRulesInForce<Context extends RequestContext, Value>(
  { principals }: Pick<Services, 'principals'>,
  requestContext: Context,
  work: (requestContext: Context) => Promise<Value>,
): Promise<Value> {
  let currentContext: Context = { ...requestContext, caller: principals.latest(requestContext.caller) }
  for (let tries = 1; ; tries++) {
    try {
      return await work(currentContext)
    } catch (error) {
      const { caller } = currentContext
      if (!(error instanceof StalePrincipal) || !caller || 'service' in caller) throw error
      if (tries === MAX_TRIES) throw new TooBusy('The rules of this organization are being changed.')
      currentContext = { ...currentContext, caller: await principals.now(caller) }
    }
  }
}
