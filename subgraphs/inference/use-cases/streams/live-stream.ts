import { KisError } from '../../../common/errors.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import type { ChatEvent } from '../calls/stream-chat-completion.ts'
import type { Replayable } from '../idempotency/once-for-key.ts'
import { weigh } from './weigh.ts'

/** How long a call continues after its client's connection was lost. graphql-ws retries within 20 s, four times. */
export const GRACE_MS = 30_000
/** Most bytes that one stream buffers, about 12,000 chunks. The oldest are evicted first. */
const MAX_STREAM_BYTES = 8 * 1024 * 1024
const CURSOR = /^\d{1,9}$/

/** An event before it has its position in the stream. */
export type SourceEvent = ChatEvent & Replayable
/** An event in the form that followers receive. */
export type FollowedChatEvent = SourceEvent & {
  readonly id: string
  /** The number of chunks up to the end of this event. */
  readonly cursor: string
}

/** The source of the events. `isDetached`: the call continues to its end without a follower. */
export interface Source {
  readonly events: AsyncIterator<SourceEvent, undefined>
  readonly isDetached: boolean
  /** Called when a follower receives an event. */
  readonly delivered?: () => void
}

interface StreamNotices {
  /** Called when the buffer of the stream grows by this many bytes. */
  readonly grown: (stream: LiveStream, bytes: number) => void
  readonly ended: (stream: LiveStream) => void
  /** Gets work that outlasts the followers. */
  readonly track: (work: Promise<void>) => void
}

interface RetainedEvent {
  /** The cursor before and after the event. */
  readonly from: number
  readonly to: number
  readonly event: SourceEvent
  readonly bytes: number
}

type Followed = AsyncIterableIterator<FollowedChatEvent, undefined>
type Step = IteratorResult<FollowedChatEvent, undefined>

/**
 * The events of one streamed call, buffered in memory so that clients can follow it again. Nothing is read from the
 * source before a follower requests it, so a slow client slows the engine down. A stream without followers continues by
 * itself, for as long as it may.
 */
export class LiveStream {
  readonly id: string
  readonly organizationId: string
  readonly apiKeyId: string
  /** Undefined after the end: the source holds the whole request, which may be far larger than the events. */
  #source: Promise<Source> | undefined
  readonly #notices: StreamNotices
  #retained: RetainedEvent[] = []
  /** The number of evicted chunks. */
  #evicted = 0
  #cursor = 0
  #bytes = 0
  #followers = 0
  #pulling: Promise<void> | undefined
  #end: { readonly error: unknown } | undefined
  #grace: NodeJS.Timeout | undefined
  #isFull = false
  #isReplay = false
  #opened: Source | undefined
  /** A follower knows the id. */
  #isKnown = false

  constructor(names: Pick<LiveStream, 'id' | 'organizationId' | 'apiKeyId'>, source: Promise<Source>, notices: StreamNotices) {
    this.id = names.id
    this.organizationId = names.organizationId
    this.apiKeyId = names.apiKeyId
    this.#source = source
    this.#notices = notices
  }

  /** The size of the buffer in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** True if the events are those of an earlier call with the same idempotency key. */
  get isReplay(): boolean {
    return this.#isReplay
  }

  get isFollowed(): boolean {
    return this.#followers > 0
  }

  /** True while the stream can be followed from the start. */
  get isWhole(): boolean {
    return this.#evicted === 0
  }

  /** True if the buffer has more than the newest event, and the stream does not wait for its client to come back. */
  get canEvict(): boolean {
    return this.#retained.length > 1 && !this.isWaiting
  }

  /** True while the client of the stream may come back. */
  get isWaiting(): boolean {
    return this.#followers === 0 && !this.#end && !this.#opened?.isDetached
  }

  /** True once there is an event from which the stream can be followed. */
  get hasBegun(): boolean {
    return this.#cursor > 0
  }

