import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { NotFound } from '../../subgraphs/common/errors.ts'
import * as operations from '../contract/documents.ts'
import { PAGE_INFO, readId, wholeList } from '../http/lists.ts'
import { listRoute } from '../http/resource-routes.ts'
import { type Call, deleted, ok, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

const SOURCE = 'id url document { id } refreshSeconds checkedAt changedAt error errorReason createdAt'

type SourceData = Selected<'WebSource', typeof SOURCE>

const ADD = gatewayOperation(`mutation AddSite($input: AddSiteInput!) { addSite(input: $input) { sources { ${SOURCE} } } }`)
const LIST = gatewayOperation(`query WebSources($id: ID!, $first: Int!, $after: String, $order: SortOrder) {
  collection(id: $id) { sources(first: $first, after: $after, order: $order) { edges { node { ${SOURCE} } } ${PAGE_INFO} } } }`)
const REFRESH = gatewayOperation(`mutation RefreshWebSource($id: ID!) { refreshWebSource(id: $id) { source { ${SOURCE} } } }`)
const GET = gatewayOperation('query WebSource($id: ID!) { webSource(id: $id) { id collection { id } } }')
const DELETE = gatewayOperation('mutation DeleteWebSource($id: ID!) { deleteWebSource(id: $id) { id } }')

function toSource({
  id,
  url,
  document,
  refreshSeconds,
  checkedAt,
  changedAt,
  error,
  errorReason,
  createdAt,
}: SourceData): operations.Source {
  return {
    id,
    object: 'source',
    created_at: unixSeconds(createdAt),
    url,
    document_id: document?.id ?? null,
    refresh_seconds: refreshSeconds,
    checked_at: unixSecondsOrNull(checkedAt),
    changed_at: unixSecondsOrNull(changedAt),
    error,
    error_reason: lowerCase(errorReason),
  }
}

/** Returns the ID of the source of the path. One of another collection counts as not found. */
async function getSourceId({ execute, params }: Call): Promise<string> {
  const { webSource } = await execute(GET, { id: params.source_id })
  if (webSource?.collection.id !== params.id) throw new NotFound('source', params.source_id!)
  return params.source_id!
}

export const webSourceRoutes: readonly Route[] = [
  route({
    operation: operations.addSite,
    async handle({ execute, params, body }) {
      const { url, limit, metadata, refresh_seconds: refreshSeconds } = body
      const { addSite } = await execute(ADD, { input: { collectionId: params.id, url, limit, metadata, refreshSeconds } })
      return ok(wholeList(addSite.sources.map(toSource), readId))
    },
  }),
  listRoute(operations.listSources, LIST, ({ collection }) => collection?.sources, toSource, { owner: 'collection' }),
  route({
    operation: operations.deleteSource,
    async handle(call) {
      const id = await getSourceId(call)
      await call.execute(DELETE, { id })
      return deleted('source', id)
    },
  }),
  route({
    operation: operations.refreshSource,
    async handle(call) {
      const id = await getSourceId(call)
      return ok(toSource((await call.execute(REFRESH, { id })).refreshWebSource.source))
    },
  }),
]
