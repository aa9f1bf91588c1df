import type { Principal } from '../../../common/identity/principal.ts'
import { checkQuantities } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Quantities } from '../domain/money.ts'
import type { UsageSource } from '../domain/usage.ts'
import { endHold, type HoldOutcome } from './end-hold.ts'

/**
 * Charges what was used, at most the reserved amount. Idempotent: the hold's first outcome stands, even if it was an
 * expiry.
 */
export async function settleHold(
  deps: BillingDeps,
  { organizationId }: Principal,
  id: string,
  quantities: Quantities,
  source: UsageSource,
): Promise<HoldOutcome> {
  const used = { quantities: checkQuantities(quantities, 'quantities'), source }
  return endHold(deps, organizationId, id, { kind: 'settle', used })
}
