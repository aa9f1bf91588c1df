import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/accounts.ts'
import { PAGE_INFO, readId } from '../http/lists.ts'
import { deleteRoute, listRoute, readRoute } from '../http/resource-routes.ts'
import { created, ok, type Route, route } from '../http/route.ts'
import { lowerCase, toEnum, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

export const MEMBER = 'id role email name apiKey { id } lastSeenAt removedAt createdAt'
const INVITATION = 'id email role invitedBy { id } expiresAt acceptedAt revokedAt createdAt'

const LIST_MEMBERS = gatewayOperation(`query Members($first: Int!, $after: String) {
  organization { members(first: $first, after: $after) { edges { node { ${MEMBER} } } ${PAGE_INFO} } } }`)
const GET_MEMBER = gatewayOperation(`query Member($id: ID!) { member(id: $id) { ${MEMBER} } }`)
const UPDATE_MEMBER = gatewayOperation(
  `mutation UpdateMember($input: UpdateMemberInput!) { updateMember(input: $input) { member { ${MEMBER} createdApiKeys { id } } } }`,
)
const REMOVE_MEMBER = gatewayOperation(
  'mutation RemoveMember($input: RemoveMemberInput!) { removeMember(input: $input) { member { id createdApiKeys { id } } } }',
)
const LIST_INVITATIONS = gatewayOperation(`query Invitations($first: Int!, $after: String) {
  organization { invitations(first: $first, after: $after) { edges { node { ${INVITATION} } } ${PAGE_INFO} } } }`)
const INVITE = gatewayOperation(
  `mutation InviteMember($input: InviteMemberInput!) { inviteMember(input: $input) { token link invitation { ${INVITATION} } } }`,
)
const REVOKE_INVITATION = gatewayOperation('mutation RevokeInvitation($id: ID!) { revokeInvitation(id: $id) { invitation { id } } }')

export function toMember({
  id,
  role,
  email,
  name,
  apiKey,
  lastSeenAt,
  removedAt,
  createdAt,
}: Selected<'Member', typeof MEMBER>): operations.Member {
  return {
    id,
    object: 'member',
    created_at: unixSeconds(createdAt),
    role: lowerCase(role),
    email,
    name,
    key_id: apiKey?.id ?? null,
    last_seen_at: unixSeconds(lastSeenAt),
    removed_at: unixSecondsOrNull(removedAt),
  }
}

function toInvitation(data: Selected<'Invitation', typeof INVITATION>): operations.Invitation {
  return {
    id: data.id,
    object: 'invitation',
    created_at: unixSeconds(data.createdAt),
    email: data.email,
    role: lowerCase(data.role),
    invited_by_key_id: data.invitedBy?.id ?? null,
    expires_at: unixSeconds(data.expiresAt),
    accepted_at: unixSecondsOrNull(data.acceptedAt),
    revoked_at: unixSecondsOrNull(data.revokedAt),
  }
}

const INVITE_NAMES = { organizationId: 'organization_id' }

export const memberRoutes: readonly Route[] = [
  listRoute(operations.listMembers, LIST_MEMBERS, (data) => data.organization.members, toMember),
  readRoute(operations.getMember, GET_MEMBER, 'member', ({ member }) => member && toMember(member)),
  route({
    operation: operations.updateMember,
    async handle({ execute, params, body }) {
      const data = await execute(UPDATE_MEMBER, { input: { id: params.id, role: toEnum(String(body.role)) } })
      const { member } = data.updateMember
      return ok({ ...toMember(member), created_key_ids: member.createdApiKeys.map(readId) })
    },
  }),
  route({
    operation: operations.removeMember,
    async handle({ execute, params, query }) {
      const data = await execute(REMOVE_MEMBER, { input: { id: params.id, revokeCreatedKeys: query.revoke_created_keys ?? false } })
      const { id, createdApiKeys } = data.removeMember.member
      return ok({ id, object: 'member', deleted: true, created_key_ids: createdApiKeys.map(readId) })
    },
  }),
  listRoute(operations.listInvitations, LIST_INVITATIONS, (data) => data.organization.invitations, toInvitation),
  route({
    operation: operations.createInvitation,
    async handle({ execute, body: { organization_id: organizationId, email, role } }) {
      const input = { organizationId, email, role: toEnum(String(role)) }
      const { inviteMember } = await execute(INVITE, { input }, INVITE_NAMES)
      return created({ ...toInvitation(inviteMember.invitation), token: inviteMember.token, link: inviteMember.link })
    },
  }),
  deleteRoute(operations.revokeInvitation, REVOKE_INVITATION, 'invitation', (data) => data.revokeInvitation.invitation.id),
]
