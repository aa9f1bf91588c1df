import type { Collections } from '../../use-cases/tables.ts'
import type { Wallet } from '../domain/wallet.ts'

/** Wallets read together. Each is one document with its holds. */
const PAGE_WALLETS = 50

/**
 * Gives the wallets with open holds, those that expire first ahead. `until`: only holds that expire by then; null: all.
 */
export async function* walletsByExpiry({ wallets }: Pick<Collections, 'wallets'>, until: Date | null): AsyncGenerator<Wallet, undefined> {
  for (let after = new Date(0); ; ) {
    const due = until ? { $gt: after, $lte: until } : { $gt: after }
    const page = await wallets.find({ nextExpiryAt: due }, { sort: { nextExpiryAt: 1 }, limit: PAGE_WALLETS })
    yield* page
    if (page.length < PAGE_WALLETS) return
    let last = page.at(-1)!
    after = last.nextExpiryAt!
    // More than a page of holds may expire in the same millisecond.
    for (let isWhole = true; isWhole; ) {
      const same = await wallets.find({ nextExpiryAt: after, _id: { $gt: last._id } }, { sort: { _id: 1 }, limit: PAGE_WALLETS })
      yield* same
      last = same.at(-1) ?? last
      isWhole = same.length === PAGE_WALLETS
    }
  }
}
