import { byTime } from '../../domain/by-time.ts'
import { checkExternalId } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { expireHold } from './end-hold.ts'

/**
 * Ends the holds of a dead process, for every organization, as if they had expired. Idempotent. Gives how many it has
 * ended.
 * @throws {Error} the first failure, after all organizations were tried; some holds may still be open
 */
export async function endHoldsOf(deps: BillingDeps, holder: string): Promise<number> {
  checkExternalId(holder, 'holder')
  let ended = 0
  const failures: unknown[] = []
  for await (const { _id } of byTime(deps.collections.wallets, 'nextExpiryAt', null)) {
    await endIn(deps, _id, holder).then(
      (count) => {
        ended += count
      },
      (error) => failures.push(error),
    )
  }
  if (failures.length > 0) throw failures[0]
  return ended
}

async function endIn(deps: BillingDeps, organizationId: string, holder: string): Promise<number> {
  const { value } = await deps.writer.change(organizationId, null, (wallet) => {
    const left = wallet.holds().filter(([, hold]) => hold.holder === holder)
    for (const [id] of left) expireHold(deps, wallet, organizationId, id)
    if (left.length > 0) wallet.recomputeNextExpiry()
    return left.length
  })
  return value
}
