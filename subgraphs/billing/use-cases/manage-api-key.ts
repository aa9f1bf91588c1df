import { KisError, NotFound } from '../../common/errors.ts'
import { type Principal, requireScope } from '../../common/principal.ts'
import { requireGrantable } from '../domain/grants.ts'
import type { ApiKey } from './collections.ts'
import type { BillingDeps } from './deps.ts'
import { requireSpendable, spendLimitOf } from './spend-limit.ts'

/** The key of the caller's organization, if the caller may manage it. @throws {NotFound} @throws {PermissionDenied} */
export async function requireManageable(deps: BillingDeps, principal: Principal, id: string): Promise<ApiKey> {
  requireScope(principal, 'admin')
  const key = await deps.collections.apiKeys.findOne({ _id: id })
  if (key?.organizationId !== principal.organizationId) throw new NotFound('API key', id, 'id')
  requireGrantable(principal, key)
  if (id !== principal.apiKeyId) await requireSpendable(deps, principal, await spendLimitOf(deps, key.organizationId, id))
  return key
}

/** Changes a key that is not revoked. @throws {KisError} `invalid_request`: it is, or was a moment ago. */
export async function changeLiveKey({ collections }: BillingDeps, key: ApiKey, change: Partial<ApiKey>): Promise<ApiKey> {
  const changed = await collections.apiKeys.findOneAndUpdate({ _id: key._id, revokedAt: null }, { $set: change, $unset: { unseen: '' } })
  if (!changed) throw new KisError('invalid_request', `The API key \`${key._id}\` is revoked.`, { param: 'id' })
  return changed
}

/**
 * A key cannot end itself or give its own scope `admin` away. Whoever ends a key keeps one that can make others, so an organization is
 * never locked out by mistake.
 */
export function ownKeyError(what: string): KisError {
  return new KisError('in_use', `A key cannot ${what} itself: use another admin key, or rotate this one.`, { param: 'id' })
}
