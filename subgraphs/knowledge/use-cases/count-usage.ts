import { ServiceUnavailable } from '../../common/errors.ts'
import { DuplicateKey, type Filter } from '../../common/ports/document-store.ts'
import type { Clock } from '../../common/process/clock.ts'
import { randomHex } from '../../common/process/ids.ts'
import type { CountedNumber, UsageMark, UsageRecord } from '../domain/records.ts'
import type { KnowledgeStore } from '../ports/knowledge-store.ts'

/** A number that a record (a document's vectors, a blob's bytes) adds to one of its organization's totals. */
export interface Counted {
  readonly organizationId: string
  /** Names the record's number in the marks; of letters, digits and `_`. */
  readonly subject: string
  readonly total: 'storageBytes' | 'vectors' | `chunks.${string}`
  /**
   * True when a lease keeps everyone else from counting this subject: a mark found is then an interrupted one, and not
   * waited for.
   */
  readonly exclusive: boolean
  /** The number as the record has it now; undefined when the record is gone, which counts as 0. */
  current(): Promise<CountedNumber | undefined>
  /**
   * Writes the number unless the record has another than `before` (by the change that wrote it), or the caller has no
   * right to; says whether it did.
   */
  write(number: CountedNumber, before: CountedNumber): Promise<boolean>
}

/** A mark older than this was left by a crash: the two writes that follow a mark take milliseconds. */
const STALE_MARK_MS = 10_000
const WAIT_MS = 20
/** A competing change of one subject is waited for this often. */
const MAX_WAITS = 50

/**
 * Sets the number of a record and moves the total by the difference, although the two are in different documents: a
 * mark in the usage says from what to what; the record is written, with the id of the change; the mark goes. The total
 * grows together with the mark and shrinks when it goes, so that it is never below what the records say. Whoever finds
 * the mark of an interrupted change first settles it: the record tells by the id of its last change whether that change
 * came through, and one that has not can no more once the record's id is replaced. Repeating a change does nothing
 * more; a change to null only settles what was interrupted. `over_limit`: the total would pass the limit; `lost`: the
 * record could not be written. Then nothing has changed.
 */
export async function count(
  { store, clock }: { readonly store: KnowledgeStore; readonly clock: Clock },
  counted: Counted,
  to: number | null,
  limit: number | null = null,
): Promise<'counted' | 'over_limit' | 'lost'> {
  const { organizationId, subject, total } = counted
  for (let wait = 0; wait < MAX_WAITS; wait++) {
    const usage = await store.usage.findOne({ _id: organizationId })
    const found = usage?.marks[subject]
    if (!usage) {
      await store.usage.insertOne({ _id: organizationId, ...NOTHING }).catch(unlessThere)
    } else if (found && !counted.exclusive && clock.now().getTime() - found.at < STALE_MARK_MS) {
      await clock.sleep(WAIT_MS)
    } else if (found) {
      const outcome = await findOutcome(counted, found)
      if (outcome === 'open') return 'lost'
      await settle(store, counted, found, outcome)
    } else {
      const before = await counted.current()
      const from = before?.value ?? 0
      if (to === null || from === to) return 'counted'
      if (!before) return 'lost'
      const room: Filter = to > from && limit !== null ? { [total]: { $lte: limit - (to - from) } } : {}
      const mark: UsageMark = { id: randomHex(32), after: before.by, from, to, at: clock.now().getTime() }
      const marked = await store.usage.findOneAndUpdate(
        { _id: organizationId, [`marks.${subject}`]: null, ...room },
        { $inc: { [total]: Math.max(0, to - from) }, $set: { [`marks.${subject}`]: { ...mark } } },
      )
      if (marked) {
        const written = await counted.write({ value: to, by: mark.id }, before)
        await settle(store, counted, mark, written ? 'done' : 'not done')
        return written ? 'counted' : 'lost'
      }
      // Nothing was marked because of the limit, or because of another change of the same record, under way or just
      // done.
      const isCompeting =
        (await store.usage.findOne({ _id: organizationId }))?.marks[subject] || (await counted.current())?.by !== before.by
      if (!isCompeting) return 'over_limit'
    }
  }
  throw new ServiceUnavailable('The storage count')
}

/**
 * Whether a found change came through. One that has not is kept from it now, unless the caller has no right to write
 * the record: `open`.
 */
async function findOutcome(counted: Counted, mark: UsageMark): Promise<'done' | 'not done' | 'open'> {
  const number = await counted.current()
  if (number?.by === mark.id) return 'done'
  if (number?.by !== mark.after) return 'not done'
  if (await counted.write({ value: mark.from, by: randomHex(32) }, { value: mark.from, by: mark.after })) return 'not done'
  const again = await counted.current()
  return again?.by === mark.id ? 'done' : again?.by === mark.after ? 'open' : 'not done'
}

/** Removes a mark, and moves the total to where the record is. */
async function settle(
  store: KnowledgeStore,
  { organizationId, subject, total }: Counted,
  { id, from, to }: UsageMark,
  outcome: 'done' | 'not done',
): Promise<void> {
  const change = outcome === 'done' ? Math.min(0, to - from) : Math.min(0, from - to)
  await store.usage.findOneAndUpdate(
    { _id: organizationId, [`marks.${subject}.id`]: id },
    { $unset: { [`marks.${subject}`]: '' }, $inc: { [total]: change } },
  )
}

const NOTHING: Omit<UsageRecord, '_id'> = { storageBytes: 0, vectors: 0, chunks: {}, marks: {} }

function unlessThere(error: unknown): void {
  if (!(error instanceof DuplicateKey)) throw error
}

export async function readUsage(store: KnowledgeStore, organizationId: string): Promise<UsageRecord> {
  return (await store.usage.findOne({ _id: organizationId })) ?? { _id: organizationId, ...NOTHING }
}
