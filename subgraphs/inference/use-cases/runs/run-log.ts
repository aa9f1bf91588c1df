import { KisError, NotFound } from '../../../common/errors.ts'
import { Followers } from '../../../common/events/followers.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import { FairPlaces } from '../../../common/process/fair-places.ts'
import type { RunEvent, RunStatus } from '../../domain/agents/run.ts'
import type { Ports } from '../deps.ts'
import type { RunBase, RunEventRecord } from '../tables.ts'
import { LeftToOthers } from './run-steps.ts'

/** Events that a follower reads together. */
const PAGE_EVENTS = 100
/** Runs of one kind that are followed at once in one process. One organization has at most half of them. */
const MAX_FOLLOWED_IN_ALL = 4_000
/** Runs of one kind that a key may follow at once in one process, as many as it may have subscriptions over sockets. */
const MAX_FOLLOWED = 50
/** Nobody knows when it leaves one. */
const FULL_RETRY_MS = 1_000
const CURSOR = /^\d{1,9}$/

export interface RunEventBase {
  readonly type: string
}

/** An event as followers get it. */
export interface FollowedEvent<Event = RunEvent> {
  readonly runId: string
  /** 1, 2, 3 … */
  readonly sequence: number
  readonly at: Date
  readonly event: Event
}

/** Events of runs of one kind: written by the process that runs them, followed by any. The last one is `done`. */
export class RunLog<Event extends RunEventBase = RunEvent> {
  readonly #runs: 'runs' | 'workflowRuns'
  readonly #deps: Pick<Ports, 'collections' | 'clock'>
  readonly #followers: Followers
  readonly #places = new FairPlaces(MAX_FOLLOWED_IN_ALL)
  /** By API key. */
  readonly #followed = new Map<string, number>()

  constructor(deps: Pick<Ports, 'collections' | 'clock'>, runs: 'runs' | 'workflowRuns') {
    this.#deps = deps
    this.#runs = runs
    this.#followers = new Followers(async (positions) => {
      const ids = [...positions].map(([runId, position]) => `${runId}_${position + 1}`)
      const next = await deps.collections.runEvents.find({ _id: { $in: ids } }, { limit: ids.length })
      return next.map(({ runId }) => runId)
    })
  }

  /** @param isNew nobody has written an event of the run yet. */
  async writerFor({ organizationId, _id }: RunBase, isNew: boolean): Promise<RunEventWriter<Event>> {
    const before: Event[] = []
    if (!isNew) for await (const event of this.written(_id)) before.push(event)
    return new RunEventWriter(this.#deps, organizationId, _id, before, () => this.#followers.tell(_id))
  }

  /** Adds the last event behind all others, whichever process has written them, unless it is there. */
  async end(organizationId: string, runId: string, status: RunStatus): Promise<void> {
    const { collections, clock } = this.#deps
    for (;;) {
      const [last] = await collections.runEvents.find({ runId }, { sort: { sequence: -1 }, limit: 1 })
      if (last && fromJson<RunEventBase>(last.event).type === 'done') return
      const record = toRecord(organizationId, runId, (last?.sequence ?? 0) + 1, clock.now(), { type: 'done', status })
      if ((await collections.runEvents.insertMissing([record])) === 1) return this.#followers.tell(runId)
    }
  }

  /** The events that have been written, in pages. */
  async *written(runId: string): AsyncGenerator<Event> {
    for (let position = 0; ; ) {
      const page = await this.#read(runId, position)
      for (const { event } of page) yield fromJson<Event>(event)
      if (page.length < PAGE_EVENTS) return
      position = page.at(-1)!.sequence
    }
  }

  /**
   * As `follow`, for a caller, who may do so a limited number of times at once.
   * @throws {KisError} `rate_limit_exceeded`
   */
  followFor(
    { organizationId, apiKeyId }: Principal,
    runId: string,
    after: string | null,
  ): AsyncIterableIterator<FollowedEvent<Event>, undefined> {
    const followed = this.#followed.get(apiKeyId) ?? 0
    const leave = this.#places.tryTake(organizationId)
    if (!leave) {
      const text = 'Rate limit reached: the keys of the organization follow as many runs as they may at the moment.'
      throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
    }
    if (followed >= MAX_FOLLOWED) {
      leave()
      const text = `Rate limit reached: the key may follow ${MAX_FOLLOWED} runs at once.`
      throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
    }
    this.#followed.set(apiKeyId, followed + 1)
    const events = this.follow(organizationId, runId, after)
    return endableIterator<FollowedEvent<Event>>(
      () => events.next(),
      async () => {
        leave()
        const left = this.#followed.get(apiKeyId)! - 1
        if (left > 0) this.#followed.set(apiKeyId, left)
        else this.#followed.delete(apiKeyId)
        await events.return?.()
      },
    )
  }

  /**
   * The run's events after a cursor, up to its last one.
   * @throws {KisError} `not_found`; `invalid_request`: this is no cursor.
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
   * The event at the cursor; null: the follower wants all. A cursor that no event has would wait for ever in a run that
   * has ended.
   */
  async #findStart(organizationId: string, runId: string, after: string | null): Promise<RunEventRecord | null> {
    const { collections } = this.#deps
    if (!(await collections[this.#runs].findOne({ _id: runId, organizationId }))) throw new NotFound('run', runId, 'runId')
    if (after === null || after === '0') return null
    const at = CURSOR.test(after) ? await collections.runEvents.findOne({ runId, sequence: Number(after) }) : null
    if (!at) throw new KisError('invalid_request', 'This is no cursor of this run.', { param: 'after' })
    return at
  }

  #read(runId: string, position: number): Promise<readonly RunEventRecord[]> {
    return this.#deps.collections.runEvents.find({ runId, sequence: { $gt: position } }, { sort: { sequence: 1 }, limit: PAGE_EVENTS })
  }
}

/**
 * Writes one run's events in their order. What comes while a write is under way goes with the next one, and pieces of
 * text are joined there: a fast model costs no more writes than the store can do, and nobody waits for a batch to fill.
 */
export class RunEventWriter<Event extends RunEventBase> {
  /** What was written before, by processes that had the run. */
  readonly before: readonly Event[]
  readonly #deps: Pick<Ports, 'collections' | 'clock'>
  readonly #organizationId: string
  readonly #runId: string
  readonly #written: () => void
  #waiting: Event[] = []
  #sequence: number
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
    this.#written = written
  }

  write(event: Event): void {
    const joined = joinedTexts(this.#waiting.at(-1), event)
    if (joined) this.#waiting[this.#waiting.length - 1] = joined
    else this.#waiting.push(event)
    this.#writing ??= this.#writeAll()
    this.#writing.catch(() => undefined)
  }

  /**
   * Resolves when all is written.
   * @throws {LeftToOthers} another process writes the run's events.
   * @throws {KisError} the store is away.
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
      this.#written()
    }
    this.#writing = undefined
  }
}

/** Two texts of one step as one event; null: they are something else. */
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

/** JSON has no big integers: costs are decimals, as in `fromJson`. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (key, field) => (key === 'cost' && typeof field === 'bigint' ? String(field) : field))
}

export function fromJson<T>(text: string): T {
  return JSON.parse(text, (key, field) => (key === 'cost' && typeof field === 'string' ? BigInt(field) : field)) as T
}
