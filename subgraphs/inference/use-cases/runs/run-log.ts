import { KisError, NotFound } from '../../../common/errors.ts'
import { Followers } from '../../../common/events/followers.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import { FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import type { RunEvent, RunStatus } from '../../domain/agents/run.ts'
import type { Ports } from '../deps.ts'
import type { RunBase, RunEventRecord } from '../tables.ts'
import { fromJson, toJson } from './run-json.ts'
import { LeftToOthers } from './run-steps.ts'

/** Most events that a follower reads at once. */
const PAGE_EVENTS = 100
/** Most followers of one kind of runs in one process. One organization has at most half of them. */
const MAX_FOLLOWED_IN_ALL = 4_000
/** Most followers of one kind of runs that a key may have in one process; as many as its socket subscriptions. */
const MAX_FOLLOWED = 50
/** Retry time that a refused caller gets. When a slot becomes free is unknown. */
const FULL_RETRY_MS = 1_000
const CURSOR = /^\d{1,9}$/

/** What events of agents and of workflows have in common. */
export interface RunEventBase {
  readonly type: string
}

/** An event in the form that followers receive. */
export interface FollowedEvent<Event = RunEvent> {
  readonly runId: string
  /** The position of the event in its run, from 1, without gaps. */
  readonly sequence: number
  readonly at: Date
  readonly event: Event
}

/**
 * The events of runs of one kind. The process that runs a run writes its events, and any process can follow them. The
 * last event is `done`.
 */
export class RunLog<Event extends RunEventBase = RunEvent> {
  readonly #records: Pick<DocumentCollection<RunBase>, 'findOne'>
  readonly #deps: Pick<Ports, 'collections' | 'clock'>
  readonly #followers: Followers
  readonly #slots = new FairSemaphore(MAX_FOLLOWED_IN_ALL)
  /** The number of followers, by API key. */
  readonly #followed = new Map<string, number>()

