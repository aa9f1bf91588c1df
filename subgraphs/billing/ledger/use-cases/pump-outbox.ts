import type { Collections } from '../../use-cases/tables.ts'
import { addToTotals } from './add-to-totals.ts'

/** Documents of one write, as the port allows. */
const MAX_BATCH_ENTRIES = 1_000

/**
 * Copies to the ledger, the usage records and their totals what the organization's outbox holds at the call's begin, oldest first, and takes it out of
 * the wallet. Copying or taking out again changes nothing, so any step may fail, be lost or run twice at once.
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
