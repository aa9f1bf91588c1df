import { NotFound, OrganizationSuspended, StalePrincipal } from '../../../common/errors.ts'
import { CONFIRM_MS, type Principal } from '../../../common/identity/principal.ts'
import { isRunHold } from '../../ledger/domain/wallet.ts'
import type { WalletDraft } from '../../ledger/domain/wallet-draft.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'

/**
 * Puts a stored change of the organization's rules into force: from then on no hold is placed or dispatched under older
 * rules. Resolves once calls that were authorized before have reached their engines. `more` is changed in the same
 * write of the wallet.
 */
export async function putInForce(
  { collections, writer, clock }: BillingDeps,
  organizationId: string,
  more: (wallet: WalletDraft) => void = () => undefined,
): Promise<void> {
  // Principals are read after this revision, and so reflect its rules.
  const organization = await collections.organizations.findOneAndUpdate({ _id: organizationId }, { $inc: { revision: 1 } })
  if (!organization) throw new NotFound('organization', organizationId)
  const { wallet } = await writer.change(organizationId, null, (draft) => {
    more(draft)
    draft.enforce(organization.revision ?? 0)
  })
  const isAnyInFlight = Object.values(wallet.holds).some((hold) => !isRunHold(hold))
  if (isAnyInFlight) await clock.sleep(CONFIRM_MS)
}

/**
 * @throws {StalePrincipal} the rules have changed since the principal was read
 * @throws {OrganizationSuspended} by the rules in force, no new work may start
 */
export function requireInForce(wallet: WalletDraft, { revision, isSuspended }: Principal): void {
  if (revision < wallet.rules) throw new StalePrincipal()
  if (isSuspended) throw new OrganizationSuspended()
}
