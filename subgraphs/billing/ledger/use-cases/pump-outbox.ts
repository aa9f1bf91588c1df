import type { Collections } from '../../use-cases/tables.ts'
import { addToTotals } from './add-to-totals.ts'

/** Documents of one write, as the port allows. */
const MAX_BATCH_ENTRIES = 1_000

/**
 * Copies the entries that the outbox holds when the call begins, oldest first, to the ledger, the usage records and
 * their totals, then removes them from the wallet. Every step is idempotent, so it may fail, lose its answer or run
 * twice at once.
 */
export async function pumpOutbox(collections: Collections, organizationId: string): Promise<void> {
  const { wallets, entries, usage } = collections
  let wallet = await wallets.findOne({ _id: organizationId })
  const goal = wallet?.sequence ?? 0
  while (wallet?.outbox[0] && wallet.outbox[0].entry.sequence <= goal) {
    const batch = wallet.outbox.slice(0, MAX_BATCH_ENTRIES)
    const posted = batch.flatMap(({ entry, usage: record }) => (record ? [{ sequence: entry.sequence, usage: record }] : []))
    await Promise.all([
      entries.insertMissing(batch.map(({ entry }) => entry)),
      posted.length > 0 ? usage.insertMissing(posted.map((record) => record.usage)) : undefined,
      addToTotals(collections, posted),
    ])
    wallet = await wallets.findOneAndUpdate(
      { _id: organizationId },
      { $pull: { outbox: { 'entry.sequence': { $lte: batch.at(-1)!.entry.sequence } } } },
    )
  }
}
