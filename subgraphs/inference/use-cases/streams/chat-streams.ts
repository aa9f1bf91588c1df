import { isAbsent } from '../../../common/check.ts'
import { KisError, NotHere } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import { endableIterator, openedLater } from '../../../common/process/endable-iterator.ts'
import { consumeRequest, readRateLimits } from '../calls/limited-call.ts'
import type { ChatEvent } from '../calls/stream-chat-completion.ts'
import type { KeyedDeps, RequestContext } from '../deps.ts'
import { CallInProgress } from '../idempotency/keyed-calls.ts'
import { KeyedRun } from '../idempotency/keyed-run.ts'
import { claim, detached, type SentCall } from '../idempotency/once-for-key.ts'
import { recorded, replay } from '../idempotency/stream-once-for-key.ts'
import { type FollowedChatEvent, LiveStream, type Source, type SourceEvent } from './live-stream.ts'

/** How long a stream can be followed after its end. */
export const RETENTION_MS = 30_000
/** Most bytes that the streams of an organization, and all streams, take in this process. */
const MAX_ORGANIZATION_BYTES = 16 * 1024 * 1024
const MAX_BYTES = 128 * 1024 * 1024
/** Most ended streams of an organization that are retained. */
const MAX_ENDED = 1_000
/** Most streams that a key may follow again at once in this process. */
const MAX_FOLLOWED = 50
/** Retry time that a refused follower gets. When a slot becomes free is unknown. */
const FULL_RETRY_MS = 1_000

type Events = AsyncIterableIterator<FollowedChatEvent, undefined>
type Open<Event> = (requestContext: RequestContext) => AsyncIterator<Event, undefined>

/** The memory that the streams of one organization take. */
interface Share {
  bytes: number
  /** The streams that have ended, oldest first. */
  readonly ended: Set<LiveStream>
}

const NEVER_CUT = () => false

/**
 * The streamed chat completions of this process, which their clients can follow again after a disconnect. Disposing it
 * stops the calls that nobody follows.
 */
export class ChatStreams implements Disposable {
  readonly #deps: KeyedDeps
  readonly #streams = new Map<string, LiveStream>()
  readonly #shares = new Map<string, Share>()
  /** The streams that have ended, oldest first, with the timers that remove them. */
  readonly #ended = new Map<LiveStream, NodeJS.Timeout>()
  #bytes = 0
  /** The number of followers that came back, by API key. */
  readonly #followed = new Map<string, number>()

  constructor(deps: KeyedDeps) {
    this.#deps = deps
  }

