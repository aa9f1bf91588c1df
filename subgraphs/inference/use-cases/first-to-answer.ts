import type { ErrorCode } from '../../../schema/errors.ts'
import { KisError } from '../../common/errors.ts'
import type { Principal } from '../../common/principal.ts'
import type { Model } from '../domain/catalog.ts'
import { isOffered } from '../domain/residency.ts'
import { type CallContext, type Deps, engineOf } from './deps.ts'

/** The engine is at fault, and another may answer. */
const ENGINE_FAULTS: readonly ErrorCode[] = ['engine_error', 'engine_unavailable', 'engine_timeout', 'rate_limit_exceeded']
/** Signs that the engine is down for every caller, which one caller's odd request cannot make. */
const DOWN: readonly ErrorCode[] = ['engine_unavailable', 'engine_timeout']
/** The engine has not worked on the request, so that asking it again buys nothing twice. */
const REPEATABLE: readonly ErrorCode[] = ['engine_unavailable', 'rate_limit_exceeded']
/** Clients repeat too; more than one repeat here would multiply theirs. */
const MAX_TRIES = 2
const RETRY_DELAY_MS = 250
/** A vendor that asks for a longer wait is not asked again. */
const LONGEST_RETRY_DELAY_MS = 2_000

/** The model, and those of its fallbacks that the caller may use and that `suit` the request. */
export function candidatesOf({ catalog }: Deps, principal: Principal, model: Model, suits: (model: Model) => boolean): readonly Model[] {
  const fallbacks = model.fallbacks.flatMap((id) => catalog.find(id) ?? [])
  return [model, ...fallbacks.filter((fallback) => isOffered(fallback, principal) && suits(fallback))]
}

/**
 * The answer of the first model that gives one. Each attempt holds and frees its own money; it fails before its first byte, so that
 * nobody sees a half answer. @throws {KisError} what the last model failed with.
 */
export async function firstToAnswer<Answer>(
  deps: Deps,
  context: CallContext,
  models: readonly Model[],
  attempt: (model: Model) => Promise<Answer>,
): Promise<Answer> {
  let failure: unknown
  for (const model of models) {
    const breaker = engineOf(deps, model).breaker
    const waitMs = breaker.waitMs(deps.clock.now().getTime())
    if (waitMs > 0) {
      failure = new KisError('engine_unavailable', `The engine of \`${model.id}\` does not answer at the moment.`, { retryAfterMs: waitMs })
      continue
    }
    for (let tries = 1; ; tries++) {
      try {
        const answer = await attempt(model)
        breaker.succeeded()
        return answer
      } catch (error) {
        failure = error
        if (!(error instanceof KisError) || !ENGINE_FAULTS.includes(error.code) || context.signal.aborted) throw error
        if (DOWN.includes(error.code)) breaker.failed(deps.clock.now().getTime())
        const delayMs = error.retryAfterMs ?? RETRY_DELAY_MS * (0.5 + Math.random())
        if (tries === MAX_TRIES || !REPEATABLE.includes(error.code) || delayMs > LONGEST_RETRY_DELAY_MS) break
        await deps.clock.sleep(delayMs, context.signal)
      }
    }
  }
  throw failure
}
