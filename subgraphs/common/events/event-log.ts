import { KisError } from '../errors.ts'
import type { CollectionSpec, DocumentCollection, IndexSpec, StoredDocument, StoredValue, Update } from '../ports/document-store.ts'
import { randomHex } from '../process/ids.ts'
import type { Log } from '../process/log.ts'
import { Followers } from './followers.ts'

/** Records whose changes are copied in one go: with a few changes each far below MongoDB's 16 MiB of a document. */
const MAX_RECORDS = 100
/** As the port allows. */
const MAX_INSERTED = 1_000
/** Events that an organization's log keeps; older ones are forgotten, `PRUNE_EVENTS` at a time. */
const MAX_EVENTS = 100_000
const PRUNE_EVENTS = 1_000
/** Events that a follower reads together. */
const PAGE_EVENTS = 100
/** Events are numbered when they are copied, which may be so much later than they happened, or than another one did. */
const LATE_MS = 60_000
/** Organizations that a sweep looks at. */
const MAX_SWEPT = 100

export type EventData = Readonly<Record<string, StoredValue>>

/** A change, kept in the record that it happened to until it is in the log. */
export interface PendingEvent {
  readonly id: string
  readonly at: Date
  readonly data: EventData
}

/** A record that tells of its changes: each write of it that is one adds `tell(...)`. */
export interface Telling extends StoredDocument {
  readonly organizationId: string
  /** Changes that are not in the log yet, oldest first. */
  readonly outbox: readonly PendingEvent[]
  /** The organization while there are any, */
  readonly outboxOf?: string
  /** and a mark that every change renews. */
  readonly outboxMark?: string
}

/** What a collection of telling records declares. */
export const OUTBOX_INDEX: IndexSpec = { fields: ['outboxOf'], sparse: true }

/** An event of one organization. */
export interface EventRecord extends StoredDocument {
  readonly organizationId: string
  /** 1, 2, 3 … without gaps. */
  readonly sequence: number
  /** The record that it happened to. */
  readonly subject: string
  readonly at: Date
  readonly data: EventData
}

/** Where an organization's log ends. */
interface EventHead extends StoredDocument {
  /** Of the last event. */
  readonly sequence: number
  /** Events up to here are forgotten. */
  readonly forgotten: number
  /** The last events, while they are copied; with the mark that their record had, and which of the collections it is in. */
  readonly copying: readonly { readonly event: EventRecord; readonly id: string; readonly mark: string; readonly from: number }[]
  readonly copyingCount: number
}

export interface EventCollections {
  readonly events: DocumentCollection<EventRecord>
  readonly eventHeads: DocumentCollection<EventHead>
}

export const EVENTS: CollectionSpec = { name: 'events', indexes: [{ fields: ['organizationId', 'sequence'], unique: true }] }
export const EVENT_HEADS: CollectionSpec = { name: 'event_heads', indexes: [] }

/** The part of an update that tells of the change. */
export function tell(organizationId: string, at: Date, data: EventData) {
  const pending: PendingEvent = { id: randomHex(24), at, data }
  return { $set: { outboxOf: organizationId, outboxMark: randomHex(24) }, $push: { outbox: { ...pending } } } satisfies Update
}

/** The fields of a new record that tells of its making. */
export function told(organizationId: string, at: Date, data: EventData): Pick<Telling, 'outbox' | 'outboxOf' | 'outboxMark'> {
  return { outbox: [{ id: randomHex(24), at, data }], outboxOf: organizationId, outboxMark: randomHex(24) }
}

/**
 * The events of each organization in one order, from which any number of followers in any process read without loss or repeat. A change waits in its
 * record, written in one write with it; any process copies it to the log, and any may finish what another began: who copies claims the next numbers by one
 * guarded write of the organization's head, which carries the events, and all that follows may be repeated.
 */
