import { graphql, type ResultOf } from '../../../data/graphql.ts'

/** The fields of a document that change while it is ingested. */
export const LIVE = graphql(`
  fragment LiveDocument on Document {
    id
    name
    status
    stage
    progress { done total }
    error { code message }
    warnings { code message pages }
    pageCount
    chunkCount
    language
    attempts
    version
    replacement { name status stage progress { done total } error { code message } }
  }
`)

export type LiveDocument = ResultOf<typeof LIVE>

export const COLLECTION_DOCUMENTS = graphql(
  `
  query CollectionDocuments(
    $id: ID!, $first: Int, $after: String, $status: DocumentStatus, $sortBy: ListSort, $order: SortOrder, $filter: DocumentFilter
  ) {
    collection(id: $id) {
      id
      documents(first: $first, after: $after, status: $status, sortBy: $sortBy, order: $order, filter: $filter) {
        totalCount
        pageInfo { hasNextPage endCursor }
        edges {
          node {
            ...LiveDocument
            createdAt
            file { id mediaType sizeBytes }
            parent { id name }
          }
        }
      }
    }
  }
`,
  [LIVE],
)

export type DocumentRow = NonNullable<ResultOf<typeof COLLECTION_DOCUMENTS>['collection']>['documents']['edges'][number]['node']

export const DOCUMENT_UPDATED = graphql(
  `
  subscription CollectionDocumentUpdated($collectionId: ID!, $after: Cursor) {
    documentUpdated(collectionId: $collectionId, after: $after) {
      documentId
      cursor
      document { ...LiveDocument }
    }
  }
`,
  [LIVE],
)

export const UPLOAD_LIMITS = graphql(`
  query UploadLimits {
    organization {
      id
      plan { code maxFileBytes }
      limits { maxFileBytes }
      quota { storageBytes { used limit } vectors { used limit } }
    }
  }
`)

export const CREATE_UPLOAD = graphql(`
  mutation CreateUpload($name: String!, $sizeBytes: Float!) {
    createUpload(input: { name: $name, sizeBytes: $sizeBytes }) { upload { id offset } }
  }
`)

export const APPEND_TO_UPLOAD = graphql(`
  mutation AppendToUpload($input: AppendToUploadInput!) {
    appendToUpload(input: $input) {
      upload {
        id
        offset
      }
    }
  }
`)

export const UPLOAD_STATE = graphql(`
  query UploadState($id: ID!) {
    upload(id: $id) { id offset status }
  }
`)

export const COMPLETE_UPLOAD = graphql(`
  mutation CompleteUpload($id: ID!) {
    completeUpload(input: { id: $id }) { upload { id file { id } } }
  }
`)

export const CANCEL_UPLOAD = graphql(`
  mutation CancelUpload($id: ID!) {
    cancelUpload(id: $id) { upload { id status } }
  }
`)

export const ATTACH_FILE = graphql(`
  mutation AttachFile($input: CreateDocumentInput!) {
    createDocument(input: $input) { outcome document { id name status } }
  }
`)

export const RETRY_DOCUMENTS = graphql(`
  mutation RetryDocuments($input: DocumentsInput!) {
    retryDocuments(input: $input) { results { id document { id status stage attempts error { code message } } error { code message } } }
  }
`)

export const DELETE_DOCUMENTS = graphql(`
  mutation DeleteDocuments($input: DocumentsInput!) {
    deleteDocuments(input: $input) { results { id error { code message } } }
  }
`)
