import type { RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { type Principal, requirePrincipal } from '../../../common/identity/principal.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import type { CallContext, RequestContext, Services, With } from '../deps.ts'
import type { CallPermit } from './call-limits.ts'
import type { Importance } from './load-shedding.ts'
import { byRulesInForce } from './principals.ts'

/**
 * One call from its arrival to its end, with its share of the process's capacity and of its key's limits. `release`
 * must be called however the call ends.
 */
export class LimitedCall {
  readonly #deps: Pick<Services, 'load' | 'limits'>
  #requestContext: RequestContext
  readonly #end: () => void
  #permit: CallPermit | undefined
  #isOver = false

  /** @throws {KisError} `service_unavailable`: the process is overloaded. */
  constructor(deps: Pick<Services, 'load' | 'limits'>, requestContext: RequestContext, importance: Importance) {
    this.#deps = deps
    this.#requestContext = requestContext
    this.#end = deps.load.enter(importance)
  }

  /**
   * Consumes one request and `tokens` from the key's limits, as the last check before the hold. The charged usage
   * corrects the tokens later. With null for `tokens`, it acquires only one of the organization's concurrent calls.
   * When a call is admitted again, it first returns what it had acquired.
   * @throws {KisError} `rate_limit_exceeded`: a limit is reached, and nothing was acquired.
   * @throws the call was released meanwhile, and nothing was acquired.
   */
  async admit(caller: Principal, tokens: number | null): Promise<CallContext> {
    this.#permit?.undo()
    this.#permit = undefined
    this.#requestContext = { ...this.#requestContext, caller }
    const permit = await this.#deps.limits.enter(caller, tokens)
    if (this.#isOver) {
      permit.undo()
      throw new DOMException('The caller disconnected before the call was admitted.', 'AbortError')
    }
    this.#permit = permit
    return { ...this.#requestContext, caller, spent: (usage) => permit.spent(sumTokens(usage)) }
  }

  /** The remaining limits of the key, or null when it has none. */
  get rateLimits(): RateLimits | null {
    return readRateLimits(this.#deps, this.#requestContext)
  }

  /** Ends the call. Can be repeated. */
  release(): void {
    this.#isOver = true
    this.#permit?.release()
    this.#end()
  }

  /** Ends the call after a failure and returns the error with the remaining limits of the key. */
  failed(error: unknown): unknown {
    this.release()
    return withRateLimits(this.#deps, this.#requestContext, error)
  }
}

/**
 * Does the work under the current limits and rules. The result includes the remaining limits afterwards.
 * @throws {KisError} `service_unavailable`: the process is overloaded.
 * @throws {KisError} the error of the work, with the remaining limits.
 */
export async function limited<Value extends object>(
  deps: With<'load' | 'limits' | 'principals'>,
  requestContext: RequestContext,
  importance: Importance,
  work: (call: LimitedCall, requestContext: RequestContext) => Promise<Value>,
): Promise<Value & { readonly rateLimits: RateLimits | null }> {
  const call = new LimitedCall(deps, requestContext, importance)
  try {
    const value = await byRulesInForce(deps, requestContext, (currentContext) => work(call, currentContext))
    call.release()
    return { ...value, rateLimits: call.rateLimits }
  } catch (error) {
    throw call.failed(error)
  }
}

/**
 * Consumes one request of the caller's key, for work that is not a model call, such as a quote or a replay.
 * @throws {KisError} `rate_limit_exceeded`, with the remaining limits.
 */
export async function consumeRequest(deps: Pick<Services, 'limits'>, requestContext: Pick<RequestContext, 'caller'>): Promise<void> {
  try {
    await deps.limits.consumeRequest(requirePrincipal(requestContext.caller))
  } catch (error) {
    throw withRateLimits(deps, requestContext, error)
  }
}

/** Returns the remaining limits of the caller's key, or null when the key has none or the caller has no key. */
export function readRateLimits({ limits }: Pick<Services, 'limits'>, { caller }: Pick<RequestContext, 'caller'>): RateLimits | null {
  return caller && 'organizationId' in caller ? limits.readState(caller) : null
}

/** Returns the error with the remaining limits of the caller's key. */
export function withRateLimits(deps: Pick<Services, 'limits'>, requestContext: Pick<RequestContext, 'caller'>, error: unknown): unknown {
  if (error instanceof KisError) error.rateLimits = readRateLimits(deps, requestContext)
  return error
}

/** Sums all tokens. Cached input counts like any other, because the limit is on what is sent, not on what it costs. */
function sumTokens({ quantities: { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } }: Usage): number {
  return inputTokens + cachedInputTokens + cacheWriteTokens + outputTokens
}
