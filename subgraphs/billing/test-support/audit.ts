import { expect } from 'vitest'
import type { DocumentCollection, StoredDocument } from '../../common/ports/document-store.ts'
import { endEntryId, usageRecordId } from '../domain/ids.ts'
import { ACCOUNTS, balanceChange, type LedgerEntry } from '../domain/ledger.ts'
import { priceOf, type Rates, UNITS } from '../domain/money.ts'
import type { BillingDeps } from '../use-cases/deps.ts'

const PAGE = 1_000

/** What an organization's ledger says, from the documents alone, whether copied out of the outbox or not. */
export interface Audit {
  readonly entries: readonly LedgerEntry[]
  readonly openHolds: readonly string[]
  readonly usageIds: readonly string[]
}

/**
 * Checks an organization's documents against the laws of the ledger: entries sum to zero over the accounts (I2) and to the wallet per account
 * (I1, I7), sequences have no gaps, nothing falls below zero (I3), each hold ends at most once and with at most its amount (I4, I5), and
 * each charged call has one usage record that explains its charge.
 */
export async function audit({ collections }: BillingDeps, organizationId: string): Promise<Audit> {
  const wallet = (await collections.wallets.findOne({ _id: organizationId }))!
  const entries = union(
    await all(collections.entries, { organizationId }, 'sequence'),
    wallet.outbox.map(({ entry }) => entry),
  )
  const records = union(
    await all(collections.usage, { organizationId }, 'position'),
    wallet.outbox.flatMap(({ usage }) => usage ?? []),
  )

  const sums = Object.fromEntries(ACCOUNTS.map((account) => [account, 0]))
  for (const [i, entry] of entries.entries()) {
    expect(entry.sequence).toBe(i + 1)
    expect(entry.organizationId).toBe(organizationId)
    expect(ACCOUNTS.reduce((sum, account) => sum + (entry.postings[account] ?? 0), 0)).toBe(0)
    for (const account of ACCOUNTS) sums[account]! += entry.postings[account] ?? 0
    expect(entry.balance).toBe(sums.wallet! + sums.held!)
    expect(sums.wallet).toBeGreaterThanOrEqual(0)
    expect(sums.held).toBeGreaterThanOrEqual(0)
  }
  expect({ available: sums.wallet, held: sums.held }).toEqual({ available: wallet.available, held: wallet.held })
  expect(wallet.sequence).toBe(entries.length)

  const open = Object.entries(wallet.holds)
  expect(open.reduce((sum, [, hold]) => sum + hold.amount, 0)).toBe(wallet.held)
  for (const [, hold] of open) expect(wallet.nextExpiryAt!.getTime()).toBeLessThanOrEqual(hold.expiresAt.getTime())

  const recordsById = new Map(records.map((record) => [record._id, record]))
  for (const id of new Set(entries.filter((entry) => entry.kind === 'hold').map((entry) => entry.reference))) {
    const ofHold = entries.filter((entry) => entry.reference === id)
    const [opened, ended] = [ofHold.filter((entry) => entry.kind === 'hold'), ofHold.filter((entry) => entry.kind !== 'hold')]
    expect(opened.length - ended.length).toBe(wallet.holds[id] ? 1 : 0)
    expect(opened).toHaveLength(1)
    for (const entry of ended) {
      expect(entry._id).toBe(endEntryId(organizationId, id))
      const charged = 0 - balanceChange(entry.postings)
      const held = 0 - entry.postings.held!
      expect(charged).toBeLessThanOrEqual(held)
      const record = recordsById.get(usageRecordId(organizationId, id))
      if (entry.kind === 'void') expect(record).toBeUndefined()
      if (entry.kind === 'settle') expect(record).toBeDefined()
      if (!record) {
        expect(charged).toBe(0)
        continue
      }
      const cost = priceOf(record.quantities, Object.fromEntries(UNITS.map((unit) => [unit, BigInt(record.rates[unit])])) as Rates)
      expect(record.amount).toBe(charged)
      expect(charged).toBe(Math.min(Number(cost), held))
      expect(charged - (entry.postings.absorbed ?? 0)).toBe(Number(cost))
      expect(record.source === 'estimated' || entry.kind === 'settle').toBe(true)
    }
  }
  const ends = new Set(entries.map((entry) => entry.reference).map((id) => usageRecordId(organizationId, id)))
  for (const record of records) expect(ends).toContain(record._id)
  return { entries, openHolds: open.map(([id]) => id), usageIds: records.map((record) => record._id) }
}

/** Both in order; what the pump has copied but not pulled yet is in both, and the same. */
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