export class EventLog<T extends Telling> implements AsyncDisposable {
  readonly #records: readonly DocumentCollection<T>[]
  readonly #events: DocumentCollection<EventRecord>
  readonly #heads: DocumentCollection<EventHead>
  readonly #log: Log
  readonly #runs = new Map<string, { current: Promise<void>; next?: Promise<void> }>()
  readonly #followers = new Followers(async (positions) => {
    const ends = await this.ends([...positions.keys()])
    return [...positions].filter(([organizationId, position]) => (ends.get(organizationId) ?? 0) > position).map(([id]) => id)
  })
  #isClosed = false

  /** Of one or several collections, always in the same order. */
  constructor(records: readonly DocumentCollection<T>[], { events, eventHeads }: EventCollections, log: Log) {
    this.#records = records
    this.#events = events
    this.#heads = eventHeads
    this.#log = log
  }

  /** Copies soon what an organization's records tell. Failing is no loss: the next change, or sweep, tries again. */
  kick(organizationId: string): void {
    if (!this.#isClosed)
      this.drain(organizationId).catch((error) => this.#log.warn({ err: error, organizationId }, 'events could not be copied'))
  }

  /** Resolves when every change that was written before the call is in the log. One run at a time per organization, and at most one waiting. */
  drain(organizationId: string): Promise<void> {
    const run = this.#runs.get(organizationId)
    if (!run) return this.#start(organizationId)
    run.next ??= run.current.catch(() => undefined).then(() => this.#start(organizationId))
    return run.next
  }

  /** Copies what processes that are gone have left. */
  async sweep(): Promise<void> {
    for (const records of this.#records) {
      let after = ''
      for (let i = 0; i < MAX_SWEPT; i++) {
        const [left] = await records.find({ outboxOf: { $gt: after } }, { sort: { outboxOf: 1 }, limit: 1 })
        if (!left) break
        after = left.outboxOf!
        await this.drain(after)
      }
    }
  }

  /**
   * The organization's events after a cursor, or from now on, without end.
   * @throws {KisError} `invalid_request`: the cursor is none of this log, or older than what it keeps.
   */
  follow(organizationId: string, after: string | null): AsyncIterableIterator<EventRecord, undefined> {
    const start = this.#position(organizationId, after)
    start.catch(() => undefined)
    let position: number | undefined
    const read = async () => {
      position ??= await start
      const events = await this.#read(organizationId, position)
      position = events.at(-1)?.sequence ?? position
      return events
    }
    return this.#followers.follow(organizationId, read, () => position!)
  }

  /** The sequences of the last events that are all there; an organization without events is not named. At most 1,000 organizations. */
  async ends(organizationIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const heads = await this.#heads.find({ _id: { $in: organizationIds } }, { limit: organizationIds.length })
    return new Map(heads.map((head) => [head._id, lastOf(head)]))
  }

  /** A position that no event since then is before. */
  async positionBefore(organizationId: string, since: Date): Promise<number> {
    const from = new Date(since.getTime() - LATE_MS)
    for (let lowest = Number.MAX_SAFE_INTEGER; ; ) {
      const events = await this.#events.find({ organizationId, sequence: { $lt: lowest } }, { sort: { sequence: -1 }, limit: PAGE_EVENTS })
      const before = events.find(({ at }) => at < from)
      if (before) return before.sequence
      lowest = events.at(-1)?.sequence ?? lowest
      if (events.length < PAGE_EVENTS) return lowest === Number.MAX_SAFE_INTEGER ? 0 : lowest - 1
    }
  }

  /** The next events after a position, at most a page; those that are no longer kept are passed over. */
  async page(organizationId: string, position: number): Promise<readonly EventRecord[]> {
    const head = await this.#heads.findOne({ _id: organizationId })
    if (!head) return []
    if (position < head.forgotten)
      this.#log.error({ organizationId, position, forgotten: head.forgotten }, 'events were forgotten before they were read')
    return this.#after(head, Math.max(position, head.forgotten))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled([...this.#runs.values()].map((run) => run.next ?? run.current))
  }

  async #position(organizationId: string, after: string | null): Promise<number> {
    const head = await this.#heads.findOne({ _id: organizationId })
    const last = head?.sequence ?? 0
    if (after === null) return last
    const position = /^\d{1,15}$/.test(after) ? Number(after) : Number.NaN
    if (!(position <= last)) throw new KisError('invalid_request', 'This is no cursor of these events.', { param: 'after' })
    return position
  }

  /** The next events that are all there. */
  async #read(organizationId: string, position: number): Promise<readonly EventRecord[]> {
    const head = await this.#heads.findOne({ _id: organizationId })
    if (!head) return []
    if (position < head.forgotten)
      throw new KisError(
        'invalid_request',
        `The events after this cursor are no longer kept; the oldest that is has the cursor ${head.forgotten + 1}.`,
        {
          param: 'after',
        },
      )
    return this.#after(head, position)
  }

  async #after(head: EventHead, position: number): Promise<readonly EventRecord[]> {
    const last = lastOf(head)
    if (last <= position) return []
    return this.#events.find(
      { organizationId: head._id, sequence: { $gt: position, $lte: last } },
      { sort: { sequence: 1 }, limit: PAGE_EVENTS },
    )
  }

  #start(organizationId: string): Promise<void> {
    const run: { current: Promise<void>; next?: Promise<void> } = {
      current: this.#copyAll(organizationId).finally(() => {
        if (!run.next) this.#runs.delete(organizationId)
      }),
    }
    this.#runs.set(organizationId, run)
    return run.current
  }

  async #copyAll(organizationId: string): Promise<void> {
    while (await this.#copy(organizationId)) this.#followers.tell(organizationId)
  }

  /** False when nothing waits. */
  async #copy(organizationId: string): Promise<boolean> {
    const head = await this.#headOf(organizationId)
    if (head.copyingCount > 0) {
      await this.#finish(head)
      return true
    }
    const found = await Promise.all(this.#records.map((records) => records.find({ outboxOf: organizationId }, { limit: MAX_RECORDS })))
    const waiting = found.flatMap((records, from) =>
      records.flatMap(({ _id, outbox, outboxMark }) => outbox.map((pending) => ({ subject: _id, mark: outboxMark!, from, ...pending }))),
    )
    if (waiting.length === 0) return false
    waiting.sort((a, b) => a.at.getTime() - b.at.getTime())
    const copying = waiting.map(({ subject, mark, from, id, at, data }, i) => {
      const sequence = head.sequence + i + 1
      return { event: { _id: `${organizationId}_${sequence}`, organizationId, sequence, subject, at, data }, id, mark, from }
    })
    // Who read the same head, and comes second, finds another number.
    const claimed = await this.#heads.findOneAndUpdate(
      { _id: organizationId, sequence: head.sequence, copyingCount: 0 },
      { $set: { copying, copyingCount: copying.length }, $inc: { sequence: copying.length } },
    )
    if (claimed) await this.#finish(claimed)
    return true
  }

  /** Repeatable. */
  async #finish({ _id, sequence, forgotten, copying }: EventHead): Promise<void> {
    for (let next = 0; next < copying.length; next += MAX_INSERTED)
      await this.#events.insertMissing(copying.slice(next, next + MAX_INSERTED).map(({ event }) => event))
    for (const [subject, items] of Map.groupBy(copying, ({ event }) => event.subject)) {
      const records = this.#records[items[0]!.from]!
      const untouched = await records.findOneAndUpdate(
        { _id: subject, outboxMark: items[0]!.mark },
        { $set: { outbox: [] }, $unset: { outboxOf: '', outboxMark: '' } },
      )
      if (!untouched) await records.findOneAndUpdate({ _id: subject }, { $pull: { outbox: { id: { $in: items.map(({ id }) => id) } } } })
    }
    await this.#heads.findOneAndUpdate({ _id, sequence }, { $set: { copying: [], copyingCount: 0 } })
    if (sequence - forgotten >= MAX_EVENTS + PRUNE_EVENTS) await this.#forget(_id, sequence - MAX_EVENTS)
  }

  /** Followers hear of it before anything is gone. */
  async #forget(organizationId: string, upTo: number): Promise<void> {
    await this.#heads.findOneAndUpdate({ _id: organizationId, forgotten: { $lt: upTo } }, { $set: { forgotten: upTo } })
    while ((await this.#events.deleteMany({ organizationId, sequence: { $lte: upTo } })) > 0);
  }

  async #headOf(_id: string): Promise<EventHead> {
    const found = await this.#heads.findOne({ _id })
    if (found) return found
    await this.#heads.insertMissing([{ _id, sequence: 0, forgotten: 0, copying: [], copyingCount: 0 }])
    return (await this.#heads.findOne({ _id }))!
  }
}

/** The last event that is there with all before it. */
function lastOf({ sequence, copyingCount }: EventHead): number {
  return sequence - copyingCount
}
