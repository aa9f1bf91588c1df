import type { RateLimits } from '../../../../schema/errors.ts'
import type { SignedPath } from '../../../common/bytes/byte-paths.ts'
import { isAbsent } from '../../../common/check.ts'
import { requirePrincipal, requireScope } from '../../../common/identity/principal.ts'
import { checkIdempotencyKey, requestDigest } from '../../domain/idempotency-key.ts'
import { consumeRequest, readRateLimits, withRateLimits } from '../calls/limited-call.ts'
import type { KeyedDeps, RequestContext } from '../deps.ts'
import type { Recorded } from './keyed-calls.ts'
import { notWhole, toError } from './keyed-outcome.ts'
import { KeyedRun } from './keyed-run.ts'

/** A billable call, and its idempotency key, if any. */
export interface SentCall {
  readonly operation: 'chat_completion' | 'chat_completion_stream' | 'embedding' | 'rerank' | 'transcription' | 'transcription_stream'
  /** The whole request as it was sent. Two calls are the same when their requests are equal. */
  readonly request: unknown
  readonly idempotencyKey?: unknown
  /** Whether a repeat accepts a long response as bytes. Default: false. */
  readonly replayAsBytes?: boolean | null | undefined
}

/** `replayed` reports whether the result is that of an earlier call with the same key. Absent: false. */
export interface Replayable {
  readonly replayed?: boolean
  /** The download path of a long response, which `response` then lacks. */
  readonly responseDownload?: SignedPath
}

/** The part of a result that describes the present, not the call. */
interface Current {
  readonly rateLimits: RateLimits | null
}

/** Returns the download of a replayed response that is too long to be sent inside an event; null: there is none. */
export function findResponseDownload(response: object): SignedPath | null {
  return (response as Replayable).responseDownload ?? null
}

/** Returns whether the response is that of an earlier call with the same idempotency key. */
export function isReplayed(response: object): boolean {
  return 'replayed' in response && response.replayed === true
}

/**
 * Runs a call, or returns the outcome of an earlier one with the same idempotency key. A call with a key continues when
 * its caller disconnects, so that a repeat finds its outcome.
 * @throws {KisError} the error of the call, or of the earlier call that failed after it was charged.
 * @throws {KisError} `idempotency_conflict`: the key belongs to another request, or its call is in progress.
 * @throws {KisError} `rate_limit_exceeded`: the caller's key has no request left for a replay.
 */
export async function onceForKey<Value extends Current & { readonly cost: bigint }>(
  deps: KeyedDeps,
  requestContext: RequestContext,
  call: SentCall,
  run: (requestContext: RequestContext) => Promise<Value>,
): Promise<Value & Replayable> {
  if (isAbsent(call.idempotencyKey)) return run(requestContext)
  const claimed = await claim(deps, requestContext, call)
  if (claimed instanceof KeyedRun) return deps.background.track(runKeyed(deps, requestContext, claimed, run))
  await consumeRequest(deps, requestContext)
  const { id, outcome, cost } = claimed
  if (outcome.failure) throw withRateLimits(deps, requestContext, toError(outcome.failure))
  const replayed = { ...(outcome.value as Value), cost, rateLimits: readRateLimits(deps, requestContext), replayed: true }
  if (!outcome.response) return replayed
  if (!call.replayAsBytes) throw withRateLimits(deps, requestContext, notWhole(outcome.response))
  const { organizationId } = requirePrincipal(requestContext.caller)
  return { ...replayed, responseDownload: await deps.bytePaths.sign({ kind: 'response', organizationId, key: id }) }
}

/**
 * Claims a call by its idempotency key. `streamId`: see `KeyedCalls.claim`.
 * @throws {KisError} `service_unavailable`: the process is overloaded.
 * @throws {KisError} as `requireScope`, `checkIdempotencyKey` and `KeyedCalls.claim`.
 */
export function claim(
  deps: KeyedDeps,
  requestContext: RequestContext,
  { operation, request, idempotencyKey }: SentCall,
  streamId?: string,
): Promise<KeyedRun | Recorded> {
  // The claim is a write, which an overloaded process must not start.
  deps.load.check(operation === 'embedding' || operation === 'rerank' ? 'embeddings' : 'chat')
  const caller = requireScope(requestContext.caller, 'inference')
  const key = checkIdempotencyKey(idempotencyKey)
  return deps.keyedCalls.claim({ ...requestContext, caller }, key, requestDigest(operation, request), streamId).catch((error) => {
    throw withRateLimits(deps, requestContext, error)
  })
}

/** Returns a context whose signal aborts when the process stops, not when the caller disconnects. */
export function detached(deps: KeyedDeps, requestContext: RequestContext, record: KeyedRun): RequestContext {
  return { ...requestContext, signal: deps.keyedCalls.signal, record }
}

async function runKeyed<Value extends { readonly cost: bigint }>(
  deps: KeyedDeps,
  requestContext: RequestContext,
  record: KeyedRun,
  run: (requestContext: RequestContext) => Promise<Value>,
): Promise<Value> {
  try {
    const value = await run(detached(deps, requestContext, record))
    await record.end(value.cost)
    return value
  } catch (error) {
    await record.fail(error)
    throw error
  }
}
