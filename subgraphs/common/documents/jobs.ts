import type { DocumentCollection, StoredDocument } from '../ports/document-store.ts'
import type { Clock } from '../process/clock.ts'
import { randomHex } from '../process/ids.ts'

/** A worker that says nothing for this long has lost its job. */
export const LEASE_MS = 30_000
export const HEARTBEAT_MS = 10_000
/** Due jobs looked at in one round. */
export const CLAIM_PAGE = 20

/** Work that a record waits for: it is due when `dueAt` has come; a lease moves `dueAt` on, so that a dead worker's job is due again by itself. */
export interface Leasable {
  readonly kind: string
  readonly dueAt: Date
  /** Fences the worker's writes: each names the token, and a worker that lost its lease changes nothing. */
  readonly lease: string | null
}

export interface JobRecord extends StoredDocument {
  readonly job?: Leasable
}

/** The job of one record, leased; null: it is not due, or somebody else has it. */
export async function claimJob<T extends JobRecord>(records: DocumentCollection<T>, clock: Clock, _id: string): Promise<T | null> {
  const record = await records.findOne({ _id })
  return record && claimSeen(records, record, clock.now())
}

/** The job of a record that was read a moment ago, leased; null: it is not due, or somebody else has it. Each is claimed by one worker: the claim names the due time that it saw. */
export async function claimSeen<T extends JobRecord>(records: DocumentCollection<T>, { _id, job }: T, now: Date): Promise<T | null> {
  if (!job || job.dueAt > now) return null
  return records.findOneAndUpdate(
    { _id, 'job.dueAt': job.dueAt, 'job.kind': job.kind },
    { $set: { 'job.dueAt': new Date(now.getTime() + LEASE_MS), 'job.lease': randomHex(32) } },
  )
}

/** False when the lease was lost. */
export async function renewLease<T extends JobRecord>(records: DocumentCollection<T>, clock: Clock, record: T): Promise<boolean> {
  const dueAt = new Date(clock.now().getTime() + LEASE_MS)
  return (await records.findOneAndUpdate({ _id: record._id, 'job.lease': record.job!.lease }, { $set: { 'job.dueAt': dueAt } })) !== null
}

/** Makes every leased job due: for a store that belongs to this process alone, whose earlier workers are therefore gone. */
export async function releaseAllLeases<T extends JobRecord>(records: DocumentCollection<T>, clock: Clock): Promise<void> {
  const now = clock.now()
  for (let after = now; ; ) {
    const page = await records.find({ 'job.dueAt': { $gt: after } }, { sort: { 'job.dueAt': 1 }, limit: CLAIM_PAGE })
    const leased = page.filter(({ job }) => job!.lease !== null)
    for (const { _id, job } of leased) {
      await records.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $set: { 'job.dueAt': now, 'job.lease': null } })
    }
    if (page.length < CLAIM_PAGE) return
    // Released jobs are no longer behind `after`; those that were due at the same time as the last of the page may still be.
    if (leased.length === 0) after = page.at(-1)!.job!.dueAt
  }
}
