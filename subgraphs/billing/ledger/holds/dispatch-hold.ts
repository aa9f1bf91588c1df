import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { requireInForce } from '../../accounts/use-cases/rules-in-force.ts'
import { checkQuantities } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Quantities } from '../domain/money.ts'
import { type Hold, isRunHold } from '../domain/wallet.ts'
import { changeHold, withCheckpoint } from './change-hold.ts'
import { HoldEnded } from './hold-errors.ts'

/**
 * Authorizes the call of an open hold to reach an engine again, as `placeHold` does once, and raises what an expiry
 * charges. Call the engine only if this succeeds. Writes nothing if the hold already has these quantities.
 * @throws {HoldEnded} the hold has ended or expired
 * @throws {StalePrincipal} the rules have changed
 */
export async function dispatchHold(deps: BillingDeps, principal: Principal, id: string, quantities: Quantities): Promise<Hold> {
  const checkpoint = checkQuantities(quantities, 'quantities')
  return changeHold(deps, principal.organizationId, id, (hold, wallet) => {
    requireInForce(wallet, principal)
    if (isRunHold(hold))
      throw new KisError('invalid_request', `The hold \`${id}\` is a run's: its calls have holds of their own.`, { param: 'id' })
    if (hold.expiresAt <= deps.clock.now()) throw new HoldEnded(id)
    return withCheckpoint(hold, checkpoint, hold.expiresAt)
  })
}
