import type { Collections } from './collections.ts'

/** Documents of one write, as the port allows. */
const MAX_BATCH_ENTRIES = 1_000

/**
 * Copies to the ledger and the usage records what the organization's outbox holds at the call's begin, oldest first, and takes it out of
 * the wallet. Copying or taking out again changes nothing, so any step may fail, be lost or run twice at once.
 */
export async function pumpOutbox({ wallets, entries, usage }: Collections, organizationId: string): Promise<void> {
  let wallet = await wallets.findOne({ _id: organizationId })
  const goal = wallet?.sequence ?? 0
  while (wallet?.outbox[0] && wallet.outbox[0].entry.sequence <= goal) {
    const batch = wallet.outbox.slice(0, MAX_BATCH_ENTRIES)
    const records = batch.flatMap((pending) => pending.usage ?? [])
    await Promise.all([
      entries.insertMissing(batch.map(({ entry }) => entry)),
      records.length > 0 ? usage.insertMissing(records) : undefined,
    ])
    wallet = await wallets.findOneAndUpdate(
      { _id: organizationId },
      { $pull: { outbox: { 'entry.sequence': { $lte: batch.at(-1)!.entry.sequence } } } },
    )
  }
}