  /**
   * Returns the number that a cursor stands for. Null means the start.
   * @throws {KisError} `invalid_request`: `after` is not a cursor of this stream, or the events after it were evicted.
   */
  readCursor(after: string | null): number {
    const cursor = after === null ? 0 : CURSOR.test(after) ? Number(after) : Number.NaN
    if (!(cursor <= this.#cursor)) throw new KisError('invalid_request', 'The cursor is not from this stream.', { param: 'after' })
    if (cursor < (this.#retained[0]?.from ?? this.#cursor)) throw evicted()
    return cursor
  }

  /**
   * Yields the events after the cursor, to the end. `isCut` is called when the follower disconnects. The last follower
   * that disconnects may end the call.
   * @throws {KisError} `invalid_request`: the next events were evicted, because the follower is a slow consumer.
   * @throws {KisError} the error of the call.
   */
  follow(after: number, isCut: () => boolean, signal?: AbortSignal): Followed {
    let cursor = after
    const first = this.#retained.findIndex(({ to }) => to > cursor)
    let at = this.#evicted + (first < 0 ? this.#retained.length : first)
    let hasLeft = false
    this.#followers++
    clearTimeout(this.#grace)
    const findStep = (): Step | undefined => {
      if (at < this.#evicted) throw evicted()
      const retained = this.#retained[at - this.#evicted]
      if (retained) {
        at++
        const event = this.#eventAfter(retained, cursor)
        cursor = retained.to
        if (!hasLeft) this.#notifyDelivered()
        return { done: false, value: event }
      }
      if (!this.#end) return undefined
      if (this.#end.error !== undefined) throw this.#end.error
      return { done: true, value: undefined }
    }
    const step = (): Step | Promise<Step> => findStep() ?? this.#pull().then(step)
    return endableIterator<FollowedChatEvent>(
      () => new Promise((resolve) => resolve(step())),
      () => {
        hasLeft = true
        this.#unfollow(isCut())
      },
      signal,
    )
  }

  /** Ends the call if it has no follower; the output so far is charged. */
  cancel(): void {
    if (this.#end || this.#followers > 0) return
    const source = this.#source
    this.#finish(new KisError('invalid_request', 'The call was stopped, because nobody followed its stream.', { shouldRetry: false }))
    source?.then(({ events }) => events.return?.()).catch(() => undefined)
  }

  /**
   * Evicts the older half of the buffer, but never the newest event, which followers wait for. Returns the bytes of
   * that half. A stream without followers waits.
   */
  evict(): number {
    if (this.isWaiting) {
      this.#isFull = true
      return 0
    }
    const old = this.#retained.splice(0, Math.floor(this.#retained.length / 2))
    this.#evicted += old.length
    const bytes = old.reduce((sum, retained) => sum + retained.bytes, 0)
    this.#bytes -= bytes
    return bytes
  }

  /** Evicts the whole buffer, and returns its bytes. */
  evictAll(): number {
    const bytes = this.#bytes
    this.#evicted += this.#retained.length
    this.#retained = []
    this.#bytes = 0
    return bytes
  }

  /** Returns the part of an event after a cursor. */
  #eventAfter({ from, to, event }: RetainedEvent, cursor: number): FollowedChatEvent {
    const chunks = cursor > from ? event.chunks.slice(cursor - from) : event.chunks
    return { ...event, chunks, id: this.id, cursor: String(to) }
  }

  #notifyDelivered(): void {
    this.#isKnown = true
    this.#opened?.delivered?.()
  }

  /** Resolves when the stream has one event more, or has ended. */
  #pull(): Promise<void> {
    this.#pulling ??= (this.#opened ? this.#opened.events.next() : this.#start()).then(this.#took, this.#failed)
    return this.#pulling
  }

  async #start(): Promise<IteratorResult<SourceEvent, undefined>> {
    const source = await this.#source
    if (!source || this.#end) return { done: true, value: undefined }
    this.#opened = source
    return source.events.next()
  }

  readonly #took = ({ done, value }: IteratorResult<SourceEvent, undefined>) => {
    this.#pulling = undefined
    if (this.#end) return
    if (done) return this.#finish(undefined)
    try {
      this.#retain(value)
    } catch (error) {
      this.#failed(error)
    }
  }

  #retain(value: SourceEvent): void {
    // An end without chunks has a separate cursor, too.
    const to = this.#cursor + Math.max(1, value.chunks.length)
    this.#isReplay = value.replayed === true
    // The store has the whole reply. A repeat of a run in progress is detached, and can be followed again.
    const freed = this.#isReplay && !this.#opened?.isDetached ? this.evictAll() : 0
    const bytes = weigh(value)
    this.#retained.push({ from: this.#cursor, to, event: value, bytes })
    this.#cursor = to
    this.#bytes += bytes
    this.#notices.grown(this, bytes - freed - (this.#bytes > MAX_STREAM_BYTES ? this.evict() : 0))
  }

  readonly #failed = (error: unknown) => {
    this.#pulling = undefined
    this.#finish(error ?? new Error('failed'))
  }

  #finish(error: unknown): void {
    if (this.#end) return
    this.#end = { error }
    this.#source = undefined
    this.#opened = undefined
    clearTimeout(this.#grace)
    this.#notices.ended(this)
  }

  #unfollow(isCut: boolean): void {
    this.#followers--
    if (this.#followers > 0 || this.#end) return
    this.#source?.then(
      ({ isDetached }) => {
        if (this.#followers > 0 || this.#end) return
        if (!isDetached && !(isCut && this.#isKnown && !this.#isReplay)) return this.cancel()
        if (!isDetached) this.#grace = setTimeout(() => this.cancel(), GRACE_MS)
        this.#notices.track(this.#readOn(isDetached))
      },
      () => undefined,
    )
  }

  /** Reads on from the source until a follower comes. */
  async #readOn(isDetached: boolean): Promise<void> {
    this.#isFull = false
    while (this.#followers === 0 && !this.#end && (isDetached || !this.#isFull)) await this.#pull()
  }
}

function evicted(): KisError {
  return new KisError('invalid_request', 'The events after this cursor are no longer retained.', { param: 'after' })
}
