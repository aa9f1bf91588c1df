import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'
import { KEY, toKey } from './keys.ts'
import { MEMBER, toMember } from './members.ts'

const MEMBERSHIP = 'organizationId organizationName role lastSeenAt'
const VIEWER = gatewayOperation(`query Viewer {
  viewer { ${KEY} organization { id } member { ${MEMBER} memberships { ${MEMBERSHIP} } } } }`)

function toMembership(data: Selected<'Membership', typeof MEMBERSHIP>) {
  return {
    organization_id: data.organizationId,
    organization_name: data.organizationName,
    role: data.role.toLowerCase(),
    last_seen_at: unixSeconds(data.lastSeenAt),
  }
}

export const viewerRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/key',
    async handle({ execute }) {
      const { viewer } = await execute(VIEWER)
      const { organization, member, ...key } = viewer!
      return ok({
        ...toKey(key),
        organization_id: organization!.id,
        member: member && { ...toMember(member), memberships: member.memberships.map(toMembership) },
      })
    },
  },
]
