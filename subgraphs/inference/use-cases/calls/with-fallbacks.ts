import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { Model } from '../../domain/catalog.ts'
import { EngineFailure, StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { isOffered } from '../../domain/engines/residency.ts'
import { type CallContext, getEngine, type Ports } from '../deps.ts'
import { MAX_CALL_MS } from '../money/billed-call.ts'

/** Errors that the engine caused; another engine may succeed. */
const ENGINE_FAULTS: readonly ErrorCode[] = ['engine_error', 'engine_unavailable', 'engine_timeout', 'rate_limit_exceeded']
/** Errors that show the engine is down for every caller. One caller's unusual request cannot cause them. */
const DOWN: readonly ErrorCode[] = ['engine_unavailable', 'engine_timeout']
/** Errors of an engine that did not work on the request, so that a retry pays for nothing twice. */
const REPEATABLE: readonly ErrorCode[] = ['engine_unavailable', 'rate_limit_exceeded']
/** Most attempts with one engine. Clients retry too, and more retries here would multiply theirs. */
const MAX_TRIES = 2
/** The time over which retries of calls that failed together are spread. */
const RETRY_SPREAD_MS = 500
/** Longest wait that a vendor may request and still get a retry. */
const LONGEST_RETRY_AFTER_MS = 2_000

/** Returns the model and those of its fallbacks that the caller may use and that `suits` accepts. */
export function listCandidates({ catalog }: Ports, principal: Principal, model: Model, suits: (model: Model) => boolean): readonly Model[] {
  const fallbacks = model.fallbacks.flatMap((id) => catalog.find(id) ?? [])
  return [model, ...fallbacks.filter((fallback) => isOffered(fallback, principal) && suits(fallback))]
}

/**
 * Returns the result of the first model that succeeds. Each attempt holds and resolves its own money. An attempt may
 * fail only before the caller gets its first byte, so no caller gets half a response. `attempt` gets the time at which
 * the whole call must end, in milliseconds since the epoch, and the charge of earlier attempts, in nano-USD.
 * @throws {KisError} the error of the last engine that failed.
 */
export async function withFallbacks<Result>(
  deps: Ports,
  context: CallContext,
  models: readonly Model[],
  attempt: (model: Model, endsAt: number, chargedBefore: bigint) => Promise<Result>,
): Promise<Result> {
  const { clock, log } = deps
  const endsAt = clock.now().getTime() + MAX_CALL_MS
  let failure: unknown
  let charged = 0n
  for (const model of models) {
    const { breaker, retries } = getEngine(deps, model)
    const facts = { requestId: context.requestId, model: model.id, engine: model.engine }
    const waitMs = breaker.waitMs(clock.now().getTime())
    if (waitMs > 0) {
      failure = new KisError('engine_unavailable', `The engine of \`${model.id}\` does not respond at the moment.`, {
        retryAfterMs: waitMs,
      })
      continue
    }
    retries.called()
    for (let tries = 1; ; tries++) {
      const leftMs = endsAt - clock.now().getTime()
      if (leftMs <= 0) throw failure
      try {
        const result = await attempt(model, endsAt, charged)
        breaker.succeeded()
        if (model !== models[0]) log.info({ ...facts, asked: models[0]?.id }, 'fallback responded')
        return result
      } catch (error) {
        if (error instanceof StoppedByLimit) charged += error.charged
        if (!(error instanceof KisError) || context.signal.aborted) throw error
        if (!ENGINE_FAULTS.includes(error.code)) {
          // The caller did not choose the fallback, so an error that concerns only the fallback, such as too little
          // money for its price, is not the result of the request.
          if (model === models[0] || error.code === 'service_unavailable') throw error
          break
        }
        failure = error
        const isLeftAlone = DOWN.includes(error.code) && breaker.failed(clock.now().getTime())
        if (isLeftAlone) log.warn(facts, 'the circuit breaker of an engine opened')
        const delayMs = (error.retryAfterMs ?? 0) + Math.random() * RETRY_SPREAD_MS
        const isRepeated =
          tries < MAX_TRIES &&
          !isLeftAlone &&
          isRepeatable(error) &&
          (error.retryAfterMs ?? 0) <= LONGEST_RETRY_AFTER_MS &&
          delayMs < leftMs &&
          retries.tryConsume()
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
