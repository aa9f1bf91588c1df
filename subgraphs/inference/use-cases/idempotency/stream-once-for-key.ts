import type { RateLimits } from '../../../../schema/errors.ts'
import { isAbsent } from '../../../common/check.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import { consumeRequest, readRateLimits, withRateLimits } from '../calls/limited-call.ts'
import type { KeyedDeps, RequestContext } from '../deps.ts'
import type { Recorded } from './keyed-calls.ts'
import { Interrupted, toError } from './keyed-outcome.ts'
import { KeyedRun } from './keyed-run.ts'
import { claim, detached, type Replayable, type SentCall } from './once-for-key.ts'

/** The fields of every event of a billed stream. */
export interface BilledEvent {
  /** Set in the first event, with the limits of that moment. Also null there when the key has no limits. */
  readonly rateLimits: RateLimits | null
  /** Null before the last event. */
  readonly cost: bigint | null
}

type Events<Event> = AsyncIterableIterator<Event & Replayable, undefined>
type Open<Event> = (requestContext: RequestContext) => AsyncIterableIterator<Event, undefined>

/**
 * Does what `onceForKey` does, for a stream. When the caller leaves, the stream is read to its end. A replay has the
 * same pieces. Nothing happens before the first `next()`.
 */
export function streamOnceForKey<Event extends BilledEvent>(
  deps: KeyedDeps,
  requestContext: RequestContext,
  call: SentCall,
  open: Open<Event>,
): Events<Event> {
  if (isAbsent(call.idempotencyKey)) return open(requestContext)
  const stream = new KeyedStream(deps, requestContext, call, open)
  return endableIterator(
    () => stream.next(),
    () => stream.close(),
    requestContext.signal,
  )
}

class KeyedStream<Event extends BilledEvent> {
  readonly #deps: KeyedDeps
  readonly #start: () => Promise<AsyncIterator<Event & Replayable, undefined>>
  #events: AsyncIterator<Event & Replayable, undefined> | undefined
  /** The latest step. Steps run one after the other, because the caller may leave during one. */
  #latest: Promise<unknown> | undefined
  #record: KeyedRun | undefined
  #hasLeft = false

  constructor(deps: KeyedDeps, requestContext: RequestContext, call: SentCall, open: Open<Event>) {
    this.#deps = deps
    this.#start = async () => {
      const claimed = await claim(deps, requestContext, call)
      if (!(claimed instanceof KeyedRun)) return replay<Event>(deps, requestContext, claimed)
      this.#record = claimed
      return recorded(claimed, open(detached(deps, requestContext, claimed)))
    }
  }

  next(): Promise<IteratorResult<Event & Replayable, undefined>> {
    const step = Promise.resolve(this.#latest).then(async () => {
      this.#events ??= await this.#start()
      const next = await this.#events.next()
      if (!this.#hasLeft) this.#record?.delivered()
      return next
    })
    this.#latest = step.catch(() => undefined)
    return step
  }

  close(): void {
    this.#hasLeft = true
    if (this.#latest) this.#deps.background.track(this.#readOn()).catch(() => undefined)
  }

  async #readOn(): Promise<void> {
    await this.#latest
    // `#events` is undefined when the call never started.
    while (this.#events && !(await this.#events.next()).done);
  }
}

/** Passes the events on and records them, with the end of the call. */
export async function* recorded<Event extends BilledEvent>(
  record: KeyedRun,
  events: AsyncIterableIterator<Event, undefined>,
): AsyncGenerator<Event, undefined> {
  try {
    for await (const event of events) {
      if (event.cost === null) record.gather(event)
      else await record.end(event.cost)
      yield event
      if (event.cost !== null) return
    }
    // The process stops and has ended the stream.
    throw new Interrupted()
  } catch (error) {
    await record.fail(error)
    throw error
  }
}

/**
 * The events of a call that has ended.
 * @throws {KisError} `rate_limit_exceeded`: the caller's key has no request left for a replay.
 */
export async function* replay<Event extends BilledEvent>(
  deps: KeyedDeps,
  requestContext: RequestContext,
  { outcome, cost }: Recorded,
): AsyncGenerator<Event & Replayable, undefined> {
  await consumeRequest(deps, requestContext)
  let rateLimits = readRateLimits(deps, requestContext)
  const again = (event: object) => {
    const replayed = { ...(event as Event), rateLimits, replayed: true }
    rateLimits = null
    return replayed
  }
  for (const event of outcome.events) yield again(event)
  if (outcome.failure) throw withRateLimits(deps, requestContext, toError(outcome.failure))
  yield { ...again(outcome.value!), cost }
}
