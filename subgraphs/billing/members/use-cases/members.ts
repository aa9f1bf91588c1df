import { listById } from '../../../common/documents/lists.ts'
import { hasScope, type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection, PageArguments } from '../../../common/link/connection.ts'
import { MAX_API_KEYS } from '../../accounts/domain/api-key.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { ApiKey, Member, Organization } from '../../use-cases/tables.ts'

const MEMBER_ID = /^mem_[0-9a-f]{32}$/
/** The contract says so of both lists. */
const MAX_CREATED_KEYS = 100
const MAX_MEMBERSHIPS = 100

/** The members of an organization that the caller may read, newest first. */
export async function listMembers(
  { collections }: BillingDeps,
  principal: Principal,
  organizationId: string,
  page: PageArguments,
): Promise<Connection<Member>> {
  requireScope(principal, 'admin')
  return listById(collections.members, { organizationId, removedAt: null }, page, MEMBER_ID)
}

/** A member of the caller's organization, or for an operator of any: the caller, or any that an admin may read. */
export async function findMember({ collections }: BillingDeps, principal: Principal, id: string): Promise<Member | null> {
  const member = await collections.members.findOne({ _id: id })
  if (!member || !mayRead(principal, member.organizationId)) return null
  return isSelf(principal, member) || hasScope(principal, 'admin') ? member : null
}

function isSelf(principal: Principal, { apiKeyId }: Member): boolean {
  return apiKeyId === principal.apiKeyId
}

/** The working keys that a member created, or that descend from these, newest first. */
export async function listCreatedKeys({ collections }: BillingDeps, principal: Principal, member: Member): Promise<readonly ApiKey[]> {
  requireScope(principal, 'admin')
  const { organizationId } = member
  // One for each time that the person became a member.
  const own = await collections.apiKeys.find({ organizationId, memberId: member._id }, { limit: MAX_API_KEYS })
  const ids = own.map(({ _id }) => _id)
  const live = await collections.apiKeys.find({ organizationId, revokedAt: null }, { limit: MAX_API_KEYS })
  return live
    .filter(({ ancestors = [] }) => ancestors.some((id) => ids.includes(id)))
    .sort((a, b) => (a._id < b._id ? 1 : -1))
    .slice(0, MAX_CREATED_KEYS)
}

interface Membership {
  readonly organizationId: string
  readonly organizationName: string
  readonly role: Member['role']
  readonly lastSeenAt: Date
}

/** The organizations of a person, the last one used first. Only the person sees them. */
export async function listMemberships(deps: BillingDeps, principal: Principal, member: Member): Promise<readonly Membership[]> {
  if (!isSelf(principal, member)) return []
  const found = await membershipsOf(deps, member)
  return found.map(({ organization, member: { role, lastSeenAt } }) => ({
    organizationId: organization._id,
    organizationName: organization.name,
    role,
    lastSeenAt,
  }))
}

/** Where the person is a member, in organizations that are not deleted, the one of the last sign-in first. */
export async function membershipsOf(
  { collections }: BillingDeps,
  { issuer, subject }: Pick<Member, 'issuer' | 'subject'>,
): Promise<readonly { readonly member: Member; readonly organization: Organization }[]> {
  const members = await collections.members.find({ issuer, subject, removedAt: null }, { sort: { lastSeenAt: -1 }, limit: MAX_MEMBERSHIPS })
  if (members.length === 0) return []
  const ids = members.map(({ organizationId }) => organizationId)
  const organizations = await collections.organizations.find({ _id: { $in: ids } }, { limit: ids.length })
  return members.flatMap((member) => {
    const organization = organizations.find(({ _id, deletedAt }) => _id === member.organizationId && !deletedAt)
    return organization ? [{ member, organization }] : []
  })
}
