import type { Principal } from '../../../common/identity/principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import { MAX_API_KEYS } from './create-api-key.ts'
import { ownKey, ownKeyError, requireManageable } from './manage-api-key.ts'
import { putInForce } from './rules-in-force.ts'
import { forgetRevokedSpending } from './spend-limit.ts'

/**
 * Ends the key for good, with all that descend from it. Repeating it gives the key as it was revoked. @throws {KisError} `in_use`: it is the
 * caller's own, or one from which that descends.
 */
export async function revokeApiKey(deps: BillingDeps, principal: Principal, id: string): Promise<ApiKey> {
  const key = await requireManageable(deps, principal, id)
  const own = await ownKey(deps, principal)
  if (id === own._id || own.ancestors?.includes(id)) throw ownKeyError('revoke itself or a key from which it descends')
  const { apiKeys } = deps.collections
  const revoked = await apiKeys.findOneAndUpdate({ _id: id, revokedAt: null }, { $set: { revokedAt: deps.clock.now() } })
  await putInForce(deps, key.organizationId)
  const ended = revoked ?? (await apiKeys.findOne({ _id: id })) ?? key
  await markDescendants(deps, ended)
  await forgetRevokedSpending(deps, key.organizationId)
  return ended
}

/** They have ended already, as every look at them tells: lists show it too, and they take no room. Where it stops half-way, a repeat goes on. */
async function markDescendants({ collections }: BillingDeps, { _id, organizationId, revokedAt }: ApiKey): Promise<void> {
  const live = await collections.apiKeys.find({ organizationId, revokedAt: null }, { limit: MAX_API_KEYS })
  for (const key of live)
    if (key.ancestors?.includes(_id)) await collections.apiKeys.findOneAndUpdate({ _id: key._id, revokedAt: null }, { $set: { revokedAt } })
}
