import { ServiceUnavailable } from '../../common/errors.ts'
import { DuplicateKey, type Filter } from '../../common/ports/document-store.ts'
import type { Clock } from '../../common/process/clock.ts'
import { randomHex } from '../../common/process/ids.ts'
import type { CountedNumber, UsageMark, UsageRecord } from '../domain/records.ts'
import type { KnowledgeStore } from '../ports/knowledge-store.ts'

/**
 * A number of a record, such as a document's vectors or a blob's bytes, that is part of a total of its organization.
 */
export interface Counted {
  readonly organizationId: string
  /** Identifies the number in the usage marks. It has letters, digits and `_` only. */
  readonly subject: string
  readonly total: 'storageBytes' | 'vectors' | `chunks.${string}`
  /**
   * True if a lease prevents all other processes from counting this subject. Any mark then belongs to an interrupted
   * change, and `count` does not wait for it.
   */
  readonly exclusive: boolean
  /** Returns the number that the record holds now. Undefined: the record is gone and counts as 0. */
  current(): Promise<CountedNumber | undefined>
  /**
   * Writes the number. Does nothing if the record's last change is not that of `before`, or if the caller may no longer
   * write the record. Reports whether it wrote.
   */
  write(number: CountedNumber, before: CountedNumber): Promise<boolean>
}

/** An older mark was left by a crash, because the two writes after a mark take milliseconds. */
const STALE_MARK_MS = 10_000
const WAIT_MS = 20
/** Maximum waits of `count` for a competing change of the same subject. */
const MAX_WAITS = 50

/**
 * Sets a record's number to `to` and changes its organization's total by the difference.
 * The record and the total are in different documents, so there are three writes. The first adds a mark with the old
 * and new number to the usage record. The second writes the record, with the mark's ID. The third removes the mark. An
 * increase is added to the total together with the mark. A decrease is subtracted when the mark is removed. The total
 * is therefore never below the sum of the records.
 * A caller that finds the mark of an interrupted change settles that change first. The change is complete if the record
 * has the mark's ID. Otherwise, the caller writes a new ID to the record, so that the interrupted change can no longer
 * write it.
 * Repeating a change has no effect. If `to` is null, `count` only settles an interrupted change. It returns
 * `over_limit` if the total would exceed `limit`, and `lost` if the record could not be written. In both cases nothing
 * has changed.
 * @throws {ServiceUnavailable} if competing changes of the subject do not end.
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
      // The limit refused the mark, or another change of the same record is running or has just ended.
      const isCompeting =
        (await store.usage.findOne({ _id: organizationId }))?.marks[subject] || (await counted.current())?.by !== before.by
      if (!isCompeting) return 'over_limit'
    }
  }
  throw new ServiceUnavailable('The storage count')
}

/**
 * Reports whether the change of a mark wrote its record. A change that did not can no longer do so after this call.
 * Returns `open` if the change did not write and the caller may not write the record either.
 */
async function findOutcome(counted: Counted, mark: UsageMark): Promise<'done' | 'not done' | 'open'> {
  const number = await counted.current()
  if (number?.by === mark.id) return 'done'
  if (number?.by !== mark.after) return 'not done'
  if (await counted.write({ value: mark.from, by: randomHex(32) }, { value: mark.from, by: mark.after })) return 'not done'
  const again = await counted.current()
  return again?.by === mark.id ? 'done' : again?.by === mark.after ? 'open' : 'not done'
}

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

/** Returns an organization's usage. All its numbers are 0 before the first change. */
export async function readUsage(store: KnowledgeStore, organizationId: string): Promise<UsageRecord> {
  return (await store.usage.findOne({ _id: organizationId })) ?? { _id: organizationId, ...NOTHING }
}
