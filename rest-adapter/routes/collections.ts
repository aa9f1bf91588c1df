import { NotFound } from '../../subgraphs/common/errors.ts'
import { type ConnectionData, idOf, listOf, PAGE_INFO, PAGE_NAMES, pageVariables } from '../http/lists.ts'
import { created, deleted, type JsonObject, ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const COLLECTION = 'id code name description embeddingModel { id } dimensions documentCount chunkCount createdAt'

interface CollectionData {
  readonly id: string
  readonly code: string
  readonly name: string
  readonly description: string | null
  readonly embeddingModel: { readonly id: string } | null
  readonly dimensions: number
  readonly documentCount: number
  readonly chunkCount: number
  readonly createdAt: string
}

const CREATE = `mutation CreateCollection($input: CreateCollectionInput!) { createCollection(input: $input) { collection { ${COLLECTION} } } }`
const LIST = `query Collections($first: Int!, $after: String, $order: SortOrder) {
  collections(first: $first, after: $after, order: $order) { edges { node { ${COLLECTION} } } ${PAGE_INFO} } }`
const GET = `query Collection($id: ID!) { collection(id: $id) { ${COLLECTION} } }`
const UPDATE = `mutation UpdateCollection($input: UpdateCollectionInput!) { updateCollection(input: $input) { collection { ${COLLECTION} } } }`
const DELETE = 'mutation DeleteCollection($id: ID!) { deleteCollection(id: $id) { id } }'

const NAMES = { code: 'collection_code', name: 'collection_name' }

function toCollection(data: CollectionData) {
  return {
    id: data.id,
    object: 'collection',
    created_at: unixSeconds(data.createdAt),
    collection_code: data.code,
    collection_name: data.name,
    embedding_model: data.embeddingModel?.id ?? null,
    dimensions: data.dimensions,
    description: data.description,
    document_count: data.documentCount,
    chunk_count: data.chunkCount,
  }
}

/** The fields that creation and change have in common; what was left out stays out. */
function inputOf({ collection_code, collection_name, description }: JsonObject): JsonObject {
  return { code: collection_code, name: collection_name, description }
}

export const collectionRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/collections',
    async handle({ ask, body }) {
      const input = { ...inputOf(body), embeddingModel: body.embedding_model }
      const data = await ask<{ createCollection: { collection: CollectionData } }>(CREATE, { input }, NAMES)
      return created(toCollection(data.createCollection.collection))
    },
  },
  {
    method: 'GET',
    path: '/v1/collections',
    async handle({ ask, query }) {
      const data = await ask<{ collections: ConnectionData<CollectionData> }>(LIST, pageVariables(query), PAGE_NAMES)
      return ok(listOf(data.collections, toCollection, idOf))
    },
  },
  {
    method: 'GET',
    path: '/v1/collections/{id}',
    async handle({ ask, params }) {
      const { collection } = await ask<{ collection: CollectionData | null }>(GET, { id: params.id })
      if (!collection) throw new NotFound('collection', params.id!)
      return ok(toCollection(collection))
    },
  },
  {
    method: 'PATCH',
    path: '/v1/collections/{id}',
    async handle({ ask, params, body }) {
      const input = { id: params.id, ...inputOf(body) }
      const data = await ask<{ updateCollection: { collection: CollectionData } }>(UPDATE, { input }, NAMES)
      return ok(toCollection(data.updateCollection.collection))
    },
  },
  {
    method: 'DELETE',
    path: '/v1/collections/{id}',
    async handle({ ask, params }) {
      const data = await ask<{ deleteCollection: { id: string } }>(DELETE, { id: params.id })
      return deleted('collection', data.deleteCollection.id)
    },
  },
]
