import { KisError } from '../errors.ts'
import type { CollectionSpec, DocumentCollection, IndexSpec, StoredDocument, StoredValue, Update } from '../ports/document-store.ts'
import { randomHex } from '../process/ids.ts'
import type { Log } from '../process/log.ts'
import { Followers } from './followers.ts'
import { Outboxes } from './outboxes.ts'
import type { WebhookEvent, WebhookSource } from './webhook-events.ts'

/**
 * Records whose changes are copied together. With a few changes each, they stay far below MongoDB's limit of 16 MiB for
 * a document.
 */
const MAX_RECORDS = 100
/** The limit of `insertMissing` in the document-store port. */
const MAX_INSERTED = 1_000
/** Events retained for each organization. Older ones are deleted, `PRUNE_EVENTS` at a time. */
const MAX_EVENTS = 100_000
const PRUNE_EVENTS = 1_000
/** Events that a follower reads at once. */
const PAGE_EVENTS = 100
/**
 * Events get their numbers when they are copied. The copy may be this much later than the event, or than the copy of a
 * later event.
 */
const LATE_MS = 60_000
/** Limit of organizations of one sweep. */
const MAX_SWEPT = 100

/** The contents of an event, as the record's owner defines them. */
export type EventData = Readonly<Record<string, StoredValue>>

/** A change, stored in its record until it is in the log. */
interface PendingEvent {
  readonly id: string
  readonly at: Date
  readonly data: EventData
}

/** A record that reports its changes: each write that changes it includes `reportChange(...)`. */
export interface Telling extends StoredDocument {
  readonly organizationId: string
  /** Changes that are not in the log yet, oldest first. */
  readonly outbox: readonly PendingEvent[]
  /** The organization, while the outbox is not empty. */
  readonly outboxOf?: string
  /** A mark that every change replaces. */
  readonly outboxMark?: string
}

/** Collections of such records declare this index. */
export const OUTBOX_INDEX: IndexSpec = { fields: ['outboxOf'], sparse: true }

/** An event of one organization. */
export interface EventRecord extends StoredDocument {
  readonly organizationId: string
  /** 1, 2, 3 … without gaps. */
  readonly sequence: number
  /** The id of the changed record. */
  readonly subject: string
  readonly at: Date
  readonly data: EventData
}

/** The end of an organization's log. */
interface EventHead extends StoredDocument {
  /** The number of the last event. */
  readonly sequence: number
  /** Events up to this number are deleted. */
  readonly forgotten: number
  /** The last events while they are being copied, each with the mark of its record and the number of its collection. */
  readonly copying: readonly { readonly event: EventRecord; readonly id: string; readonly mark: string; readonly from: number }[]
  readonly copyingCount: number
}

export interface EventCollections {
  readonly events: DocumentCollection<EventRecord>
  readonly eventHeads: DocumentCollection<EventHead>
}

export const EVENTS: CollectionSpec = { name: 'events', indexes: [{ fields: ['organizationId', 'sequence'], unique: true }] }
export const EVENT_HEADS: CollectionSpec = { name: 'event_heads', indexes: [] }

/** Returns the part of an update that reports the change. */
export function reportChange(organizationId: string, at: Date, data: EventData) {
  const pending: PendingEvent = { id: randomHex(24), at, data }
  return { $set: { outboxOf: organizationId, outboxMark: randomHex(24) }, $push: { outbox: { ...pending } } } satisfies Update
}

/** Returns the fields of a new record that report its creation. */
export function reportCreation(organizationId: string, at: Date, data: EventData): Pick<Telling, 'outbox' | 'outboxOf' | 'outboxMark'> {
  return { outbox: [{ id: randomHex(24), at, data }], outboxOf: organizationId, outboxMark: randomHex(24) }
}

/**
 * Stores the events of each organization in one order. Any number of followers in any process read them without loss or
 * repetition. A change waits in its record, written together with it, until some process copies it to the log. Any
 * process may finish what another started: the copier claims the next numbers by one guarded write of the
 * organization's head, which contains the events, and every later step is idempotent.
 */
