import type { DocumentCollection, StoredDocument } from '../ports/document-store.ts'
import type { Clock } from '../process/clock.ts'
import { randomHex } from '../process/ids.ts'

/** A worker without a heartbeat for this long has lost its job. */
export const LEASE_MS = 30_000
/** Interval at which a worker renews its lease. */
export const HEARTBEAT_MS = 10_000
/** Due jobs read in one round. */
export const CLAIM_PAGE = 20

/**
 * Work on a record, due from `dueAt` on. A lease moves `dueAt` forward, so that the job of a dead worker becomes due
 * again.
 */
export interface Leasable {
  readonly kind: string
  readonly dueAt: Date
  /** Protects the worker's writes: each names this token, so a worker that has lost its lease changes nothing. */
  readonly lease: string | null
}

/** A record with work. `job` is absent when there is none. */
export interface JobRecord extends StoredDocument {
  readonly job?: Leasable
}

/** Leases the job of one record; null: the job is not due, or another worker has it. */
export async function claimJob<T extends JobRecord>(records: DocumentCollection<T>, clock: Clock, _id: string): Promise<T | null> {
  const record = await records.findOne({ _id })
  return record && claimSeen(records, record, clock.now())
}

/**
 * Leases the job of a record that was just read; null: the job is not due, or another worker has it. The claim names
 * the due time that was read, so only one worker gets it.
 */
export async function claimSeen<T extends JobRecord>(records: DocumentCollection<T>, { _id, job }: T, now: Date): Promise<T | null> {
  if (!job || job.dueAt > now) return null
  return records.findOneAndUpdate(
    { _id, 'job.dueAt': job.dueAt, 'job.kind': job.kind },
    { $set: { 'job.dueAt': new Date(now.getTime() + LEASE_MS), 'job.lease': randomHex(32) } },
  )
}

/** Extends the lease. False: it was lost. */
export async function renewLease<T extends JobRecord>(records: DocumentCollection<T>, clock: Clock, record: T): Promise<boolean> {
  const dueAt = new Date(clock.now().getTime() + LEASE_MS)
  return (await records.findOneAndUpdate({ _id: record._id, 'job.lease': record.job!.lease }, { $set: { 'job.dueAt': dueAt } })) !== null
}

/**
 * Makes every leased job due. Use it for a store that only this process uses, whose earlier workers have therefore
 * ended.
 */
export async function releaseAllLeases<T extends JobRecord>(records: DocumentCollection<T>, clock: Clock): Promise<void> {
  const now = clock.now()
  for (let after = now; ; ) {
    const page = await records.find({ 'job.dueAt': { $gt: after } }, { sort: { 'job.dueAt': 1 }, limit: CLAIM_PAGE })
    const leased = page.filter(({ job }) => job!.lease !== null)
    for (const { _id, job } of leased) {
      await records.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $set: { 'job.dueAt': now, 'job.lease': null } })
    }
    if (page.length < CLAIM_PAGE) return
    // Released jobs are no longer later than `after`. Jobs due at the same time as the last one of the page may still
    // be leased.
    if (leased.length === 0) after = page.at(-1)!.job!.dueAt
  }
}
