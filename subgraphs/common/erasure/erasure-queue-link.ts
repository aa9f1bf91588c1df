import { billingOperation } from '../../../schema/operations.ts'
import type { ServicePrincipal } from '../identity/principal.ts'
import { type Link, type LinkContext, request } from '../link/link.ts'
import type { ErasureQueue } from './keep-erasing.ts'

const LIST = billingOperation('query OrganizationsToErase { organizationsToErase { organizationId deletedAt } }')
const FINISH = billingOperation('mutation OrganizationErased($id: ID!) { organizationErased(id: $id) }')

/** Billing's queue of deleted organizations, for this service. */
export function erasureQueueOver(link: Link, service: ServicePrincipal['service']): ErasureQueue {
  const buildContext = (signal: AbortSignal): LinkContext => ({ caller: { service }, requestId: 'erasure', signal })
  return {
    async list(signal) {
      const { organizationsToErase } = await request(link, { query: LIST, variables: {} }, buildContext(signal))
      return organizationsToErase.map(({ organizationId, deletedAt }) => ({ organizationId, deletedAt: new Date(deletedAt) }))
    },

    async finish(id, signal) {
      await request(link, { query: FINISH, variables: { id } }, buildContext(signal))
    },
  }
}
