import type { Principal } from '../../../common/identity/principal.ts'
import { checkQuantities, checkTtl } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Quantities } from '../domain/money.ts'
import { type Hold, isRunHold } from '../domain/wallet.ts'
import { changeHold, withCheckpoint } from './change-hold.ts'

/**
 * Extends the hold's expiry, and raises what an expiry charges. A run's hold is never charged, so it is only extended.
 * Quantities with any lower unit come from an outdated call and change nothing.
 * @throws {HoldEnded} the hold has ended
 * @throws {NotFound} the hold was never placed
 */
export async function checkpointHold(
  deps: BillingDeps,
  { organizationId }: Principal,
  id: string,
  quantities: Quantities,
  ttlSeconds: number,
): Promise<Hold> {
  const checkpoint = checkQuantities(quantities, 'quantities')
  const expiresAt = new Date(deps.clock.now().getTime() + checkTtl(ttlSeconds) * 1_000)
  return changeHold(deps, organizationId, id, (hold) => {
    const later = hold.expiresAt > expiresAt ? hold.expiresAt : expiresAt
    return isRunHold(hold) ? { ...hold, expiresAt: later } : withCheckpoint(hold, checkpoint, later)
  })
}
