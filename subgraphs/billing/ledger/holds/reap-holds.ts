import { byTime } from '../../domain/by-time.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Wallet } from '../domain/wallet.ts'
import { expireHold } from './end-hold.ts'

/**
 * Ends every expired hold, of every organization. Never calls an engine. Several processes may run it at once.
 * @throws {Error} the first failure, after all organizations were tried
 */
export async function reapHolds(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  const now = deps.clock.now()
  const failures: unknown[] = []
  for await (const wallet of byTime(deps.collections.wallets, 'nextExpiryAt', now)) {
    if (signal.aborted) break
    // A wallet that is too busy to be written must not delay the others.
    await reapWallet(deps, wallet, now).catch((error) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

async function reapWallet(deps: BillingDeps, { _id }: Wallet, now: Date): Promise<void> {
  await deps.writer.change(_id, null, (wallet) => {
    for (const [id, hold] of wallet.holds()) if (hold.expiresAt <= now) expireHold(deps, wallet, _id, id)
    wallet.recomputeNextExpiry()
  })
}
