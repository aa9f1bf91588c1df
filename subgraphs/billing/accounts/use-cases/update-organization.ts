import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, type ResidencyPolicy, requireScope } from '../../../common/identity/principal.ts'
import { MAX_NANO_USD, toStored } from '../../ledger/domain/money.ts'
import { checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Organization } from '../../use-cases/tables.ts'
import { putInForce } from './rules-in-force.ts'

/**
 * Changes the name, the residency policy or the low-balance threshold of the caller's organization. Absent fields stay.
 */
export async function updateOrganization(
  deps: BillingDeps,
  principal: Principal,
  input: {
    readonly name?: string | null
    readonly residencyPolicy?: ResidencyPolicy | null
    /** Nano-USD; null: no balance counts as low. */
    readonly lowBalanceThreshold?: bigint | null
  },
): Promise<Organization> {
  const { organizationId } = requireScope(principal, 'admin')
  return change(deps, organizationId, {
    ...(typeof input.name === 'string' && { name: checkName(input.name, 'name') }),
    ...(input.residencyPolicy && { residencyPolicy: input.residencyPolicy }),
    ...(input.lowBalanceThreshold !== undefined && { lowBalanceThreshold: checkThreshold(input.lowBalanceThreshold) }),
  })
}

function checkThreshold(threshold: bigint | null): number | null {
  if (threshold !== null && (threshold <= 0n || threshold > MAX_NANO_USD))
    throw new KisError('unsupported_value', 'The threshold of a low balance is above 0 and at most 9,000,000 USD.', {
      param: 'lowBalanceThreshold',
    })
  return threshold === null ? null : toStored(threshold)
}

/** Stores the change. Resolves once a changed rule is in force. */
async function change(deps: BillingDeps, id: string, fields: Partial<Organization>): Promise<Organization> {
  const organization = await deps.collections.organizations.findOneAndUpdate({ _id: id }, { $set: fields })
  if (!organization) throw new NotFound('organization', id, 'organizationId')
  if ('residencyPolicy' in fields) await putInForce(deps, id)
  return organization
}
