import { expect } from 'vitest'
import type { DocumentCollection, StoredDocument } from '../../common/ports/document-store.ts'
import { digestIds, sortedIds, usageRecordIdOf } from '../ledger/domain/ids.ts'
import { balanceChange, isEnd, type LedgerEntry } from '../ledger/domain/ledger.ts'
import { auditEntry, auditWallet, NO_ENTRIES } from '../ledger/domain/ledger-audit.ts'
import { computePrice, MAX_NANO_USD } from '../ledger/domain/money.ts'
import { fromStoredRates } from '../ledger/domain/rate-card.ts'
import type { UsageRecord } from '../ledger/domain/usage.ts'
import { addSums, NO_USAGE, sumsOfRecord, toSums, toTotal } from '../ledger/domain/usage-total.ts'
import type { BillingDeps } from '../use-cases/deps.ts'

const PAGE = 1_000

/** An organization's ledger according to the documents, whether copied from the outbox or not. */
export interface Audit {
  readonly entries: readonly LedgerEntry[]
  readonly openHolds: readonly string[]
  readonly usageRecords: readonly UsageRecord[]
}

/**
 * Checks an organization's documents against the rules of the ledger, by their names in `test/README.md`: entries sum
 * to the wallet for each account (I1, I7) and to zero over the accounts (I2), nothing falls below zero (I3), each hold
 * ends at most once (I4) and with at most its amount (I5), each charged call has one usage record that explains its
 * charge (I9), and nothing belongs to another organization (I10).
 */
export async function audit({ collections }: Pick<BillingDeps, 'collections'>, organizationId: string): Promise<Audit> {
  const wallet = (await collections.wallets.findOne({ _id: organizationId }))!
  const entries = union(
    await all(collections.entries, { organizationId }, 'sequence'),
    wallet.outbox.map(({ entry }) => entry),
  )
  // Sorted by position, which is not the order of posting: records of the same instant sort by id.
  const records = union(
    await all(collections.usage, { organizationId }, 'position'),
    wallet.outbox.flatMap(({ usage }) => usage ?? []),
  ).toSorted((a, b) => (a.position < b.position ? -1 : 1))

  let state = NO_ENTRIES
  for (const entry of entries) {
    const { after, faults } = auditEntry(state, entry)
    expect(faults, 'I1, I2, I7: an entry sums to zero, its balance is the sum up to it, and the sequence has no gaps').toEqual([])
    expect(entry.organizationId, 'I10: the entry is its own organization’s').toBe(organizationId)
    expect(after.available, 'I3: nothing is available below zero').toBeGreaterThanOrEqual(0n)
    expect(after.held, 'I3: nothing is held below zero').toBeGreaterThanOrEqual(0n)
    state = after
  }
  expect(auditWallet(state, wallet), 'I1, I7: the wallet is the sum of its entries, what is held that of its open holds').toEqual([])

  const open = Object.entries(wallet.holds)
  for (const [, hold] of open)
    expect(wallet.nextExpiryAt!.getTime(), 'no hold expires before the reaper looks').toBeLessThanOrEqual(hold.expiresAt.getTime())

  await requireTotals(
    collections,
    organizationId,
    records,
    wallet.outbox.flatMap(({ usage }) => usage?._id ?? []),
  )

  const chargedByKey = new Map<string, bigint>()
  const chargedKeys = [...new Set(records.map(({ apiKeyId }) => apiKeyId))].slice(0, PAGE)
  const keys = chargedKeys.length > 0 ? await collections.apiKeys.find({ _id: { $in: chargedKeys } }, { limit: PAGE }) : []
  const ancestorsByKey = new Map(keys.map(({ _id, ancestors }) => [_id, ancestors]))
  for (const { apiKeyId, amount } of records)
    for (const id of [apiKeyId, ...(ancestorsByKey.get(apiKeyId) ?? [])])
      chargedByKey.set(id, (chargedByKey.get(id) ?? 0n) + BigInt(amount))
  for (const [apiKeyId, { totalSpent }] of Object.entries(wallet.spending))
    expect(BigInt(totalSpent), 'what a key has spent is the sum of its usage records and its descendants’').toBe(
      least(chargedByKey.get(apiKeyId) ?? 0n, MAX_NANO_USD),
    )

  const recordsById = new Map(records.map((record) => [record._id, record]))
  expect(recordsById.size, 'I9: one usage record a call').toBe(records.length)
  const byReference = Map.groupBy(entries, (entry) => entry.reference)
  const runs = Map.groupBy(entries, ({ runHoldId, reference }) => runHoldId ?? reference)
  for (const [runId, ofRun] of runs) {
    const ids = new Set(ofRun.map(({ reference }) => reference))
    if (ids.size === 1) continue
    const openOfRun = open.filter(([id]) => ids.has(id)).reduce((sum, [, hold]) => sum + hold.amount, 0)
    const heldOfRun = ofRun.reduce((sum, { postings }) => sum + (postings.held ?? 0), 0)
    expect(heldOfRun, `I4: what the run ${runId} and its calls hold is what was placed and not ended`).toBe(openOfRun)
  }
  for (const [id, ofHold] of byReference) {
    const [opened, ended] = [ofHold.filter((entry) => entry.kind === 'hold'), ofHold.filter((entry) => entry.kind !== 'hold')]
    if (opened.length === 0) continue
    expect(opened, 'I4: a hold is placed once').toHaveLength(1)
    expect(ended, 'I4: a hold is open, or has ended once').toHaveLength(wallet.holds[id] ? 0 : 1)
    for (const entry of ended) {
      expect(entry._id, 'I4: the end of a hold is known by the hold’s id').toBeOneOf([
        sortedIds(organizationId, id).entry,
        digestIds(organizationId, id).entry,
      ])
      const charged = 0 - balanceChange(entry.postings)
      const held = 0 - (entry.postings.held ?? 0)
      const isOfRun = runs.get(entry.runHoldId ?? id)!.some(({ reference }) => reference !== id)
      if (!isOfRun) expect(held, 'I4: an end frees what was placed').toBe(opened[0]!.postings.held)
      expect(charged, 'I5: no charge is above its hold').toBeLessThanOrEqual(held)
      const record = recordsById.get(usageRecordIdOf(entry))
      if (entry.kind === 'void') expect(record, 'I9: a void call has used nothing').toBeUndefined()
      if (entry.kind === 'settle') expect(record, 'I9: a settled call has a usage record').toBeDefined()
      if (!record) {
        expect(charged, 'I9: what is charged has a usage record').toBe(0)
        continue
      }
      const cost = computePrice(record.quantities, fromStoredRates(record.rates))
      expect(record.amount, 'I9: the usage record says what was charged').toBe(charged)
      expect(BigInt(charged), 'I5: a charge is the price of the usage, up to the hold').toBe(least(cost, BigInt(held)))
      const absorbed = BigInt(0 - (entry.postings.absorbed ?? 0))
      expect(BigInt(charged) + absorbed, 'I5: what is above the hold is absorbed').toBe(least(cost, MAX_NANO_USD))
      expect(record.source === 'estimated' || entry.kind === 'settle', 'I9: an expiry charges an estimate').toBe(true)
    }
  }
  const ends = new Set(entries.filter(isEnd).map(usageRecordIdOf))
  for (const record of records) {
    expect(ends, 'I9: each usage record is of a hold').toContain(record._id)
    expect(record.organizationId, 'I10: the usage record is its own organization’s').toBe(organizationId)
  }
  return { entries, openHolds: open.map(([id]) => id), usageRecords: records }
}