  constructor(deps: Pick<Ports, 'collections' | 'clock'>, records: Pick<DocumentCollection<RunBase>, 'findOne'>) {
    this.#deps = deps
    this.#records = records
    this.#followers = new Followers(async (positions) => {
      const ids = [...positions].map(([runId, position]) => `${runId}_${position + 1}`)
      const next = await deps.collections.runEvents.find({ _id: { $in: ids } }, { limit: ids.length })
      return next.map(({ runId }) => runId)
    })
  }

  /**
   * Returns the writer of a run's events.
   * @param isNew no event of the run has been written yet.
   */
  async writerFor({ organizationId, _id }: RunBase, isNew: boolean): Promise<RunEventWriter<Event>> {
    const before: Event[] = []
    if (!isNew) for await (const event of this.written(_id)) before.push(event)
    return new RunEventWriter(this.#deps, organizationId, _id, before, () => this.#followers.notify(_id))
  }

  /** Adds the last event after all others, whichever process wrote them, unless it is already there. */
  async end(organizationId: string, runId: string, status: RunStatus): Promise<void> {
    const { collections, clock } = this.#deps
    for (;;) {
      const [last] = await collections.runEvents.find({ runId }, { sort: { sequence: -1 }, limit: 1 })
      if (last && fromJson<RunEventBase>(last.event).type === 'done') return
      const record = toRecord(organizationId, runId, (last?.sequence ?? 0) + 1, clock.now(), { type: 'done', status })
      if ((await collections.runEvents.insertMissing([record])) === 1) return this.#followers.notify(runId)
    }
  }

  /** Yields the events that have been written. They are read in pages. */
  async *written(runId: string): AsyncGenerator<Event> {
    for await (const { event } of this.#all(runId)) yield fromJson<Event>(event)
  }

  /** Returns the characters of the events that have been written. */
  async countCharacters(runId: string): Promise<number> {
    let characters = 0
    for await (const { event } of this.#all(runId)) characters += event.length
    return characters
  }

  async *#all(runId: string): AsyncGenerator<RunEventRecord> {
    for (let position = 0; ; ) {
      const page = await this.#read(runId, position)
      yield* page
      if (page.length < PAGE_EVENTS) return
      position = page.at(-1)!.sequence
    }
  }

  /**
   * Follows a run as `follow` does, for a caller, who may follow a limited number of runs at once.
   * @throws {KisError} `rate_limit_exceeded`: the key or its organization follows too many runs.
   */
  followFor(
    { organizationId, apiKeyId }: Principal,
    runId: string,
    after: string | null,
  ): AsyncIterableIterator<FollowedEvent<Event>, undefined> {
    const followed = this.#followed.get(apiKeyId) ?? 0
    const release = this.#slots.tryAcquire(organizationId)
    if (!release) {
      const text = 'Rate limit reached: the keys of the organization follow as many runs as they may at the moment.'
      throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
    }
    if (followed >= MAX_FOLLOWED) {
      release()
      const text = `Rate limit reached: the key may follow ${MAX_FOLLOWED} runs at once.`
      throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
    }
    this.#followed.set(apiKeyId, followed + 1)
    const events = this.follow(organizationId, runId, after)
    return endableIterator<FollowedEvent<Event>>(
      () => events.next(),
      async () => {
        release()
        const left = this.#followed.get(apiKeyId)! - 1
        if (left > 0) this.#followed.set(apiKeyId, left)
        else this.#followed.delete(apiKeyId)
        await events.return?.()
      },
    )
  }

  /**
   * Follows a run: yields its events after the cursor `after`, up to the last one. Null means from the start.
   * @throws {KisError} `not_found`: the organization has no such run.
   * @throws {KisError} `invalid_request`: `after` is not a cursor of this run.
   */
  follow(organizationId: string, runId: string, after: string | null): AsyncIterableIterator<FollowedEvent<Event>, undefined> {
    let position: number | undefined
    let isOver = false
    const read = async () => {
      const events = await this.#read(runId, position!)
      position = events.at(-1)?.sequence ?? position
      return events
    }
    const records = this.#followers.follow(runId, read, () => position!)
    return endableIterator<FollowedEvent<Event>>(
      async () => {
        if (position === undefined) {
          const from = await this.#findStart(organizationId, runId, after)
          position = from?.sequence ?? 0
          isOver = from !== null && fromJson<RunEventBase>(from.event).type === 'done'
        }
        const record = isOver ? undefined : (await records.next()).value
        if (!record) return { done: true, value: undefined }
        const { sequence, at, event } = record
        const value = { runId, sequence, at, event: fromJson<Event>(event) }
        isOver = value.event.type === 'done'
        return { done: false, value }
      },
      () => void records.return?.(),
    )
  }

  /**
   * Returns the event at the cursor, or null when the follower wants all events. A cursor without an event is refused:
   * in an ended run its follower would wait forever.
   */
  async #findStart(organizationId: string, runId: string, after: string | null): Promise<RunEventRecord | null> {
    const { collections } = this.#deps
    if (!(await this.#records.findOne({ _id: runId, organizationId }))) throw new NotFound('run', runId, 'runId')
    if (after === null || after === '0') return null
    const at = CURSOR.test(after) ? await collections.runEvents.findOne({ runId, sequence: Number(after) }) : null
    if (!at) throw new KisError('invalid_request', 'The cursor is not from this run.', { param: 'after' })
    return at
  }

  #read(runId: string, position: number): Promise<readonly RunEventRecord[]> {
    return this.#deps.collections.runEvents.find({ runId, sequence: { $gt: position } }, { sort: { sequence: 1 }, limit: PAGE_EVENTS })
  }
}

/**
 * Writes the events of one run in order. Events that arrive during a write go into the next write, where adjacent
 * pieces of text are joined. So a fast model causes no more writes than the store can do, and no event waits until a
 * batch is full.
 */
export class RunEventWriter<Event extends RunEventBase> {
  /** The events that earlier processes of the run wrote. */
  readonly before: readonly Event[]
  readonly #deps: Pick<Ports, 'collections' | 'clock'>
  readonly #organizationId: string
  readonly #runId: string
  readonly #written: () => void
  #waiting: Event[] = []
  #sequence: number
  #characters: number
  #writing: Promise<void> | undefined

  constructor(
    deps: Pick<Ports, 'collections' | 'clock'>,
    organizationId: string,
    runId: string,
    before: readonly Event[],
    written: () => void,
  ) {
    this.#deps = deps
    this.#organizationId = organizationId
    this.#runId = runId
    this.before = before
    this.#sequence = before.length
    this.#characters = before.reduce((sum, event) => sum + toJson(event).length, 0)
    this.#written = written
  }

  /** The characters of all events of the run that have been written, also by earlier processes. */
  get characters(): number {
    return this.#characters
  }

  write(event: Event): void {
    const joined = joinedTexts(this.#waiting.at(-1), event)
    if (joined) this.#waiting[this.#waiting.length - 1] = joined
    else this.#waiting.push(event)
    this.#writing ??= this.#writeAll()
    this.#writing.catch(() => undefined)
  }

  /**
   * Resolves when all events are written.
   * @throws {LeftToOthers} another process writes the run's events.
   * @throws {KisError} `service_unavailable`: the store does not respond.
   */
  async flushed(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const events = this.#waiting
      this.#waiting = []
      const at = this.#deps.clock.now()
      const records = events.map((event) => toRecord(this.#organizationId, this.#runId, ++this.#sequence, at, event))
      if ((await this.#deps.collections.runEvents.insertMissing(records)) < records.length) throw new LeftToOthers()
      for (const { event } of records) this.#characters += event.length
      this.#written()
    }
    this.#writing = undefined
  }
}

/** Joins two texts of one step into one event. Returns null for other events. */
function joinedTexts<Event extends RunEventBase>(last: Event | undefined, next: Event): Event | null {
  if (!last || !isText(last) || !isText(next) || last.number !== next.number) return null
  return { ...last, text: last.text + next.text }
}

function isText<Event extends RunEventBase>(event: Event): event is Event & Extract<RunEvent, { readonly type: 'text_delta' }> {
  return event.type === 'text_delta'
}

function toRecord(organizationId: string, runId: string, sequence: number, at: Date, event: object): RunEventRecord {
  return { _id: `${runId}_${sequence}`, organizationId, runId, sequence, at, event: toJson(event) }
}
