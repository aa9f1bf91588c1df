import { billingOperation } from '../../../schema/operations.ts'
import type { ServicePrincipal } from '../identity/principal.ts'
import { type Link, type LinkContext, request } from '../link/link.ts'
import type { ErasureQueue, ErasureTask } from './erasing.ts'

const LIST = billingOperation(`query ErasuresToDo {
  erasuresToDo { id organizationId kind documentId documentIds apiKeyIds requestedAt isFound notes } }`)
const FOUND = billingOperation('mutation ErasureFound($input: ErasureFoundInput!) { erasureFound(input: $input) }')
const ENDED = billingOperation('mutation ErasureEnded($input: ErasureEndedInput!) { erasureEnded(input: $input) }')

/** Billing's queue of erasures, for this service. */
export function erasureQueueOver(link: Link, service: ServicePrincipal['service']): ErasureQueue {
  const buildContext = (signal: AbortSignal): LinkContext => ({ caller: { service }, requestId: 'erasure', signal })
  return {
    async list(signal) {
      const { erasuresToDo } = await request(link, { query: LIST, variables: {} }, buildContext(signal))
      return erasuresToDo.map(({ kind, requestedAt, ...rest }) => ({
        ...rest,
        kind: kind.toLowerCase() as ErasureTask['kind'],
        requestedAt: new Date(requestedAt),
      }))
    },

    async noteFound(id, { found, ...rest }, signal) {
      const input = { id, found: Object.entries(found).map(([kind, count]) => ({ kind, count })), ...rest }
      await request(link, { query: FOUND, variables: { input } }, buildContext(signal))
    },

    async finish({ id }, kept, signal) {
      await request(link, { query: ENDED, variables: { input: { id, kept } } }, buildContext(signal))
    },
  }
}
