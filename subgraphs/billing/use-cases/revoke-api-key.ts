import type { Principal } from '../../common/principal.ts'
import type { ApiKey } from './collections.ts'
import type { BillingDeps } from './deps.ts'
import { ownKeyError, requireManageable } from './manage-api-key.ts'
import { forgetRevokedSpending } from './spend-limit.ts'

/** Ends the key for good. Repeating it gives the key as it was revoked. @throws {KisError} `in_use`: it is the caller's own. */
export async function revokeApiKey(deps: BillingDeps, principal: Principal, id: string): Promise<ApiKey> {
  const key = await requireManageable(deps, principal, id)
  if (id === principal.apiKeyId) throw ownKeyError('revoke')
  const { apiKeys } = deps.collections
  const revoked = await apiKeys.findOneAndUpdate({ _id: id, revokedAt: null }, { $set: { revokedAt: deps.clock.now() } })
  await forgetRevokedSpending(deps, key.organizationId)
  return revoked ?? (await apiKeys.findOne({ _id: id })) ?? key
}