  [Symbol.dispose](): void {
    for (const stream of this.#streams.values()) stream.cancel()
  }

  /**
   * Streams a call, and does what `onceForKey` does for a call with an idempotency key. A repeat follows the call that
   * is in progress. Nothing happens before the first `next()`.
   */
  open(requestContext: RequestContext, call: SentCall, open: Open<ChatEvent>): Events {
    if (isAbsent(call.idempotencyKey))
      return this.#begun(requestContext, (effectiveContext) => ({ events: open(effectiveContext), isDetached: false }))
    return openedLater(async () => {
      const opening = Promise.withResolvers<Source>()
      // A repeat may come as soon as the claim is written.
      const stream = this.#add(requestContext, opening.promise)
      try {
        const claimed = await claim(this.#deps, requestContext, call, stream.id)
        opening.resolve(
          claimed instanceof KeyedRun
            ? {
                events: recorded(claimed, iterable(open(detached(this.#deps, requestContext, claimed)))),
                isDetached: true,
                delivered: () => claimed.delivered(),
              }
            : { events: replay(this.#deps, requestContext, claimed), isDetached: false },
        )
      } catch (error) {
        opening.promise.catch(() => undefined)
        opening.reject(error)
        this.#remove(stream)
        if (!(error instanceof CallInProgress) || error.streamId === undefined) throw error
        const running = this.#streams.get(error.streamId)
        if (!running) throw new NotHere(error)
        if (!running.isWhole) throw error
        await consumeRequest(this.#deps, requestContext)
        return this.#joined(requestContext, running)
      }
      return stream.follow(0, requestContext.isCut ?? NEVER_CUT, requestContext.signal)
    }, requestContext.signal)
  }

  /** Streams the reply of an agent's run. Runs handle idempotency keys themselves. */
  openRun(requestContext: RequestContext, { idempotencyKey }: { readonly idempotencyKey?: unknown }, open: Open<SourceEvent>): Events {
    return this.#begun(requestContext, (effectiveContext) => ({ events: open(effectiveContext), isDetached: !isAbsent(idempotencyKey) }))
  }

  /**
   * Follows a stream of the caller's key: yields its events after the cursor, to the end. Null means from the start.
   * @throws {KisError} `not_found`: the key has no such stream.
   * @throws {KisError} `rate_limit_exceeded`: the key follows too many streams.
   * @throws {KisError} as `LiveStream.readCursor`.
   */
  follow(requestContext: RequestContext, id: string, after: string | null): Events {
    return openedLater(async () => {
      const { apiKeyId } = requireScope(requestContext.caller, 'inference')
      const stream = this.#streams.get(id)
      if (!stream?.hasBegun || stream.apiKeyId !== apiKeyId)
        throw new NotHere(
          new KisError('not_found', `Your key has no stream with the id \`${id}\`. It may have ended too long ago.`, { param: 'id' }),
        )
      // The cursor is checked first: a refused follower must not count as one that disconnects, which may end the call.
      const cursor = stream.readCursor(after)
      const release = this.#enter(apiKeyId)
      const events = stream.follow(cursor, requestContext.isCut ?? NEVER_CUT, requestContext.signal)
      return endableIterator(
        () => events.next(),
        async () => {
          release()
          await events.return?.()
        },
      )
    }, requestContext.signal)
  }

  #begun(requestContext: RequestContext, open: (requestContext: RequestContext) => Source): Events {
    return openedLater(async () => {
      // The call may outlast its first follower.
      const source = open({ ...requestContext, signal: new AbortController().signal })
      return this.#add(requestContext, Promise.resolve(source)).follow(0, requestContext.isCut ?? NEVER_CUT, requestContext.signal)
    }, requestContext.signal)
  }

  /** Follows the call of an earlier request with the same idempotency key, from its start. */
  #joined(requestContext: RequestContext, stream: LiveStream): Events {
    const events = stream.follow(0, requestContext.isCut ?? NEVER_CUT, requestContext.signal)
    let rateLimits = readRateLimits(this.#deps, requestContext)
    return endableIterator<FollowedChatEvent>(
      async () => {
        const { done, value } = await events.next()
        if (done) return { done: true, value: undefined }
        const event = { ...value, rateLimits, replayed: true }
        rateLimits = null
        return { done: false, value: event }
      },
      async () => void (await events.return?.()),
    )
  }

  #add({ caller }: RequestContext, source: Promise<Source>): LiveStream {
    const { organizationId, apiKeyId } = requireScope(caller, 'inference')
    const names = { id: this.#deps.ids('strm'), organizationId, apiKeyId }
    const stream = new LiveStream(names, source, {
      grown: (grown, bytes) => this.#grown(grown, bytes),
      ended: (ended) => this.#retain(ended),
      track: (work) => void this.#deps.background.track(work).catch(() => undefined),
    })
    this.#streams.set(stream.id, stream)
    return stream
  }

  /** Occupies a slot. Returns the function that releases it. */
  #enter(apiKeyId: string): () => void {
    const followed = this.#followed.get(apiKeyId) ?? 0
    if (followed >= MAX_FOLLOWED) {
      const text = `Rate limit reached: the key may follow ${MAX_FOLLOWED} streams at once.`
      throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
    }
    this.#followed.set(apiKeyId, followed + 1)
    return () => {
      const left = this.#followed.get(apiKeyId)! - 1
      if (left > 0) this.#followed.set(apiKeyId, left)
      else this.#followed.delete(apiKeyId)
    }
  }

  #grown(stream: LiveStream, bytes: number): void {
    if (!this.#streams.has(stream.id)) return
    const share = this.#shareOf(stream)
    share.bytes += bytes
    this.#bytes += bytes
    while (share.bytes > MAX_ORGANIZATION_BYTES || this.#bytes > MAX_BYTES) {
      const isOrganizationFull = share.bytes > MAX_ORGANIZATION_BYTES
      const [oldest] = isOrganizationFull ? share.ended : this.#ended.keys()
      if (oldest) {
        this.#evict(oldest)
        continue
      }
      const giver = this.#findGiver(stream, isOrganizationFull ? stream.organizationId : this.#findLargestOrganization())
      const freed = giver.evict()
      if (freed === 0) return
      this.#shareOf(giver).bytes -= freed
      this.#bytes -= freed
    }
  }

  /**
   * Returns the largest stream in progress. A stream without followers does not use the shared buffer: it waits
   * instead.
   */
  #findGiver(growing: LiveStream, organizationId: string): LiveStream {
    if (growing.isWaiting) return growing
    let largest = growing
    for (const stream of this.#streams.values())
      if (stream.organizationId === organizationId && stream.canEvict && stream.bytes > largest.bytes) largest = stream
    return largest
  }

  #findLargestOrganization(): string {
    const [[id] = ['']] = [...this.#shares].sort(([, a], [, b]) => b.bytes - a.bytes)
    return id
  }

  /**
   * Retains an ended stream for a while. A stream without events cannot be followed. A replay is not retained: it costs
   * nothing, so any number of replays could evict the streams of others, and its key can replay it again.
   */
  #retain(stream: LiveStream): void {
    if (!stream.hasBegun || stream.isReplay) this.#remove(stream)
    if (!this.#streams.has(stream.id)) return
    const { ended } = this.#shareOf(stream)
    ended.add(stream)
    this.#removeLater(stream)
    if (ended.size > MAX_ENDED) this.#evict(ended.values().next().value!)
  }

  /** Removes an ended stream after a while, unless it has followers. */
  #removeLater(stream: LiveStream): void {
    const remove = () => (stream.isFollowed ? this.#removeLater(stream) : this.#remove(stream))
    this.#ended.set(stream, setTimeout(remove, RETENTION_MS).unref())
  }

  /** Removes a stream to free memory. Its followers lose its events, too. */
  #evict(stream: LiveStream): void {
    this.#remove(stream)
    stream.evictAll()
  }

  #remove(stream: LiveStream): void {
    if (!this.#streams.delete(stream.id)) return
    const share = this.#shareOf(stream)
    share.ended.delete(stream)
    // The timer would retain the stream in memory.
    clearTimeout(this.#ended.get(stream))
    this.#ended.delete(stream)
    share.bytes -= stream.bytes
    this.#bytes -= stream.bytes
    if (share.bytes <= 0 && share.ended.size === 0) this.#shares.delete(stream.organizationId)
  }

  #shareOf({ organizationId }: LiveStream): Share {
    const known = this.#shares.get(organizationId)
    if (known) return known
    const share: Share = { bytes: 0, ended: new Set() }
    this.#shares.set(organizationId, share)
    return share
  }
}

function iterable<T>(events: AsyncIterator<T, undefined>): AsyncIterableIterator<T, undefined> {
  return events as AsyncIterableIterator<T, undefined>
}
