import { KisError, NotFound } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { MAX_API_KEYS } from '../../accounts/domain/api-key.ts'
import { type MemberRole, rankOfRole, SCOPES_OF } from '../../accounts/domain/member-role.ts'
import { ownKey, requireUnlimited } from '../../accounts/use-cases/manage-api-key.ts'
import { rankOfKey, requireRank } from '../../accounts/use-cases/rank-of-key.ts'
import { markDescendants, purgeSessions } from '../../accounts/use-cases/revoke-api-key.ts'
import { putInForce } from '../../accounts/use-cases/rules-in-force.ts'
import { purgeRevokedSpending } from '../../accounts/use-cases/spend-limit.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { ApiKey, Member } from '../../use-cases/tables.ts'
import { revokeInvitationsOf } from './invitations.ts'
import { dropOwner, listAsOwner } from './owners.ts'

/** Attempts while other callers change the same member. */
const MAX_TRIES = 10

/**
 * Assigns another role to a member. Resolves once it is in force. A repetition finishes what a crash has interrupted.
 * @throws {NotFound} the caller's organization has no such member
 * @throws {KisError} `permission_denied`: the member, or the role, has a higher rank than the caller; `in_use`: the
 * last owner
 */
export async function updateMember(
  deps: BillingDeps,
  principal: Principal,
  { id, role }: { readonly id: string; readonly role: MemberRole },
): Promise<Member> {
  const changed = await changeAsRead(deps, principal, id, async (member) => {
    const own = await ownKey(deps, principal)
    if (member.removedAt) throw new KisError('invalid_request', 'The member was removed. Invite them again.', { param: 'id' })
    requireRank(await rankOfKey(deps, own), rankOfRole(role))
    if (role !== member.role) await requireUnlimited(deps, principal, own, SCOPES_OF[role])
    if (role !== 'owner') await dropOwner(deps, member.organizationId, id)
    return { role }
  })
  await alignKey(deps, changed)
  await listAsOwner(deps, changed)
  await putInForce(deps, changed.organizationId)
  return changed
}

/**
 * Changes a member whom the caller may manage. If another caller changes the role meanwhile, the permission is checked
 * again, so that nobody changes an owner whom they took for a lower role.
 */
async function changeAsRead(
  deps: BillingDeps,
  principal: Principal,
  id: string,
  judge: (member: Member) => Promise<{ readonly role: MemberRole } | { readonly removedAt: Date }>,
): Promise<Member> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const member = await requireManageable(deps, principal, id)
    const { role, apiKeyId, removedAt } = member
    const $set = await judge(member)
    const changed = await deps.collections.members.findOneAndUpdate({ _id: id, role, apiKeyId, removedAt }, { $set })
    if (changed) return changed
    await listAsOwner(deps, member)
  }
  throw busy()
}

const busy = () => new KisError('service_unavailable', 'Too many requests change the member at once.', { retryAfterMs: 1_000 })

/**
 * Sets the scopes of a member's key to those of the role. Of several concurrent changes, the last role wins: each reads
 * the role again after it has written the scopes.
 */
export async function alignKey({ collections }: BillingDeps, { _id, apiKeyId }: Pick<Member, '_id' | 'apiKeyId'>): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const before = await collections.members.findOne({ _id })
    if (!before) return
    await collections.apiKeys.findOneAndUpdate({ _id: apiKeyId }, { $set: { scopes: SCOPES_OF[before.role] } })
    const after = await collections.members.findOne({ _id })
    if (after?.role === before.role) return
  }
  throw busy()
}

/**
 * Removes a member and ends their key. Resolves once the removal is in force. Idempotent: a repetition finishes what a
 * crash has interrupted.
 * @throws {NotFound} the caller's organization has no such member
 * @throws {KisError} `permission_denied`: the member has a higher rank than the caller; `in_use`: the last owner
 */
export async function removeMember(
  deps: BillingDeps,
  principal: Principal,
  { id, revokeCreatedKeys }: { readonly id: string; readonly revokeCreatedKeys: boolean },
): Promise<Member> {
  const removed = await changeAsRead(deps, principal, id, async ({ organizationId, removedAt }) => {
    await dropOwner(deps, organizationId, id)
    return { removedAt: removedAt ?? deps.clock.now() }
  })
  const { apiKeyId, organizationId } = removed
  if (removed.email !== null) await revokeInvitationsOf(deps, organizationId, removed.email)
  await endMemberKey(deps, apiKeyId)
  const own = revokeCreatedKeys ? await endDescendants(deps, organizationId, id) : []
  await listAsOwner(deps, removed)
  await putInForce(deps, organizationId)
  for (const key of own) await markDescendants(deps, key)
  await purgeSessions(deps, apiKeyId)
  await purgeRevokedSpending(deps, organizationId)
  return removed
}

/** Revokes only the key of a member. Its descendants stay. */
export async function endMemberKey({ collections, clock }: BillingDeps, _id: string): Promise<void> {
  const ended = { revokedAt: clock.now(), leavesDescendants: true }
  await collections.apiKeys.findOneAndUpdate({ _id, revokedAt: null }, { $set: ended })
}

/**
 * Ends the descendants of a member's keys: one key for each time that the person became a member. Returns these keys.
 */
async function endDescendants({ collections }: BillingDeps, organizationId: string, memberId: string): Promise<readonly ApiKey[]> {
  const own = await collections.apiKeys.find({ organizationId, memberId }, { limit: MAX_API_KEYS })
  for (const { _id } of own) await collections.apiKeys.findOneAndUpdate({ _id }, { $unset: { leavesDescendants: '' } })
  return own
}

async function requireManageable(deps: BillingDeps, principal: Principal, id: string): Promise<Member> {
  const own = await ownKey(deps, principal)
  const member = await deps.collections.members.findOne({ _id: id })
  if (!member || !mayRead(principal, member.organizationId)) throw new NotFound('member', id, 'id')
  requireRank(await rankOfKey(deps, own), rankOfRole(member.role))
  return member
}
