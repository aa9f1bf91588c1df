import type { Scope } from '../../../common/identity/principal.ts'

export const MEMBER_ROLES = ['owner', 'admin', 'editor', 'viewer', 'billing'] as const
export type MemberRole = (typeof MEMBER_ROLES)[number]

/** The scopes of a member's key by role. No role has `operator`. */
export const SCOPES_OF: Readonly<Record<MemberRole, readonly Scope[]>> = {
  owner: ['admin'],
  admin: ['admin'],
  editor: ['inference', 'knowledge:read', 'knowledge:write', 'agents'],
  viewer: ['knowledge:read'],
  billing: ['billing:read'],
}

/** The rank of a member or key, which may manage those of no higher rank. */
export type Rank = 0 | 1 | 2

export function rankOfRole(role: MemberRole): Rank {
  return role === 'owner' ? 2 : role === 'admin' ? 1 : 0
}
