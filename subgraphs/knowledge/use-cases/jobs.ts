import type { Clock } from '../../common/clock.ts'
import { randomHex } from '../../common/ids.ts'
import type { DocumentCollection, StoredDocument } from '../../common/ports/document-store.ts'
import type { Job } from '../domain/records.ts'

/** A worker that says nothing for this long has lost its job. */
export const LEASE_MS = 30_000
export const HEARTBEAT_MS = 10_000
/** Due jobs looked at in one round. */
const CLAIM_PAGE = 20

export interface JobRecord extends StoredDocument {
  readonly job?: Job
}

/** The next due job of a collection, leased; null when none is due. Each is claimed by one worker: the claim names the due time that it saw. */
export async function claimJob<T extends JobRecord>(records: DocumentCollection<T>, clock: Clock, only?: string): Promise<T | null> {
  const now = clock.now()
  const due = only
    ? [await records.findOne({ _id: only })]
    : await records.find({ 'job.dueAt': { $lte: now } }, { sort: { 'job.dueAt': 1 }, limit: CLAIM_PAGE })
  for (const record of due) {
    if (!record?.job || record.job.dueAt > now) continue
    const claimed = await records.findOneAndUpdate(
      { _id: record._id, 'job.dueAt': record.job.dueAt, 'job.kind': record.job.kind },
      { $set: { 'job.dueAt': new Date(now.getTime() + LEASE_MS), 'job.lease': randomHex(32) } },
    )
    if (claimed) return claimed
  }
  return null
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
