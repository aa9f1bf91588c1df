import type { Principal } from '../../../common/identity/principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { endHold, type HoldOutcome } from './end-hold.ts'

/** Frees the hold and charges nothing. Repeatable: the first outcome of the hold stands, also when it was settled. */
export async function voidHold(deps: BillingDeps, { organizationId }: Principal, id: string): Promise<HoldOutcome> {
  return endHold(deps, organizationId, id, { kind: 'void', used: null })
}