export class EventLog<T extends Telling> extends Outboxes {
  readonly #records: readonly DocumentCollection<T>[]
  readonly #events: DocumentCollection<EventRecord>
  readonly #heads: DocumentCollection<EventHead>
  readonly #log: Log
  readonly #followers = new Followers(async (positions) => {
    const ends = await this.ends([...positions.keys()])
    return [...positions].filter(([organizationId, position]) => (ends.get(organizationId) ?? 0) > position).map(([id]) => id)
  })
  /** `records`: one or several collections, always in the same order. */
  constructor(records: readonly DocumentCollection<T>[], { events, eventHeads }: EventCollections, log: Log) {
    super(log)
    this.#records = records
    this.#events = events
    this.#heads = eventHeads
    this.#log = log
  }

  /** Copies what ended processes have left. */
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
   * Follows the organization's events after a cursor, or from now on, without end.
   * @throws {KisError} `invalid_request`: the cursor is not from this log, or older than the stored events
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

  /**
   * Returns the number of the last complete event of each organization; omits those without events. At most 1,000
   * organizations.
   */
  async ends(organizationIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (organizationIds.length === 0) return new Map()
    const heads = await this.#heads.find({ _id: { $in: organizationIds } }, { limit: organizationIds.length })
    return new Map(heads.map((head) => [head._id, lastSequence(head)]))
  }

  /** Returns a position such that every event since `since` comes after it. */
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

  /** Returns the next events after a position, at most a page. Deleted events are skipped. */
  async page(organizationId: string, position: number): Promise<readonly EventRecord[]> {
    const head = await this.#heads.findOne({ _id: organizationId })
    if (!head) return []
    if (position < head.forgotten)
      this.#log.error({ organizationId, position, forgotten: head.forgotten }, 'events were deleted before they were read')
    return this.#after(head, Math.max(position, head.forgotten))
  }

  async #position(organizationId: string, after: string | null): Promise<number> {
    const head = await this.#heads.findOne({ _id: organizationId })
    const last = head?.sequence ?? 0
    if (after === null) return last
    const position = /^\d{1,15}$/.test(after) ? Number(after) : Number.NaN
    if (!(position <= last)) throw new KisError('invalid_request', 'The cursor does not come from these events.', { param: 'after' })
    return position
  }

  /** Returns the next complete events. */
  async #read(organizationId: string, position: number): Promise<readonly EventRecord[]> {
    const head = await this.#heads.findOne({ _id: organizationId })
    if (!head) return []
    if (position < head.forgotten)
      throw new KisError(
        'invalid_request',
        `The events after this cursor are no longer retained. The oldest retained event has the cursor ${head.forgotten + 1}.`,
        {
          param: 'after',
        },
      )
    return this.#after(head, position)
  }

  async #after(head: EventHead, position: number): Promise<readonly EventRecord[]> {
    const last = lastSequence(head)
    if (last <= position) return []
    return this.#events.find(
      { organizationId: head._id, sequence: { $gt: position, $lte: last } },
      { sort: { sequence: 1 }, limit: PAGE_EVENTS },
    )
  }

  protected override async copy(organizationId: string): Promise<void> {
    while (await this.#copySome(organizationId)) this.#followers.notify(organizationId)
  }

  /** Copies some pending changes. False: none are pending. */
  async #copySome(organizationId: string): Promise<boolean> {
    const head = await this.#getHead(organizationId)
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
    // If another process has read the same head and claims later, the number no longer matches.
    const claimed = await this.#heads.findOneAndUpdate(
      { _id: organizationId, sequence: head.sequence, copyingCount: 0 },
      { $set: { copying, copyingCount: copying.length }, $inc: { sequence: copying.length } },
    )
    if (claimed) await this.#finish(claimed)
    return true
  }

  /** Inserts the claimed events and clears the outboxes. Idempotent. */
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
    if (sequence - forgotten >= MAX_EVENTS + PRUNE_EVENTS) await this.#prune(_id, sequence - MAX_EVENTS)
  }

  /** Deletes old events. Followers see the new limit before anything is deleted. */
  async #prune(organizationId: string, upTo: number): Promise<void> {
    await this.#heads.findOneAndUpdate({ _id: organizationId, forgotten: { $lt: upTo } }, { $set: { forgotten: upTo } })
    while ((await this.#events.deleteMany({ organizationId, sequence: { $lte: upTo } })) > 0);
  }

  async #getHead(_id: string): Promise<EventHead> {
    const found = await this.#heads.findOne({ _id })
    if (found) return found
    await this.#heads.insertMissing([{ _id, sequence: 0, forgotten: 0, copying: [], copyingCount: 0 }])
    return (await this.#heads.findOne({ _id }))!
  }
}

/** The last event up to which all events are in the log. */
function lastSequence({ sequence, copyingCount }: EventHead): number {
  return sequence - copyingCount
}

/** Deletes the log of an organization. Returns whether there was none. Can be repeated. */
export async function eraseEvents({ events, eventHeads }: EventCollections, organizationId: string): Promise<boolean> {
  let isEmpty = true
  while ((await events.deleteMany({ organizationId })) > 0) isEmpty = false
  return (await eventHeads.findOneAndDelete({ _id: organizationId })) === null && isEmpty
}

/** Returns the events of an event log as a source of webhooks. */
export function eventLogSource<T extends Telling>(log: EventLog<T>, toEvent: (record: EventRecord) => WebhookEvent): WebhookSource {
  return {
    ends: (organizationIds) => log.ends(organizationIds),
    positionBefore: (organizationId, since) => log.positionBefore(organizationId, since),
    async read(organizationId, after) {
      const records = await log.page(organizationId, after)
      return { events: records.map(toEvent), cursor: records.at(-1)?.sequence ?? after }
    },
  }
}
