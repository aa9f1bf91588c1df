import { graphql, type ResultOf } from '../../../data/graphql.ts'

export const COLLECTIONS = graphql(`
  query Collections($first: Int, $after: String, $sortBy: ListSort, $order: SortOrder, $filter: CollectionFilter) {
    collections(first: $first, after: $after, sortBy: $sortBy, order: $order, filter: $filter) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges {
        node {
          id
          code
          name
          description
          createdAt
          chunkCount
          ocr
          documentCounts { queued processing ready failed }
          embeddingModel { id vendor residency }
          rerankModel { id }
          transcriptionModel { id }
        }
      }
    }
  }
`)

export type CollectionRow = ResultOf<typeof COLLECTIONS>['collections']['edges'][number]['node']

export const COLLECTION = graphql(`
  query Collection($id: ID!) {
    collection(id: $id) {
      id
      code
      name
      description
      ocr
      createdAt
      dimensions
      documentCount
      chunkCount
      documentCounts { queued processing ready failed }
      embeddingModel { id vendor residency price { input } }
      rerankModel { id vendor residency }
      transcriptionModel { id vendor residency }
    }
  }
`)

export type CollectionFacts = NonNullable<ResultOf<typeof COLLECTION>['collection']>

export const MODELS_FOR_COLLECTION = graphql(`
  query ModelsForCollection {
    embedding: models(kind: EMBEDDING) { id vendor residency dimensions price { input } }
    rerank: models(kind: RERANK) { id vendor residency price { input searchThousand } }
    transcription: models(kind: TRANSCRIPTION) { id vendor residency price { audioMinute } }
  }
`)

export type ModelsForCollection = ResultOf<typeof MODELS_FOR_COLLECTION>

export const CREATE_COLLECTION = graphql(`
  mutation CreateCollection($input: CreateCollectionInput!) {
    createCollection(input: $input) { collection { id code name } }
  }
`)

export const UPDATE_COLLECTION = graphql(`
  mutation UpdateCollection($input: UpdateCollectionInput!) {
    updateCollection(input: $input) {
      collection { id code name description ocr rerankModel { id } transcriptionModel { id } }
    }
  }
`)

export const DELETE_COLLECTION = graphql(`
  mutation DeleteCollection($id: ID!, $detach: Boolean!) {
    deleteCollection(id: $id, detach: $detach) { id }
  }
`)
