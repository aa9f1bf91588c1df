// What `kis copy` needs of billing's stores while nothing serves them.

import type { DocumentStore } from '../common/ports/document-store.ts'
import { type LedgerVerification, verifyLedgerPage } from './ledger/use-cases/verify-ledger.ts'
import { openCollections } from './use-cases/tables.ts'

export type { LedgerVerification } from './ledger/use-cases/verify-ledger.ts'
export { openCollections as billingCollections } from './use-cases/tables.ts'

/** Checks one page of the ledger, as `verifyLedger` does for an operator. */
export function checkLedger(store: Pick<DocumentStore, 'collection'>, after: string | null): Promise<LedgerVerification> {
  return verifyLedgerPage({ collections: openCollections(store) }, after)
}

/** Sums over all wallets, in nano-USD. */
export interface LedgerSums {
  readonly wallets: number
  readonly available: bigint
  readonly held: bigint
}

const PAGE = 100

/** Adds up the wallets of all organizations. */
export async function sumWallets(store: Pick<DocumentStore, 'collection'>): Promise<LedgerSums> {
  const { wallets } = openCollections(store)
  const sums = { wallets: 0, available: 0n, held: 0n }
  for (let after = ''; ; ) {
    const page = await wallets.find({ _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE })
    for (const { available, held } of page) {
      sums.wallets++
      sums.available += BigInt(available)
      sums.held += BigInt(held)
    }
    if (page.length < PAGE) return sums
    after = page.at(-1)!._id
  }
}
