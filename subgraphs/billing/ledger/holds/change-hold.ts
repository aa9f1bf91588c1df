import { NotFound } from '../../../common/errors.ts'
import { checkHoldId } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { endEntryId } from '../domain/ids.ts'
import type { Hold } from '../domain/wallet.ts'
import type { WalletDraft } from '../domain/wallet-draft.ts'
import { HoldEnded } from './hold-errors.ts'

/**
 * Changes an open hold and gives it. If `change` returns the hold unchanged, nothing is written.
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
  const end = endEntryId(organizationId, id)
  const { value } = await deps.writer.change(organizationId, end, (wallet) => {
    const hold = wallet.hold(id)
    if (!hold) throw wallet.entry(end) ? new HoldEnded(id) : new NotFound('hold', id, 'id')
    const changed = change(hold, wallet)
    if (changed !== hold) wallet.putHold(id, changed)
    return changed
  })
  return value
}
