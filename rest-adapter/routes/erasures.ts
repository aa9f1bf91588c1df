import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/organizations.ts'
import { PAGE_INFO } from '../http/lists.ts'
import { listRoute, readRoute } from '../http/resource-routes.ts'
import { created, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

const ERASURE = `id kind documentId memberId apiKeyIds requestedBy requestedAt endedAt
  erased { kind count } kept { kind count reason }`

const ERASE = gatewayOperation(`mutation Erase($input: EraseInput!) { erase(input: $input) { erasure { ${ERASURE} } } }`)
const GET = gatewayOperation(`query Erasure($id: ID!) { erasure(id: $id) { ${ERASURE} } }`)
const LIST = gatewayOperation(`query Erasures($id: ID, $first: Int!, $after: String) {
  organization(id: $id) { erasures(first: $first, after: $after) { edges { node { ${ERASURE} } } ${PAGE_INFO} } } }`)

const NAMES = { apiKeyIds: 'key_ids' }

function toErasure(data: Selected<'Erasure', typeof ERASURE>): operations.Erasure {
  return {
    id: data.id,
    object: 'erasure',
    created_at: unixSeconds(data.requestedAt),
    kind: lowerCase(data.kind),
    document_id: data.documentId,
    member_id: data.memberId,
    key_ids: data.apiKeyIds,
    requested_by: data.requestedBy,
    ended_at: unixSecondsOrNull(data.endedAt),
    erased: data.erased,
    kept: data.kept,
  }
}

export const erasureRoutes: readonly Route[] = [
  route({
    operation: operations.erase,
    async handle({ execute, body }) {
      const input = { documentId: body.document_id, memberId: body.member_id, apiKeyIds: body.key_ids }
      return created(toErasure((await execute(ERASE, { input }, NAMES)).erase.erasure))
    },
  }),
  listRoute(operations.listErasures, LIST, ({ organization }) => organization.erasures, toErasure),
  readRoute(operations.getErasure, GET, 'erasure', ({ erasure }) => erasure && toErasure(erasure)),
  listRoute(operations.listErasuresOfOrganization, LIST, ({ organization }) => organization.erasures, toErasure),
]
