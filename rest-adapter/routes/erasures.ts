import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import { PAGE_INFO, PAGE_NAMES, pageVariables, readId, toList } from '../http/lists.ts'
import { created, ok, type Route } from '../http/route.ts'
import { unixSeconds, unixSecondsOrNull } from '../http/values.ts'

const ERASURE = `id kind documentId memberId apiKeyIds requestedBy requestedAt endedAt
  erased { kind count } kept { kind count reason }`

const ERASE = gatewayOperation(`mutation Erase($input: EraseInput!) { erase(input: $input) { erasure { ${ERASURE} } } }`)
const GET = gatewayOperation(`query Erasure($id: ID!) { erasure(id: $id) { ${ERASURE} } }`)
const LIST = gatewayOperation(`query Erasures($id: ID, $first: Int!, $after: String) {
  organization(id: $id) { erasures(first: $first, after: $after) { edges { node { ${ERASURE} } } ${PAGE_INFO} } } }`)

const NAMES = { apiKeyIds: 'key_ids' }

function toErasure(data: Selected<'Erasure', typeof ERASURE>) {
  return {
    id: data.id,
    object: 'erasure',
    created_at: unixSeconds(data.requestedAt),
    kind: data.kind.toLowerCase(),
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
  {
    method: 'POST',
    path: '/v1/erasures',
    async handle({ ask, body }) {
      const input = { documentId: body.document_id, memberId: body.member_id, apiKeyIds: body.key_ids }
      return created(toErasure((await ask(ERASE, { input }, NAMES)).erase.erasure))
    },
  },
  {
    method: 'GET',
    path: '/v1/erasures',
    async handle({ ask, query }) {
      const { organization } = await ask(LIST, pageVariables(query), PAGE_NAMES)
      return ok(toList(organization.erasures, toErasure, readId))
    },
  },
  {
    method: 'GET',
    path: '/v1/erasures/{id}',
    async handle({ ask, params }) {
      const { erasure } = await ask(GET, { id: params.id })
      if (!erasure) throw new NotFound('erasure', params.id!)
      return ok(toErasure(erasure))
    },
  },
  {
    method: 'GET',
    path: '/v1/organizations/{id}/erasures',
    async handle({ ask, params, query }) {
      const { organization } = await ask(LIST, { id: params.id, ...pageVariables(query) }, PAGE_NAMES)
      return ok(toList(organization.erasures, toErasure, readId))
    },
  },
]
