import { requirePrincipal, requireScope, requireService } from '../../common/identity/principal.ts'
import { findNamedKey } from '../accounts/use-cases/api-keys.ts'
import { findOrganization } from '../accounts/use-cases/organizations.ts'
import { removeMember, updateMember } from '../members/use-cases/change-member.ts'
import { findInvitation, inviteMember, revokeInvitation } from '../members/use-cases/invitations.ts'
import { findMember, listCreatedKeys, listMemberships } from '../members/use-cases/members.ts'
import { signIn } from '../members/use-cases/sign-in.ts'
import { openSessionOf } from '../sessions/use-cases/open-session.ts'
import type { MutationResolvers, QueryResolvers, Resolvers } from './generated.ts'

export const memberQueries: QueryResolvers = {
  member(_parent, { id }, { deps, caller }) {
    return findMember(deps, requireScope(caller, 'admin'), id)
  },
}

export const memberMutations: MutationResolvers = {
  async inviteMember(_parent, { input }, { deps, caller }) {
    const { invitation, token } = await inviteMember(deps, requirePrincipal(caller), input)
    return { invitation, token, link: deps.publicUrl && `${deps.publicUrl}/sign-in?invitation=${token}` }
  },

  async revokeInvitation(_parent, { id }, { deps, caller }) {
    return { invitation: await revokeInvitation(deps, requirePrincipal(caller), id) }
  },

  async updateMember(_parent, { input }, { deps, caller }) {
    return { member: await updateMember(deps, requirePrincipal(caller), input) }
  },

  async removeMember(_parent, { input }, { deps, caller }) {
    return { member: await removeMember(deps, requirePrincipal(caller), input) }
  },

  async signIn(_parent, { input }, { deps, caller }) {
    requireService(caller)
    const { verifiedEmail = null, name = null, invitation = null, organizationId = null, userAgent = null, ...rest } = input
    const entered = await signIn(deps, { ...rest, verifiedEmail, name, invitation, organizationId })
    if (typeof entered === 'string') return { refusal: entered }
    return { opened: await openSessionOf(deps, { ...entered, rotations: 0 }, { memberId: entered._id, userAgent }) }
  },
}

export const memberTypes: Resolvers = {
  Member: {
    __resolveReference({ id }, { deps, caller }) {
      return findMember(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    organization({ organizationId }, _args, { deps, caller }) {
      return findOrganization(deps, requirePrincipal(caller), organizationId)
    },
    apiKey: ({ apiKeyId }, _args, { keys, caller }) => findNamedKey(keys, requirePrincipal(caller), apiKeyId),
    createdApiKeys: (member, _args, { deps, caller }) => listCreatedKeys(deps, requirePrincipal(caller), member),
    memberships: (member, _args, { deps, caller }) => listMemberships(deps, requirePrincipal(caller), member),
  },

  Invitation: {
    __resolveReference({ id }, { deps, caller }) {
      return findInvitation(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    invitedBy: ({ invitedBy }, _args, { keys, caller }) => findNamedKey(keys, requirePrincipal(caller), invitedBy),
  },
}
