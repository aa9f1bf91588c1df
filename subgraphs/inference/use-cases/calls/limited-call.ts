import type { RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import type { AskContext, CallContext, Services, With } from '../deps.ts'
import type { Taken } from './call-limits.ts'
import type { Importance } from './load-shedding.ts'
import { byRulesInForce } from './principals.ts'

/**
 * One call from its door to its end, and what it takes of this process and of its key's limits. However the call ends,
 * `leave` must be called; a call that was not admitted has nothing to give back.
 */
export class LimitedCall {
  readonly #deps: Pick<Services, 'load' | 'limits'>
  #ask: AskContext
  readonly #end: () => void
  #taken: Taken | undefined

  /** @throws {KisError} `service_unavailable`: the process has too much to do. */
  constructor(deps: Pick<Services, 'load' | 'limits'>, ask: AskContext, importance: Importance) {
    this.#deps = deps
    this.#ask = ask
    this.#end = deps.load.enter(importance)
  }

  /**
   * The last check before the hold. Takes one request and `tokens` of the key's limits, which what is charged in the
   * end corrects; null: only a place among the organization's calls. A call that is admitted again gives back what it
   * had taken.
   * @throws {KisError} `rate_limit_exceeded`: nothing was taken.
   */
  admit(caller: Principal, tokens: number | null): CallContext {
    this.#taken?.undo()
    this.#taken = undefined
    this.#ask = { ...this.#ask, caller }
    const taken = this.#deps.limits.enter(caller, tokens)
    this.#taken = taken
    return { ...this.#ask, caller, spent: (usage) => taken.spent(sumTokens(usage)) }
  }

  /** What is left to the key; null: it has no limits. */
  get rateLimits(): RateLimits | null {
    return readRateLimits(this.#deps, this.#ask)
  }

  /** Repeatable. */
  leave(): void {
    this.#taken?.leave()
    this.#end()
  }

  /** Ends the call by a failure, which then says what is left to the key. */
  failed(error: unknown): unknown {
    this.leave()
    return withRateLimits(this.#deps, this.#ask, error)
  }
}

/**
 * Works under the limits, and by the rules in force; the answer says what is left of them after it.
 * @throws {KisError}
 */
export async function limited<Value extends object>(
  deps: With<'load' | 'limits' | 'principals'>,
  ask: AskContext,
  importance: Importance,
  work: (call: LimitedCall, ask: AskContext) => Promise<Value>,
): Promise<Value & { readonly rateLimits: RateLimits | null }> {
  const call = new LimitedCall(deps, ask, importance)
  try {
    const value = await byRulesInForce(deps, ask, (asking) => work(call, asking))
    call.leave()
    return { ...value, rateLimits: call.rateLimits }
  } catch (error) {
    throw call.failed(error)
  }
}

/** What is left to the caller's key; null: it has no limits, or is no key. */
export function readRateLimits({ limits }: Pick<Services, 'limits'>, { caller }: Pick<AskContext, 'caller'>): RateLimits | null {
  return caller && 'organizationId' in caller ? limits.readState(caller) : null
}

/** The error, which then says what is left to the caller's key. */
export function withRateLimits(deps: Pick<Services, 'limits'>, ask: Pick<AskContext, 'caller'>, error: unknown): unknown {
  if (error instanceof KisError) error.rateLimits = readRateLimits(deps, ask)
  return error
}

/** Cached input counts like any other: the limit is on what is sent, not on what it costs. */
function sumTokens({ quantities: { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } }: Usage): number {
  return inputTokens + cachedInputTokens + cacheWriteTokens + outputTokens
}