/**
 * Checks the totals. They include every record that has left the outbox, once. They may include some records that are
 * still in the outbox.
 */
async function requireTotals(
  collections: BillingDeps['collections'],
  organizationId: string,
  records: readonly UsageRecord[],
  pending: readonly string[],
): Promise<void> {
  const totals = await all(collections.usageTotals, { organizationId }, 'position')
  const byTotal = Map.groupBy(records, (record) => toTotal(record)._id)
  for (const total of totals) {
    const ofIt = byTotal.get(total._id) ?? []
    const copied = ofIt.filter(({ _id }) => !pending.includes(_id))
    const [some, most] = [copied, ofIt].map((these) => these.map(sumsOfRecord).reduce(addSums, NO_USAGE))
    const { calls } = toSums(total)
    if (calls === some!.calls) expect(toSums(total), 'a total is the sum of its usage records').toEqual(some)
    else if (calls === most!.calls) expect(toSums(total), 'a total is the sum of its usage records').toEqual(most)
    else expect(calls > some!.calls && calls < most!.calls, 'a total has each of its usage records once').toBe(true)
    byTotal.delete(total._id)
  }
  for (const left of byTotal.values()) for (const { _id } of left) expect(pending, 'each usage record is in a total').toContain(_id)
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

/** Merges two sorted lists. Entries that the pump has copied but not yet removed are in both, and equal. */
function union<T extends StoredDocument>(copied: readonly T[], pending: readonly T[]): readonly T[] {
  const byId = new Map(copied.map((document) => [document._id, document]))
  for (const document of pending) if (byId.has(document._id)) expect(document).toEqual(byId.get(document._id))
  return [...copied, ...pending.filter((document) => !byId.has(document._id))]
}

async function all<T extends StoredDocument>(
  collection: DocumentCollection<T>,
  filter: { readonly organizationId: string },
  key: 'sequence' | 'position',
): Promise<readonly T[]> {
  const documents: T[] = []
  for (;;) {
    const last = documents.at(-1) as Record<string, string | number> | undefined
    const page = await collection.find({ ...filter, ...(last && { [key]: { $gt: last[key]! } }) }, { sort: { [key]: 1 }, limit: PAGE })
    documents.push(...page)
    if (page.length < PAGE) return documents
  }
}
