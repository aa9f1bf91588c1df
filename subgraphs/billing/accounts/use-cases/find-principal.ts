import { InvalidApiKey, OrganizationSuspended, ServiceUnavailable } from '../../../common/errors.ts'
import type { KeyRates, Plan, Principal } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey, Organization } from '../../use-cases/tables.ts'
import { digestKey, isApiKey } from '../domain/api-key.ts'

/** The contract says 5 minutes. */
const USE_RECORDED_EVERY_MS = 300_000

/**
 * Returns the principal of a key. Text that is not a key costs no read of the store.
 * @throws {InvalidApiKey} the key is unknown, revoked or expired, or its organization is deleted; the error does not
 * say which
 * @throws {OrganizationSuspended}
 */
export async function principalOfApiKey(deps: BillingDeps, text: string): Promise<Principal> {
  const { apiKeys, organizations } = deps.collections
  const digest = isApiKey(text) ? digestKey(text, deps.pepper()) : null
  const found = digest === null ? null : await apiKeys.findOne({ digest })
  if (!found || hasEnded(found, deps.clock)) throw new InvalidApiKey()
  const organization = await organizations.findOne({ _id: found.organizationId })
  // Read again: what is read after the revision is no older than the rules of that revision.
  const key = await apiKeys.findOne({ _id: found._id })
  const ancestors = key && (await findAncestors(deps, key))
  if (!organization || organization.deletedAt || !key || key.digest !== digest || !ancestors || hasEnded(key, deps.clock))
    throw new InvalidApiKey()
  if (isSuspended(organization)) throw new OrganizationSuspended()
  await recordUseOfText(deps, key)
  return principal(deps, organization, key, ancestors)
}

/** Whoever has the text of a key has seen it. */
async function recordUseOfText(deps: BillingDeps, key: ApiKey): Promise<void> {
  const { _id, unseen } = key
  if (!unseen) return recordUse(deps, key)
  await deps.collections.apiKeys.findOneAndUpdate({ _id }, { $set: { lastUsedAt: deps.clock.now() }, $unset: { unseen: '' } })
}

/** Writes rarely, so that a busy key does not cost a write with each of its calls. */
async function recordUse({ collections: { apiKeys }, clock }: BillingDeps, { _id, lastUsedAt }: ApiKey): Promise<void> {
  const now = clock.now()
  if (!lastUsedAt || now.getTime() - lastUsedAt.getTime() >= USE_RECORDED_EVERY_MS) {
    // A read-only store must not lock out all callers.
    await apiKeys.findOneAndUpdate({ _id }, { $set: { lastUsedAt: now } }).catch(() => undefined)
  }
}

/**
 * Returns the principal of a key as it is now, even if the key is revoked or expired, or its organization is suspended.
 * Null: the key does not exist, or belongs to another organization. `organizationId` is null for a caller with an
 * access token that names the key: the key may then be of any organization, and the call counts as a use of it.
 */
export async function principalOfKey(deps: BillingDeps, organizationId: string | null, apiKeyId: string): Promise<Principal | null> {
  const { apiKeys, organizations } = deps.collections
  const owner = organizationId ?? (await apiKeys.findOne({ _id: apiKeyId }))?.organizationId
  const organization = owner === undefined ? null : await organizations.findOne({ _id: owner })
  // The key is read after the organization: what is read after the revision is no older than the rules of that
  // revision.
  const key = await apiKeys.findOne({ _id: apiKeyId })
  if (!organization || key?.organizationId !== organization._id) return null
  const found = principal(deps, organization, key, await findAncestors(deps, key))
  if (organizationId === null && !found.isEnded && !found.isSuspended) await recordUse(deps, key)
  return found
}

/**
 * Returns whether the key, or an ancestor of it, is revoked or expired. So the one write that ends a key also ends all
 * its descendants.
 */
export async function isEnded(deps: BillingDeps, key: ApiKey): Promise<boolean> {
  return hasEnded(key, deps.clock) || (await findAncestors(deps, key)) === null
}

/** Returns the ancestors of the key; null: one of them has ended, and its descendants with it. */
export async function findAncestors({ collections, clock }: BillingDeps, { ancestors = [] }: ApiKey): Promise<readonly ApiKey[] | null> {
  if (ancestors.length === 0) return []
  const found = await collections.apiKeys.find({ _id: { $in: [...ancestors] } }, { limit: ancestors.length })
  return found.length < ancestors.length || found.some((ancestor) => hasEnded(ancestor, clock) && !ancestor.leavesDescendants)
    ? null
    : found
}

function hasEnded({ revokedAt, expiresAt }: ApiKey, clock: Clock): boolean {
  return revokedAt !== null || (expiresAt !== null && expiresAt <= clock.now())
}

/**
 * Builds the principal. Read the organization before the keys. `family`: the key's ancestors; null: one of them has
 * ended.
 */
function principal(deps: BillingDeps, organization: Organization, key: ApiKey, family: readonly ApiKey[] | null): Principal {
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
    ancestorRates: (family ?? []).filter(hasRates).map(ownRates),
    revision: organization.revision ?? 0,
    rotations: key.rotations ?? 0,
    isEnded: family === null || hasEnded(key, deps.clock) || organization.deletedAt !== undefined,
    isSuspended: isSuspended(organization),
  }
}

/** Returns whether no new work may start for the organization. */
function isSuspended({ suspendedAt, deletedAt }: Organization): boolean {
  return suspendedAt != null || deletedAt !== undefined
}

/** Returns whether the key has rates of its own, beside the plan's. */
export function hasRates({ requestsPerMinute = null, tokensPerMinute = null }: ApiKey): boolean {
  return requestsPerMinute !== null || tokensPerMinute !== null
}

function ownRates({ _id, requestsPerMinute = null, tokensPerMinute = null }: ApiKey): KeyRates {
  return { apiKeyId: _id, requestsPerMinute, tokensPerMinute }
}

function tighter(ofPlan: number | null, ofKey: number | null = null): number | null {
  return ofPlan === null || ofKey === null ? (ofPlan ?? ofKey) : Math.min(ofPlan, ofKey)
}

/**
 * Returns the organization's plan, with the organization's own limits in place of the plan's.
 * @throws {ServiceUnavailable} the operator has removed the plan from the catalog and must restore it, or assign
 * another plan
 */
export function getPlan({ plans }: BillingDeps, organization: Organization): Plan {
  const plan = plans.find(({ code }) => code === organization.plan)
  if (!plan) throw new ServiceUnavailable(`The plan \`${organization.plan}\` of this organization`)
  return { ...plan, ...organization.limits }
}
