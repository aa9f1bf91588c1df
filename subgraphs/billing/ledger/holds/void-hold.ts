import type { Principal } from '../../../common/identity/principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { endHold, type HoldOutcome } from './end-hold.ts'

/** Releases the hold and charges nothing. Idempotent: the hold's first outcome stands, even if it was settled. */
export async function voidHold(deps: BillingDeps, { organizationId }: Principal, id: string): Promise<HoldOutcome> {
  return endHold(deps, organizationId, id, { kind: 'void', used: null })
}
