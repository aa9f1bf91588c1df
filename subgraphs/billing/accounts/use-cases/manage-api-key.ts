import { InvalidApiKey, KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope, type Scope } from '../../../common/identity/principal.ts'
import type { Update } from '../../../common/ports/document-store.ts'
import { requireGrantable } from '../../ledger/domain/grants.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import { findAncestors, hasRates, isEnded } from './find-principal.ts'
import { rankOfKey, requireRank } from './rank-of-key.ts'
import { findSpendLimit, requireSpendable } from './spend-limit.ts'

/**
 * Returns a key of the caller's organization.
 * @throws {NotFound} the organization has no such key
 * @throws {KisError} `permission_denied`: the caller may not manage the key
 */
export async function requireManageable(deps: BillingDeps, principal: Principal, id: string): Promise<ApiKey> {
  const own = await ownKey(deps, principal)
  const key = await deps.collections.apiKeys.findOne({ _id: id })
  if (key?.organizationId !== principal.organizationId) throw new NotFound('API key', id, 'id')
  requireGrantable(principal, own, key)
  requireRank(await rankOfKey(deps, own), await rankOfKey(deps, key))
  if (id !== principal.apiKeyId) {
    await requireSpendable(deps, own, key, await findSpendLimit(deps, key.organizationId, id))
    await requireRated(deps, own, key)
  }
  return key
}

/**
 * Prevents a caller from taking over a key that may make more calls. Calls of the key `of` must count against each rate
 * that calls of the caller's key count against.
 * @throws {KisError} `permission_denied`: they do not
 */
async function requireRated(deps: BillingDeps, own: ApiKey, of: Pick<ApiKey, '_id' | 'ancestors'>): Promise<void> {
  const rated = [own, ...((await findAncestors(deps, own)) ?? [])].filter(hasRates)
  const counting = [of._id, ...(of.ancestors ?? [])]
  if (!rated.every(({ _id }) => counting.includes(_id)))
    throw new KisError('permission_denied', 'The calls of the key do not count against the rates of your own key.')
}

/**
 * Requires a key with a secret. A member's key lives as long as the member, with the scopes of the member's role.
 * @throws {KisError} `in_use`: the key is a member's
 */
export function requireSecret({ memberId }: ApiKey, whatInstead: string): void {
  if (memberId !== undefined) throw new KisError('in_use', `This is the key of the member \`${memberId}\`. ${whatInstead}`, { param: 'id' })
}

/**
 * Checks that the caller may grant these scopes without other limits: a member's key has none of the caller's limits,
 * and does not descend from the caller's key.
 * @throws {KisError} `permission_denied`: the caller's own key has limits, or lacks a scope
 */
export async function requireUnlimited(
  deps: BillingDeps,
  principal: Pick<Principal, 'scopes' | 'isRun'>,
  own: ApiKey,
  scopes: readonly Scope[],
): Promise<void> {
  const free = { _id: '', scopes, modelAllowlist: null, expiresAt: null, requestsPerMinute: null, tokensPerMinute: null }
  requireGrantable(principal, own, free)
  await requireSpendable(deps, own, free, null)
  await requireRated(deps, own, free)
}

/**
 * Returns the caller's stored key, which limits what the caller may grant.
 * @throws {InvalidApiKey} the key was revoked or has expired
 * @throws {PermissionDenied} the caller lacks the scope `admin`
 */
export async function ownKey(deps: BillingDeps, principal: Principal): Promise<ApiKey> {
  requireScope(principal, 'admin')
  const own = await deps.collections.apiKeys.findOne({ _id: principal.apiKeyId })
  if (!own || (await isEnded(deps, own))) throw new InvalidApiKey()
  requireScope({ ...principal, scopes: own.scopes }, 'admin')
  return own
}

/**
 * Changes a key that is not revoked.
 * @throws {KisError} `invalid_request`: the key is revoked, perhaps since a moment ago
 */
export async function changeLiveKey({ collections }: BillingDeps, key: ApiKey, change: Pick<Update, '$set' | '$inc'>): Promise<ApiKey> {
  const changed = await collections.apiKeys.findOneAndUpdate({ _id: key._id, revokedAt: null }, { ...change, $unset: { unseen: '' } })
  if (!changed) throw new KisError('invalid_request', `The API key \`${key._id}\` is revoked.`, { param: 'id' })
  return changed
}

/**
 * Returns the error for a key that would end itself or an ancestor, or remove its own scope `admin`. This rule ensures
 * that an organization always has a key that can create others, and cannot lock itself out by mistake.
 */
export function ownKeyError(what: string): KisError {
  return new KisError('in_use', `A key cannot ${what}: use another admin key, or rotate that one.`, { param: 'id' })
}
