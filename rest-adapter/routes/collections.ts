import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/collections.ts'
import { NAMED_PAGE_INFO, NAMED_PAGE_NAMES, namedList, namedPageVariables } from '../http/lists.ts'
import { readRoute, updateRoute } from '../http/resource-routes.ts'
import { created, deleted, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds } from '../http/values.ts'

const COLLECTION =
  'id code name description ocr embeddingModel { id } rerankModel { id } transcriptionModel { id } dimensions documentCount documentCounts { queued processing ready failed } chunkCount createdAt'

type CollectionData = Selected<'Collection', typeof COLLECTION>

const CREATE = gatewayOperation(
  `mutation CreateCollection($input: CreateCollectionInput!) { createCollection(input: $input) { collection { ${COLLECTION} } } }`,
)
const LIST =
  gatewayOperation(`query Collections($first: Int!, $after: String, $order: SortOrder, $sortBy: ListSort, $filter: CollectionFilter) {
  collections(first: $first, after: $after, order: $order, sortBy: $sortBy, filter: $filter) {
    edges { node { ${COLLECTION} } } ${NAMED_PAGE_INFO} } }`)
const GET = gatewayOperation(`query Collection($id: ID!) { collection(id: $id) { ${COLLECTION} } }`)
const UPDATE = gatewayOperation(
  `mutation UpdateCollection($input: UpdateCollectionInput!) { updateCollection(input: $input) { collection { ${COLLECTION} } } }`,
)
const DELETE = gatewayOperation(
  'mutation DeleteCollection($id: ID!, $detach: Boolean!) { deleteCollection(id: $id, detach: $detach) { id } }',
)

const NAMES = { code: 'collection_code', name: 'collection_name' }

function toCollection(data: CollectionData): operations.Collection {
  return {
    id: data.id,
    object: 'collection',
    created_at: unixSeconds(data.createdAt),
    collection_code: data.code,
    collection_name: data.name,
    embedding_model: data.embeddingModel?.id ?? null,
    rerank_model: data.rerankModel?.id ?? null,
    transcription_model: data.transcriptionModel?.id ?? null,
    dimensions: data.dimensions,
    description: data.description,
    ocr: lowerCase(data.ocr),
    document_count: data.documentCount,
    document_counts: data.documentCounts,
    chunk_count: data.chunkCount,
  }
}

/** Converts the fields that can be both set at creation and changed. Absent fields stay absent. */
function toInput({ collection_code, collection_name, description, ocr, rerank_model, transcription_model }: JsonObject): JsonObject {
  const mode = typeof ocr === 'string' ? ocr.toUpperCase() : ocr
  const models = { rerankModel: rerank_model, transcriptionModel: transcription_model }
  return { code: collection_code, name: collection_name, description, ocr: mode, ...models }
}

export const collectionRoutes: readonly Route[] = [
  route({
    operation: operations.createCollection,
    async handle({ execute, body }) {
      const input = { ...toInput(body), embeddingModel: body.embedding_model }
      const data = await execute(CREATE, { input }, NAMES)
      return created(toCollection(data.createCollection.collection))
    },
  }),
  route({
    operation: operations.listCollections,
    async handle({ execute, query }) {
      const data = await execute(LIST, namedPageVariables(query), NAMED_PAGE_NAMES)
      return ok(namedList(data.collections, toCollection, query))
    },
  }),
  readRoute(operations.getCollection, GET, 'collection', ({ collection }) => collection && toCollection(collection)),
  updateRoute(operations.updateCollection, UPDATE, toInput, (data) => toCollection(data.updateCollection.collection), NAMES),
  route({
    operation: operations.deleteCollection,
    async handle({ execute, params, query }) {
      const data = await execute(DELETE, { id: params.id, detach: query.detach ?? false })
      return deleted('collection', data.deleteCollection.id)
    },
  }),
]
