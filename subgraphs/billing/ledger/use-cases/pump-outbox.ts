import type { Collections } from '../../use-cases/tables.ts'
import { lastCopied } from '../domain/wallet.ts'
import { addToTotals } from './add-to-totals.ts'

/** Documents of one write, the limit of the document-store port. */
const MAX_BATCH_ENTRIES = 1_000

/**
 * Copies the entries that the outbox contains when the call starts, oldest first, to the ledger, the usage records and
 * their totals, then removes them from the wallet. Every step is idempotent, so it may fail, lose its response or run
 * twice at once. After each batch, calls `copied` with the sequence number of the last entry removed from the wallet.
 */
export async function pumpOutbox(collections: Collections, organizationId: string, copied: (sequence: number) => void): Promise<void> {
  const { wallets, entries, usage } = collections
  const wallet = await wallets.findOne({ _id: organizationId })
  if (!wallet) return
  const { outbox } = wallet
  copied(lastCopied(wallet))
  for (let at = 0; at < outbox.length; at += MAX_BATCH_ENTRIES) {
    const batch = outbox.slice(at, at + MAX_BATCH_ENTRIES)
    const last = batch.at(-1)!.entry.sequence
    const posted = batch.flatMap(({ entry, usage: record }) => (record ? [{ sequence: entry.sequence, usage: record }] : []))
    await Promise.all([
      entries.insertMissing(batch.map(({ entry }) => entry)),
      posted.length > 0 ? usage.insertMissing(posted.map((record) => record.usage)) : undefined,
      addToTotals(collections, posted),
    ])
    await wallets.updateOne({ _id: organizationId }, { $pull: { outbox: { 'entry.sequence': { $lte: last } } } })
    copied(last)
  }
}
