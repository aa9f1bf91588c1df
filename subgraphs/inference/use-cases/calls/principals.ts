import { LRUCache } from 'lru-cache'
import { InvalidApiKey, KisError, ServiceUnavailable, StalePrincipal, TooBusy } from '../../../common/errors.ts'
import { type Caller, type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { Billing } from '../../ports/billing.ts'
import type { AskContext, Services } from '../deps.ts'

/**
 * What a run goes by is at most this old; with the time of a step, a change reaches also what takes no money within 5
 * s.
 */
const RECENT_MS = 3_500
/** Two reads of the store. */
const ASK_TIMEOUT_MS = 5_000
/** Keys that are remembered, some 10 MB. */
const MAX_KEYS = 10_000
/** Changes of the rules that may overtake one call, one after the other. */
const MAX_TRIES = 4

interface Found {
  readonly principal: Principal | null
  readonly at: number
}

/**
 * Who the keys of calls and runs are by the rules in force, as far as this process had to ask: the gateway's word is up
 * to 3.5 s old, a run's start hours.
 */
export class Principals {
  readonly #billing: Pick<Billing, 'findPrincipal'>
  readonly #clock: Clock
  readonly #found = new LRUCache<string, Found>({ max: MAX_KEYS })
  readonly #asking = new Map<string, Promise<Found>>()

  constructor(billing: Pick<Billing, 'findPrincipal'>, clock: Clock) {
    this.#billing = billing
    this.#clock = clock
  }

  /** The caller, or what was found of the key since. @throws {KisError} it may no longer call. */
  latest<Who extends Caller | null>(caller: Who): Who | Principal {
    if (!caller || 'service' in caller) return caller
    const { principal } = this.#found.get(caller.apiKeyId) ?? {}
    return principal && principal.revision > caller.revision ? actingAs(caller, principal) : caller
  }

  /** The caller as of a few seconds ago at most. @throws {KisError} it may no longer call. */
  async recent(caller: Principal): Promise<Principal> {
    const found = this.#found.get(caller.apiKeyId)
    const ageMs = this.#clock.now().getTime() - (found?.at ?? 0)
    return found && ageMs >= 0 && ageMs < RECENT_MS ? actingAs(caller, found.principal) : this.now(caller)
  }

  /** The caller as billing knows it now. @throws {KisError} it may no longer call. */
  async now(caller: Principal): Promise<Principal> {
    const { principal } = await (this.#asking.get(caller.apiKeyId) ?? this.#ask(caller))
    return actingAs(caller, principal)
  }

  /** Shared by all who ask meanwhile, and so not ended by one of them. */
  #ask({ organizationId, apiKeyId }: Principal): Promise<Found> {
    const at = this.#clock.now().getTime()
    const asking = this.#billing
      .findPrincipal(organizationId, apiKeyId, AbortSignal.timeout(ASK_TIMEOUT_MS))
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
      .finally(() => this.#asking.delete(apiKeyId))
    this.#asking.set(apiKeyId, asking)
    return asking
  }
}

/**
 * @throws {InvalidApiKey} the key, or the secret that was sent, is good no longer.
 * @throws {PermissionDenied} runs of the key may not go on.
 */
function actingAs({ isRun, rotations }: Principal, now: Principal | null): Principal {
  if (!now || now.isEnded) throw new InvalidApiKey()
  if (isRun) return { ...requireScope(now, 'agents'), isRun }
  if (now.rotations !== rotations) throw new InvalidApiKey()
  return now
}

/**
 * Does work that places a hold: from its admission again, where the rules were changed since its caller was read.
 * @throws {KisError} what the rules in force say of the caller.
 */
export async function byRulesInForce<Ask extends AskContext, Value>(
  { principals }: Pick<Services, 'principals'>,
  ask: Ask,
  work: (ask: Ask) => Promise<Value>,
): Promise<Value> {
  let asking: Ask = { ...ask, caller: principals.latest(ask.caller) }
  for (let tries = 1; ; tries++) {
    try {
      return await work(asking)
    } catch (error) {
      const { caller } = asking
      if (!(error instanceof StalePrincipal) || !caller || 'service' in caller) throw error
      if (tries === MAX_TRIES) throw new TooBusy('The rules of this organization are being changed.')
      asking = { ...asking, caller: await principals.now(caller) }
    }
  }
}
