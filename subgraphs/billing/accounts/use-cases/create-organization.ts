import { KisError } from '../../../common/errors.ts'
import { type Principal, type ResidencyPolicy, requireScope } from '../../../common/identity/principal.ts'
import { emptyWallet } from '../../ledger/domain/wallet.ts'
import { checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Organization } from '../../use-cases/tables.ts'
import { type ApiKeyWithSecret, newApiKey } from './new-api-key.ts'

interface CreateOrganizationInput {
  readonly name: string
  readonly plan?: string | null
  readonly residencyPolicy?: ResidencyPolicy | null
}

/** The plan of an organization without another one. */
export const DEFAULT_PLAN = 'self-hosted'

/**
 * Creates an organization with an empty wallet and its first admin key. The organization is written last: without it
 * the wallet and the key cannot be reached, so a crash leaves nothing half-created.
 */
export async function createOrganization(
  deps: BillingDeps,
  principal: Principal,
  input: CreateOrganizationInput,
): Promise<ApiKeyWithSecret & { readonly organization: Organization }> {
  requireScope(principal, 'operator')
  const { wallets, apiKeys, organizations } = deps.collections
  const organization: Organization = {
    _id: deps.ids('org'),
    name: checkName(input.name, 'name'),
    residencyPolicy: input.residencyPolicy ?? 'unrestricted',
    plan: checkPlan(deps, input.plan ?? DEFAULT_PLAN),
    createdAt: deps.clock.now(),
  }
  const first = newApiKey(deps, {
    organizationId: organization._id,
    name: 'First admin key',
    scopes: ['admin'],
    modelAllowlist: null,
    expiresAt: null,
  })
  await wallets.insertOne(emptyWallet(organization._id))
  await apiKeys.insertOne(first.apiKey)
  await organizations.insertOne(organization)
  return { organization, ...first }
}

/**
 * Returns the plan's code.
 * @throws {KisError} the catalog has no such plan
 */
export function checkPlan({ plans }: BillingDeps, code: string): string {
  if (plans.some((plan) => plan.code === code)) return code
  const known = plans.map((plan) => `\`${plan.code}\``).join(', ')
  throw new KisError('unsupported_value', `There is no plan \`${code}\`. The plans are ${known}.`, { param: 'plan' })
}
