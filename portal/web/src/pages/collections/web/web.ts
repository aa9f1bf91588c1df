import { graphql, type ResultOf } from '../../../data/graphql.ts'

export const SOURCES = graphql(`
  query CollectionSources($id: ID!, $first: Int, $after: String) {
    collection(id: $id) {
      id
      sources(first: $first, after: $after) {
        pageInfo { hasNextPage endCursor }
        edges { node { id url refreshSeconds checkedAt changedAt error errorReason document { id name status } } }
      }
    }
  }
`)

export type Source = NonNullable<ResultOf<typeof SOURCES>['collection']>['sources']['edges'][number]['node']

/** Also reports the documents of fetched addresses, which are documents of the collection. */
export const DOCUMENT_MOVED = graphql(`
  subscription CollectionDocumentMoved($collectionId: ID!) {
    documentUpdated(collectionId: $collectionId) { documentId }
  }
`)

export const ADD_PAGE = graphql(`
  mutation AddPage($input: CreateWebDocumentInput!) {
    createWebDocument(input: $input) { outcome document { id name status } }
  }
`)

export const ADD_SITE = graphql(`
  mutation AddSite($input: AddSiteInput!) {
    addSite(input: $input) { sources { id } }
  }
`)

export const REFRESH_SOURCE = graphql(`
  mutation RefreshSource($id: ID!) {
    refreshWebSource(id: $id) { source { id checkedAt changedAt error errorReason document { id name status } } }
  }
`)

export const DELETE_SOURCE = graphql(`
  mutation DeleteSource($id: ID!) {
    deleteWebSource(id: $id) { id }
  }
`)
