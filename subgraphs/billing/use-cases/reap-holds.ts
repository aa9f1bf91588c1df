import { isRunHold, type Wallet } from '../domain/wallet.ts'
import type { BillingDeps } from './deps.ts'
import { endOpenHold } from './end-hold.ts'

/** Wallets that are read together; each is one document with its holds. */
const PAGE_WALLETS = 50

/**
 * Ends every hold whose time is over, of every organization: one that never reached an engine is freed, one that did is charged by its
 * last checkpoint. Never calls an engine. Runs at once on several processes do no harm. @throws the first failure, after all have had their turn.
 */
export async function reapHolds(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  const now = deps.clock.now()
  let after = new Date(0)
  const failures: unknown[] = []
  while (!signal.aborted) {
    const due = await deps.collections.wallets.find(
      { nextExpiryAt: { $gt: after, $lte: now } },
      { sort: { nextExpiryAt: 1 }, limit: PAGE_WALLETS },
    )
    // A wallet that cannot be written now, because everybody writes it, keeps no other waiting.
    for (const wallet of due) await reapWallet(deps, wallet, now).catch((error) => failures.push(error))
    if (due.length < PAGE_WALLETS) break
    after = due.at(-1)!.nextExpiryAt!
  }
  if (failures.length > 0) throw failures[0]
}

async function reapWallet(deps: BillingDeps, { _id }: Wallet, now: Date): Promise<void> {
  await deps.writer.change(_id, null, (wallet) => {
    for (const [id, hold] of wallet.holds()) {
      if (hold.expiresAt > now) continue
      const used = !isRunHold(hold) && hold.state === 'dispatched' ? ({ quantities: hold.checkpoint, source: 'estimated' } as const) : null
      endOpenHold(deps, wallet, _id, id, hold, { kind: 'expire', used })
    }
    wallet.recomputeNextExpiry()
  })
}
