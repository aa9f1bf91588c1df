import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { checkQuantities, checkTtl } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { type Quantities, UNITS } from '../domain/money.ts'
import { type Hold, isRunHold } from '../domain/wallet.ts'
import { changeHold } from './change-hold.ts'

/**
 * Puts the hold's expiry off, and raises what an expiry charges; of a run's hold, to which nothing is charged, only the first. Quantities that are lower in any bucket come from a call that was
 * overtaken, and change nothing. @throws {HoldEnded} @throws {KisError} `invalid_request`: the hold was not dispatched.
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
    if (isRunHold(hold)) return { ...hold, expiresAt: later }
    if (hold.state === 'placed') throw new KisError('invalid_request', `The hold \`${id}\` was not dispatched.`, { param: 'id' })
    if (UNITS.some((unit) => hold.checkpoint[unit] > checkpoint[unit])) return hold
    return { ...hold, checkpoint, expiresAt: later }
  })
}
