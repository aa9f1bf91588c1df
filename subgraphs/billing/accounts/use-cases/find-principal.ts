import { InvalidApiKey, ServiceUnavailable } from '../../../common/errors.ts'
import type { Plan, Principal } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey, Organization } from '../../use-cases/tables.ts'
import { digestKey, isApiKey } from '../domain/api-key.ts'

/**
 * Gives the principal of a key. Text that is not a key costs no read of the store.
 * @throws {InvalidApiKey} the key is unknown, revoked or expired; the error does not say which
 */
export async function principalOfApiKey(deps: BillingDeps, text: string): Promise<Principal> {
  const { apiKeys, organizations } = deps.collections
  const digest = isApiKey(text) ? digestKey(text, deps.pepper) : null
  const found = digest === null ? null : await apiKeys.findOne({ digest })
  if (!found || hasEnded(found, deps.clock)) throw new InvalidApiKey()
  const organization = await organizations.findOne({ _id: found.organizationId })
  // Read again: what is read after the revision is no older than the rules of that revision.
  const key = await apiKeys.findOne({ digest })
  if (!organization || !key || (await isEnded(deps, key))) throw new InvalidApiKey()
  if (key.unseen) await apiKeys.findOneAndUpdate({ _id: key._id }, { $unset: { unseen: '' } })
  return principal(deps, organization, key, false)
}

/**
 * Gives the principal of a key as it is now, even if it is revoked or expired; null when the organization or the key
 * does not exist.
 */
export async function principalOfKey(deps: BillingDeps, organizationId: string, apiKeyId: string): Promise<Principal | null> {
  const { apiKeys, organizations } = deps.collections
  const organization = await organizations.findOne({ _id: organizationId })
  const key = await apiKeys.findOne({ _id: apiKeyId })
  return organization && key?.organizationId === organizationId ? principal(deps, organization, key, await isEnded(deps, key)) : null
}

/**
 * Whether the key, or an ancestor of it, is revoked or expired. So the one write that ends a key also ends all its
 * descendants.
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

/** The organization must be read before the key. */
function principal(deps: BillingDeps, organization: Organization, key: ApiKey, isEnded: boolean): Principal {
  const { scopes, modelAllowlist, ancestors = [] } = key
  const plan = getPlan(deps, organization)
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

/**
 * @throws {ServiceUnavailable} the operator has removed the plan from the catalog; put it back, or assign the
 * organization another
 */
export function getPlan({ plans }: BillingDeps, organization: Organization): Plan {
  const plan = plans.find(({ code }) => code === organization.plan)
  if (!plan) throw new ServiceUnavailable(`The plan \`${organization.plan}\` of this organization`)
  return plan
}
