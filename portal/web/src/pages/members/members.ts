import { graphql, type ResultOf } from '../../data/graphql.ts'

export const MEMBERS = graphql(`
  query Members($first: Int, $after: String) {
    organization {
      id
      members(first: $first, after: $after) {
        pageInfo { hasNextPage endCursor }
        edges { node { id name email role lastSeenAt createdAt removedAt apiKey { id } } }
      }
    }
  }
`)

export type Member = NonNullable<ResultOf<typeof MEMBERS>['organization']>['members']['edges'][number]['node']
export type Role = Member['role']
export const ROLES = ['OWNER', 'ADMIN', 'EDITOR', 'VIEWER', 'BILLING'] as const satisfies readonly Role[]

export const INVITATIONS = graphql(`
  query Invitations($first: Int, $after: String) {
    organization {
      id
      invitations(first: $first, after: $after) {
        pageInfo { hasNextPage endCursor }
        edges { node { id email role expiresAt createdAt invitedBy { id name } } }
      }
    }
  }
`)

export type Invitation = NonNullable<ResultOf<typeof INVITATIONS>['organization']>['invitations']['edges'][number]['node']

export const VIEWER_ROLE = graphql(`
  query ViewerRole {
    viewer { id member { id role } }
  }
`)

export const CREATED_KEYS = graphql(`
  query KeysOfMember($id: ID!) {
    member(id: $id) { id createdApiKeys { id name } }
  }
`)

export const INVITE = graphql(`
  mutation Invite($input: InviteMemberInput!) {
    inviteMember(input: $input) { invitation { id email } token link }
  }
`)

export const REVOKE_INVITATION = graphql(`
  mutation RevokeInvitation($id: ID!) {
    revokeInvitation(id: $id) { invitation { id revokedAt } }
  }
`)

export const CHANGE_ROLE = graphql(`
  mutation ChangeRole($input: UpdateMemberInput!) {
    updateMember(input: $input) {
      member { id role apiKey { id scopes } createdApiKeys { id name scopes } }
    }
  }
`)

export const REVOKE_KEY = graphql(`
  mutation RevokeCreatedKey($id: ID!) {
    revokeApiKey(id: $id) { apiKey { id revokedAt } }
  }
`)

export const REMOVE = graphql(`
  mutation RemoveMember($input: RemoveMemberInput!) {
    removeMember(input: $input) { member { id removedAt } }
  }
`)
