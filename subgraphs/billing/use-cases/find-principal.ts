import { InvalidApiKey, ServiceUnavailable } from '../../common/errors.ts'
import type { Plan, Principal } from '../../common/principal.ts'
import { digestOf, isApiKey } from '../domain/api-key.ts'
import type { ApiKey, Organization } from './collections.ts'
import type { BillingDeps } from './deps.ts'

/** Who a key is. Text that is no key costs no look into the store. @throws {InvalidApiKey} unknown, revoked or expired: one answer for all. */
export async function principalOfApiKey(deps: BillingDeps, text: string): Promise<Principal> {
  const { apiKeys, organizations } = deps.collections
  const key = isApiKey(text) ? await apiKeys.findOne({ digest: digestOf(text, deps.pepper) }) : null
  if (!key || key.revokedAt || (key.expiresAt && key.expiresAt <= deps.clock.now())) throw new InvalidApiKey()
  const organization = await organizations.findOne({ _id: key.organizationId })
  if (!organization) throw new InvalidApiKey()
  if (key.unseen) await apiKeys.findOneAndUpdate({ _id: key._id }, { $unset: { unseen: '' } })
  return principal(deps, organization, key)
}

/** The principal of accepted work, also of a key that was revoked or ran out since; null when the organization or the key is gone. */
export async function principalOfKey(deps: BillingDeps, organizationId: string, apiKeyId: string): Promise<Principal | null> {
  const { apiKeys, organizations } = deps.collections
  const [organization, key] = await Promise.all([organizations.findOne({ _id: organizationId }), apiKeys.findOne({ _id: apiKeyId })])
  return organization && key?.organizationId === organizationId ? principal(deps, organization, key) : null
}

function principal(deps: BillingDeps, organization: Organization, key: ApiKey): Principal {
  const { scopes, modelAllowlist } = key
  const plan = planOf(deps, organization)
  return {
    organizationId: organization._id,
    apiKeyId: key._id,
    scopes,
    modelAllowlist,
    residencyPolicy: organization.residencyPolicy,
    plan,
    requestsPerMinute: tighter(plan.requestsPerMinute, key.requestsPerMinute),
    tokensPerMinute: tighter(plan.tokensPerMinute, key.tokensPerMinute),
  }
}

function tighter(ofPlan: number | null, ofKey: number | null = null): number | null {
  return ofPlan === null || ofKey === null ? (ofPlan ?? ofKey) : Math.min(ofPlan, ofKey)
}

/** @throws {ServiceUnavailable} the operator took the plan out of the catalog: it comes back, or the organization gets another. */
export function planOf({ plans }: BillingDeps, organization: Organization): Plan {
  const plan = plans.find(({ code }) => code === organization.plan)
  if (!plan) throw new ServiceUnavailable(`The plan \`${organization.plan}\` of this organization`)
  return plan
}
