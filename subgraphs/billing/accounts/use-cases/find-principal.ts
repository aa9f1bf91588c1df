import { InvalidApiKey, ServiceUnavailable } from '../../../common/errors.ts'
import type { Plan, Principal } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey, Organization } from '../../use-cases/tables.ts'
import { digestOf, isApiKey } from '../domain/api-key.ts'

/** Who a key is. Text that is no key costs no look into the store. @throws {InvalidApiKey} unknown, revoked or expired: one answer for all. */
export async function principalOfApiKey(deps: BillingDeps, text: string): Promise<Principal> {
  const { apiKeys, organizations } = deps.collections
  const digest = isApiKey(text) ? digestOf(text, deps.pepper) : null
  const found = digest === null ? null : await apiKeys.findOne({ digest })
  if (!found || hasEnded(found, deps.clock)) throw new InvalidApiKey()
  const organization = await organizations.findOne({ _id: found.organizationId })
  // Again: what is read after the revision is no older than the rules that it stands for.
  const key = await apiKeys.findOne({ digest })
  if (!organization || !key || (await isEnded(deps, key))) throw new InvalidApiKey()
  if (key.unseen) await apiKeys.findOneAndUpdate({ _id: key._id }, { $unset: { unseen: '' } })
  return principal(deps, organization, key, false)
}

/** The principal of a key as it is now, also of one that was revoked or ran out; null when the organization or the key is gone. */
export async function principalOfKey(deps: BillingDeps, organizationId: string, apiKeyId: string): Promise<Principal | null> {
  const { apiKeys, organizations } = deps.collections
  const organization = await organizations.findOne({ _id: organizationId })
  const key = await apiKeys.findOne({ _id: apiKeyId })
  return organization && key?.organizationId === organizationId ? principal(deps, organization, key, await isEnded(deps, key)) : null
}

/**
 * The key, or one that it descends from, is revoked or has run out. So a key ends together with all that were made with it, and with all that these
 * made, in the one write that ends it.
 */
export async function isEnded({ collections, clock }: BillingDeps, key: ApiKey): Promise<boolean> {
  const { ancestors = [] } = key
  if (hasEnded(key, clock)) return true
  if (ancestors.length === 0) return false
  const found = await collections.apiKeys.find({ _id: { $in: [...ancestors] } }, { limit: ancestors.length })
  return found.length < ancestors.length || found.some((ancestor) => hasEnded(ancestor, clock))
}

function hasEnded({ revokedAt, expiresAt }: ApiKey, clock: Clock): boolean {
  return revokedAt !== null || (expiresAt !== null && expiresAt <= clock.now())
}

/** The organization was read before the key. */
function principal(deps: BillingDeps, organization: Organization, key: ApiKey, isEnded: boolean): Principal {
  const { scopes, modelAllowlist, ancestors = [] } = key
  const plan = planOf(deps, organization)
  return {
    organizationId: organization._id,
    apiKeyId: key._id,
    ancestors,
    scopes,
    modelAllowlist,
    residencyPolicy: organization.residencyPolicy,
    plan,
    requestsPerMinute: tighter(plan.requestsPerMinute, key.requestsPerMinute),
    tokensPerMinute: tighter(plan.tokensPerMinute, key.tokensPerMinute),
    revision: organization.revision ?? 0,
    rotations: key.rotations ?? 0,
    isEnded,
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
