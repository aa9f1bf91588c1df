import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { Model } from '../../domain/catalog.ts'
import { EngineFailure } from '../../domain/engines/engine-failure.ts'
import { isOffered } from '../../domain/engines/residency.ts'
import { type CallContext, getEngine, type Ports } from '../deps.ts'
import { MAX_CALL_MS } from '../money/billed-call.ts'

/** The engine is at fault, and another may answer. */
const ENGINE_FAULTS: readonly ErrorCode[] = ['engine_error', 'engine_unavailable', 'engine_timeout', 'rate_limit_exceeded']
/** Signs that the engine is down for every caller, which one caller's odd request cannot make. */
const DOWN: readonly ErrorCode[] = ['engine_unavailable', 'engine_timeout']
/** The engine has not worked on the request, so that asking it again buys nothing twice. */
const REPEATABLE: readonly ErrorCode[] = ['engine_unavailable', 'rate_limit_exceeded']
/** Clients repeat too; more than one repeat here would multiply theirs. */
const MAX_TRIES = 2
/** Repeats of calls that failed together are spread over this long. */
const RETRY_SPREAD_MS = 500
/** A vendor that asks for a longer wait is not asked again. */
const LONGEST_RETRY_AFTER_MS = 2_000

/** The model, and those of its fallbacks that the caller may use and that `suit` the request. */
export function listCandidates({ catalog }: Ports, principal: Principal, model: Model, suits: (model: Model) => boolean): readonly Model[] {
  const fallbacks = model.fallbacks.flatMap((id) => catalog.find(id) ?? [])
  return [model, ...fallbacks.filter((fallback) => isOffered(fallback, principal) && suits(fallback))]
}

/**
 * The answer of the first model that gives one. Each attempt holds and frees its own money; it fails before its first
 * byte, so that nobody sees a half answer. `endsAt` is the end of the call's time.
 * @throws {KisError} what the last engine failed with.
 */
export async function firstToAnswer<Answer>(
  deps: Ports,
  context: CallContext,
  models: readonly Model[],
  attempt: (model: Model, endsAt: number) => Promise<Answer>,
): Promise<Answer> {
  const { clock, log } = deps
  const endsAt = clock.now().getTime() + MAX_CALL_MS
  let failure: unknown
  for (const model of models) {
    const { breaker, retries } = getEngine(deps, model)
    const facts = { requestId: context.requestId, model: model.id, engine: model.engine }
    const waitMs = breaker.waitMs(clock.now().getTime())
    if (waitMs > 0) {
      failure = new KisError('engine_unavailable', `The engine of \`${model.id}\` does not answer at the moment.`, { retryAfterMs: waitMs })
      continue
    }
    retries.called()
    for (let tries = 1; ; tries++) {
      const leftMs = endsAt - clock.now().getTime()
      if (leftMs <= 0) throw failure
      try {
        const answer = await attempt(model, endsAt)
        breaker.succeeded()
        if (model !== models[0]) log.info({ ...facts, asked: models[0]?.id }, 'fallback answered')
        return answer
      } catch (error) {
        if (!(error instanceof KisError) || context.signal.aborted) throw error
        if (!ENGINE_FAULTS.includes(error.code)) {
          // The caller did not choose the fallback: what only it lacks, such as money for its price, is no answer to
          // the request.
          if (model === models[0] || error.code === 'service_unavailable') throw error
          break
        }
        failure = error
        const isLeftAlone = DOWN.includes(error.code) && breaker.failed(clock.now().getTime())
        if (isLeftAlone) log.warn(facts, 'engine is left alone')
        const delayMs = (error.retryAfterMs ?? 0) + Math.random() * RETRY_SPREAD_MS
        const isRepeated =
          tries < MAX_TRIES &&
          !isLeftAlone &&
          isRepeatable(error) &&
          (error.retryAfterMs ?? 0) <= LONGEST_RETRY_AFTER_MS &&
          delayMs < leftMs &&
          retries.take()
        log.info({ ...facts, code: error.code, vendorCode: error.vendorCode, isRepeated }, 'engine failed')
        if (!isRepeated) break
        await clock.sleep(delayMs, context.signal)
      }
    }
  }
  throw failure
}

function isRepeatable(error: KisError): boolean {
  return error instanceof EngineFailure ? error.isRepeatable : REPEATABLE.includes(error.code)
}
