import type { Principal } from '../../../common/identity/principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import { MAX_API_KEYS } from '../domain/api-key.ts'
import { ownKey, ownKeyError, requireManageable, requireSecret } from './manage-api-key.ts'
import { putInForce } from './rules-in-force.ts'
import { purgeRevokedSpending } from './spend-limit.ts'

/**
 * Revokes the key for good, together with its descendants. Idempotent.
 * @throws {KisError} `in_use`: it is the caller's own key or an ancestor of it
 */
export async function revokeApiKey(deps: BillingDeps, principal: Principal, id: string): Promise<ApiKey> {
  const key = await requireManageable(deps, principal, id)
  requireSecret(key, 'Remove the member to end it.')
  const own = await ownKey(deps, principal)
  if (id === own._id || own.ancestors?.includes(id)) throw ownKeyError('revoke itself or a key from which it descends')
  const { apiKeys } = deps.collections
  const revoked = await apiKeys.findOneAndUpdate({ _id: id, revokedAt: null }, { $set: { revokedAt: deps.clock.now() } })
  await putInForce(deps, key.organizationId)
  const ended = revoked ?? (await apiKeys.findOne({ _id: id })) ?? key
  await markDescendants(deps, ended)
  await purgeSessions(deps, id)
  await purgeRevokedSpending(deps, key.organizationId)
  return ended
}

/**
 * Descendants have already ended, as every check of them shows. This marks them in lists, and they no longer count as
 * keys. If it stops half-way, a repeated revocation goes on.
 */
export async function markDescendants({ collections }: BillingDeps, { _id, organizationId, revokedAt }: ApiKey): Promise<void> {
  const live = await collections.apiKeys.find({ organizationId, revokedAt: null }, { limit: MAX_API_KEYS })
  for (const key of live)
    if (key.ancestors?.includes(_id)) {
      await collections.apiKeys.findOneAndUpdate({ _id: key._id, revokedAt: null }, { $set: { revokedAt } })
      await purgeSessions({ collections }, key._id)
    }
}

/** The sessions of a key that ended, or has a new secret, have ended, as every check of them shows. This takes them off lists. */
export async function purgeSessions({ collections }: Pick<BillingDeps, 'collections'>, apiKeyId: string): Promise<void> {
  while ((await collections.sessions.deleteMany({ apiKeyId })) > 0);
}
