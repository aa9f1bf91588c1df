import { NotFound } from '../../../common/errors.ts'
import { checkHoldId } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { type Quantities, UNITS } from '../domain/money.ts'
import type { CallHold, Hold } from '../domain/wallet.ts'
import type { WalletDraft } from '../domain/wallet-draft.ts'
import { HoldEnded } from './hold-errors.ts'

/**
 * Changes an open hold and returns it. If `change` returns the hold unchanged, nothing is written.
 * @throws {HoldEnded} the hold has ended
 * @throws {NotFound} the hold was never placed
 */
export async function changeHold(
  deps: BillingDeps,
  organizationId: string,
  holdId: string,
  change: (hold: Hold, wallet: WalletDraft) => Hold,
): Promise<Hold> {
  const id = checkHoldId(holdId)
  const { value } = await deps.writer.change(organizationId, { holdId: id }, (wallet) => {
    const hold = wallet.hold(id)
    if (!hold) throw wallet.end(id) ? new HoldEnded(id) : new NotFound('hold', id, 'id')
    const changed = change(hold, wallet)
    if (changed !== hold) wallet.putHold(id, changed)
    return changed
  })
  return value
}

/**
 * Returns the hold with a higher checkpoint, until `expiresAt`. Quantities with any lower unit come from an outdated
 * call and change nothing.
 */
export function withCheckpoint(hold: CallHold, checkpoint: Quantities, expiresAt: Date): CallHold {
  if (UNITS.some((unit) => hold.checkpoint[unit] > checkpoint[unit])) return hold
  if (hold.expiresAt === expiresAt && UNITS.every((unit) => hold.checkpoint[unit] === checkpoint[unit])) return hold
  return { ...hold, checkpoint, expiresAt }
}
