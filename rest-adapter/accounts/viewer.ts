import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/accounts.ts'
import { ok, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds } from '../http/values.ts'
import { KEY, toKey } from './keys.ts'
import { MEMBER, toMember } from './members.ts'

const MEMBERSHIP = 'organizationId organizationName role lastSeenAt'
const VIEWER = gatewayOperation(`query Viewer {
  viewer { ${KEY} organization { id } member { ${MEMBER} memberships { ${MEMBERSHIP} } } } }`)

function toMembership(data: Selected<'Membership', typeof MEMBERSHIP>): operations.Membership {
  return {
    organization_id: data.organizationId,
    organization_name: data.organizationName,
    role: lowerCase(data.role),
    last_seen_at: unixSeconds(data.lastSeenAt),
  }
}

export const viewerRoutes: readonly Route[] = [
  route({
    operation: operations.getOwnKey,
    async handle({ execute }) {
      const { viewer } = await execute(VIEWER)
      const { organization, member, ...key } = viewer!
      return ok({
        ...toKey(key),
        organization_id: organization!.id,
        member: member && { ...toMember(member), memberships: member.memberships.map(toMembership) },
      })
    },
  }),
]
