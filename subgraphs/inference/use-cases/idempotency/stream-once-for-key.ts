import type { RateLimits } from '../../../../schema/errors.ts'
import { isAbsent } from '../../../common/check.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import { readRateLimits, withRateLimits } from '../calls/limited-call.ts'
import type { AskContext, KeyedDeps } from '../deps.ts'
import type { Recorded } from './keyed-calls.ts'
import { Interrupted, toError } from './keyed-outcome.ts'
import { KeyedRun } from './keyed-run.ts'
import { claim, detached, type Replayable, type SentCall } from './once-for-key.ts'

/** What every event of a billed stream says. */
export interface BilledEvent {
  /** With the first event, as they were then; null also when the key has none. */
  readonly rateLimits: RateLimits | null
  /** Null before the last event. */
  readonly cost: bigint | null
}

type Events<Event> = AsyncIterableIterator<Event & Replayable, undefined>
type Open<Event> = (ask: AskContext) => AsyncIterableIterator<Event, undefined>

/**
 * `onceForKey` for a stream: it is read to its end when its caller leaves, and replayed in the same pieces. Nothing
 * happens before the first `next()`.
 */
export function streamOnceForKey<Event extends BilledEvent>(
  deps: KeyedDeps,
  ask: AskContext,
  call: SentCall,
  open: Open<Event>,
): Events<Event> {
  if (isAbsent(call.idempotencyKey)) return open(ask)
  const stream = new KeyedStream(deps, ask, call, open)
  return endableIterator(
    () => stream.next(),
    () => stream.leave(),
    ask.signal,
  )
}

class KeyedStream<Event extends BilledEvent> {
  readonly #deps: KeyedDeps
  readonly #begin: () => Promise<AsyncIterator<Event & Replayable, undefined>>
  #events: AsyncIterator<Event & Replayable, undefined> | undefined
  /** Steps follow each other: the caller may leave in the middle of one. */
  #latest: Promise<unknown> | undefined
  #record: KeyedRun | undefined
  #hasLeft = false

  constructor(deps: KeyedDeps, ask: AskContext, call: SentCall, open: Open<Event>) {
    this.#deps = deps
    this.#begin = async () => {
      const claimed = await claim(deps, ask, call)
      if (!(claimed instanceof KeyedRun)) return replay<Event>(deps, ask, claimed)
      this.#record = claimed
      return kept(claimed, open(detached(deps, ask, claimed)))
    }
  }

  next(): Promise<IteratorResult<Event & Replayable, undefined>> {
    const step = Promise.resolve(this.#latest).then(async () => {
      this.#events ??= await this.#begin()
      const next = await this.#events.next()
      if (!this.#hasLeft) this.#record?.delivered()
      return next
    })
    this.#latest = step.catch(() => undefined)
    return step
  }

  leave(): void {
    this.#hasLeft = true
    if (this.#latest) this.#deps.background.track(this.#readOn()).catch(() => undefined)
  }

  async #readOn(): Promise<void> {
    await this.#latest
    // A call that never began has nothing to read on.
    while (this.#events && !(await this.#events.next()).done);
  }
}

async function* kept<Event extends BilledEvent>(
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
    // It was ended from here.
    throw new Interrupted()
  } catch (error) {
    await record.fail(error)
    throw error
  }
}

async function* replay<Event extends BilledEvent>(
  deps: KeyedDeps,
  ask: AskContext,
  { outcome, cost }: Recorded,
): AsyncGenerator<Event & Replayable, undefined> {
  let rateLimits = readRateLimits(deps, ask)
  const again = (event: object) => {
    const replayed = { ...(event as Event), rateLimits, replayed: true }
    rateLimits = null
    return replayed
  }
  for (const event of outcome.events) yield again(event)
  if (outcome.failure) throw withRateLimits(deps, ask, toError(outcome.failure))
  yield { ...again(outcome.value!), cost }
}
