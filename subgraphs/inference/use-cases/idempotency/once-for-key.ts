import type { RateLimits } from '../../../../schema/errors.ts'
import { isAbsent } from '../../../common/check.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import { checkIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts'
import { readRateLimits, withRateLimits } from '../calls/limited-call.ts'
import type { AskContext, KeyedDeps } from '../deps.ts'
import type { Recorded } from './keyed-calls.ts'
import { toError } from './keyed-outcome.ts'
import { KeyedRun } from './keyed-run.ts'

/** A billable call, and the idempotency key that it was sent with, if any. */
export interface SentCall {
  readonly operation: 'chat_completion' | 'chat_completion_stream' | 'embedding' | 'transcription' | 'transcription_stream'
  /** Whole, as it was sent: two calls are the same when this is. */
  readonly request: unknown
  readonly idempotencyKey?: unknown
}

/** Whether an answer is that of an earlier call with the same key; absent: it is not. */
export interface Replayable {
  readonly replayed?: boolean
}

/** What an answer says of now, and not of the call. */
interface Current {
  readonly rateLimits: RateLimits | null
}

export function isReplayed(answer: object): boolean {
  return 'replayed' in answer && answer.replayed === true
}

/**
 * Runs a call, or gives what came of an earlier one with the same idempotency key. A call with a key goes on when its
 * caller leaves, so that a repeat finds its outcome.
 * @throws {KisError} what the call fails with, or has failed with after it was charged; `idempotency_conflict`.
 */
export async function onceForKey<Value extends Current & { readonly cost: bigint }>(
  deps: KeyedDeps,
  ask: AskContext,
  call: SentCall,
  run: (ask: AskContext) => Promise<Value>,
): Promise<Value & Replayable> {
  if (isAbsent(call.idempotencyKey)) return run(ask)
  const claimed = await claim(deps, ask, call)
  if (claimed instanceof KeyedRun) return deps.background.track(runKeyed(deps, ask, claimed, run))
  const { outcome, cost } = claimed
  if (outcome.failure) throw withRateLimits(deps, ask, toError(outcome.failure))
  return { ...(outcome.value as Value), cost, rateLimits: readRateLimits(deps, ask), replayed: true }
}

/** @throws {KisError} */
export function claim(deps: KeyedDeps, ask: AskContext, { operation, request, idempotencyKey }: SentCall): Promise<KeyedRun | Recorded> {
  // The claim is a write, which an overloaded process does not begin.
  deps.load.check(operation === 'embedding' ? 'embeddings' : 'chat')
  const caller = requireScope(ask.caller, 'inference')
  const key = checkIdempotencyKey(idempotencyKey)
  return deps.keyedCalls.claim({ ...ask, caller }, key, requestDigest(operation, request)).catch((error) => {
    throw withRateLimits(deps, ask, error)
  })
}

/** What the call goes by in place of its caller's wishes: it ends when the process does. */
export function detached(deps: KeyedDeps, ask: AskContext, record: KeyedRun): AskContext {
  return { ...ask, signal: deps.keyedCalls.signal, record }
}

async function runKeyed<Value extends { readonly cost: bigint }>(
  deps: KeyedDeps,
  ask: AskContext,
  record: KeyedRun,
  run: (ask: AskContext) => Promise<Value>,
): Promise<Value> {
  try {
    const value = await run(detached(deps, ask, record))
    await record.end(value.cost)
    return value
  } catch (error) {
    await record.fail(error)
    throw error
  }
}
