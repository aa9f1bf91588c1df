import { KisError } from '../../../common/errors.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import { type Rank, rankOfRole } from '../domain/member-role.ts'

/**
 * Returns the rank of a key among those who manage members and keys. A member's key has the rank of the member. A key
 * that a member created, or that descends from one, has at most the rank of an admin, even if an owner created it. The
 * other admin keys are the organization's own, and have the rank of an owner.
 */
export async function rankOfKey({ collections }: BillingDeps, key: ApiKey): Promise<Rank> {
  const { memberId, ancestors = [] } = key
  if (memberId !== undefined) {
    const member = await collections.members.findOne({ _id: memberId })
    return member && !member.removedAt ? rankOfRole(member.role) : 0
  }
  if (!key.scopes.some((scope) => scope === 'admin' || scope === 'operator')) return 0
  if (ancestors.length === 0) return 2
  const found = await collections.apiKeys.find({ _id: { $in: [...ancestors] } }, { limit: ancestors.length })
  return found.some((ancestor) => ancestor.memberId !== undefined) ? 1 : 2
}

/**
 * Prevents a caller from taking over, changing or creating a key or member of a higher rank.
 * @throws {KisError} `permission_denied`: the rank is higher
 */
export function requireRank(own: Rank, of: Rank): void {
  if (own < of) throw new KisError('permission_denied', 'Only an owner may change owners and keys with the rights of an owner.')
}
