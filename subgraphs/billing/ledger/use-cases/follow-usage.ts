import type { BillingDeps } from '../../use-cases/deps.ts'
import { usageRecordIdOf } from '../domain/ids.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import type { UsageRecord } from '../domain/usage.ts'
import { followLedger } from './follow-ledger.ts'

/** A usage record, with the cursor after it. */
export interface UsageEvent {
  readonly record: UsageRecord
  readonly cursor: string
}

/** Yields each usage record once, in the order of charging. */
export function followUsage(deps: BillingDeps, organizationId: string, after: string | null): AsyncIterableIterator<UsageEvent, undefined> {
  return followLedger(deps, organizationId, after, (entries) => toUsageEvents(deps, entries))
}

/** Returns the usage records of these entries. Records are copied before their entries, so they exist. */
export async function toUsageEvents(
  { collections }: Pick<BillingDeps, 'collections'>,
  entries: readonly LedgerEntry[],
): Promise<readonly UsageEvent[]> {
  const ends = entries.filter(({ kind }) => kind === 'settle' || kind === 'expire')
  if (ends.length === 0) return []
  const ids = ends.map(usageRecordIdOf)
  const records = await collections.usage.find({ _id: { $in: ids } }, { limit: ids.length })
  const byId = new Map(records.map((record) => [record._id, record]))
  return ends.flatMap(({ sequence }, i) => {
    const record = byId.get(ids[i]!)
    return record ? [{ record, cursor: String(sequence) }] : []
  })
}
