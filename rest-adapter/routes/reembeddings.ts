import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/collections.ts'
import { PAGE_INFO } from '../http/lists.ts'
import { actionRoute, listRoute, readRoute } from '../http/resource-routes.ts'
import { created, ok, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds, unixSecondsOrNull } from '../http/values.ts'

const REEMBEDDING = `id collectionId formerModelId embeddingModelId status stage progress { done total } tokens cost error { code message }
  startedAt endedAt`
const QUOTE = 'collectionId embeddingModel { id residency } dimensions passages tokens isExact amount isCovered'

type ReembeddingData = Selected<'Reembedding', typeof REEMBEDDING>

const QUOTED = gatewayOperation(`query QuoteReembedding($input: ReembeddingInput!) { quoteReembedding(input: $input) { ${QUOTE} } }`)
const START = gatewayOperation(
  `mutation StartReembedding($input: ReembeddingInput!) { startReembedding(input: $input) { reembedding { ${REEMBEDDING} } } }`,
)
const LIST = gatewayOperation(`query Reembeddings($id: ID!, $first: Int!, $after: String, $order: SortOrder) {
  collection(id: $id) { reembeddings(first: $first, after: $after, order: $order) { edges { node { ${REEMBEDDING} } } ${PAGE_INFO} } } }`)
const GET = gatewayOperation(`query Reembedding($id: ID!) { reembedding(id: $id) { ${REEMBEDDING} } }`)
const CANCEL = gatewayOperation(`mutation CancelReembedding($id: ID!) { cancelReembedding(id: $id) { reembedding { ${REEMBEDDING} } } }`)

const NAMES = { collectionId: 'id', embeddingModel: 'embedding_model' }

function toReembedding(data: ReembeddingData): operations.Reembedding {
  return {
    id: data.id,
    object: 'reembedding',
    created_at: unixSeconds(data.startedAt),
    ended_at: unixSecondsOrNull(data.endedAt),
    collection_id: data.collectionId,
    former_model: data.formerModelId,
    embedding_model: data.embeddingModelId,
    status: lowerCase(data.status),
    stage: lowerCase(data.stage),
    progress: data.progress,
    tokens: data.tokens,
    cost_usd: data.cost,
    error: data.error,
  }
}

export const reembeddingRoutes: readonly Route[] = [
  route({
    operation: operations.quoteReembedding,
    async handle({ execute, params, body }) {
      const input = { collectionId: params.id, embeddingModel: body.embedding_model }
      const { quoteReembedding: quote } = await execute(QUOTED, { input }, NAMES)
      return ok({
        object: 'reembedding.quote',
        collection_id: quote.collectionId,
        embedding_model: quote.embeddingModel?.id ?? null,
        residency: lowerCase(quote.embeddingModel?.residency ?? null),
        dimensions: quote.dimensions,
        passages: quote.passages,
        tokens: quote.tokens,
        is_exact: quote.isExact,
        amount_usd: quote.amount,
        is_covered: quote.isCovered,
      })
    },
  }),
  route({
    operation: operations.startReembedding,
    async handle({ execute, params, body }) {
      const input = { collectionId: params.id, embeddingModel: body.embedding_model }
      const { startReembedding } = await execute(START, { input }, NAMES)
      return created(toReembedding(startReembedding.reembedding))
    },
  }),
  listRoute(operations.listReembeddings, LIST, ({ collection }) => collection?.reembeddings, toReembedding, {
    owner: 'collection',
  }),
  readRoute(operations.getReembedding, GET, 're-embedding', ({ reembedding }) => reembedding && toReembedding(reembedding)),
  actionRoute(operations.cancelReembedding, CANCEL, ({ cancelReembedding }) => toReembedding(cancelReembedding.reembedding)),
]
