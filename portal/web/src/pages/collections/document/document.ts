import { graphql, type ResultOf } from '../../../data/graphql.ts'
import { LIVE } from '../documents/documents.ts'

export const DOCUMENT = graphql(
  `
  query Document($id: ID!) {
    document(id: $id) {
      ...LiveDocument
      externalId
      metadata
      createdAt
      collection { id name ocr embeddingModel { id residency } transcriptionModel { id } }
      file { id name mediaType sizeBytes checksum createdAt }
      parent { id name }
      versions { version name createdAt replacedAt file { id name mediaType sizeBytes } }
      similarDocuments(first: 5) { similarity document { id name } }
    }
  }
`,
  [LIVE],
)

export type DocumentFacts = NonNullable<ResultOf<typeof DOCUMENT>['document']>

export const DOCUMENT_CHUNKS = graphql(`
  query DocumentChunks($id: ID!, $first: Int, $after: String) {
    document(id: $id) {
      id
      chunks(first: $first, after: $after) {
        totalCount
        pageInfo { hasNextPage endCursor }
        edges { node { id text headingPath pageStart pageEnd charStart charEnd } }
      }
    }
  }
`)

export const DOCUMENT_TEXT = graphql(`
  query DocumentText($id: ID!, $pageStart: Int, $pageEnd: Int, $offset: Int, $length: Int) {
    document(id: $id) {
      id
      text(pageStart: $pageStart, pageEnd: $pageEnd, offset: $offset, length: $length) {
        text
        charStart
        charEnd
        totalChars
        nextOffset
        pages { page charStart charEnd }
      }
    }
  }
`)

export const CHUNK = graphql(`
  query Chunk($id: ID!) {
    node(id: $id) {
      __typename
      id
      ... on Chunk {
        text
        headingPath
        pageStart
        pageEnd
        charStart
        charEnd
        pageBoxes { page width height boxes { x y width height } }
        document { id }
      }
    }
  }
`)

export type PageBoxes = NonNullable<Extract<ResultOf<typeof CHUNK>['node'], { __typename: 'Chunk' }>['pageBoxes']>[number]

export const FILE_DOWNLOAD = graphql(`
  query FileDownload($id: ID!) {
    fileDownload(id: $id) { path }
  }
`)

export const UPDATE_DOCUMENT = graphql(`
  mutation UpdateDocument($input: UpdateDocumentInput!) {
    updateDocument(input: $input) { document { id name metadata } }
  }
`)

export const RETRY_DOCUMENT = graphql(`
  mutation RetryDocument($id: ID!) {
    retryDocument(id: $id) { document { id status stage attempts error { code message } } }
  }
`)

export const DELETE_DOCUMENT = graphql(`
  mutation DeleteDocument($id: ID!) {
    deleteDocument(id: $id) { id }
  }
`)
