import { graphql, type ResultOf } from '../../../data/graphql.ts'

export const QUOTE_REEMBEDDING = graphql(`
  query QuoteReembedding($input: ReembeddingInput!) {
    quoteReembedding(input: $input) {
      dimensions
      passages
      tokens
      isExact
      amount
      isCovered
      embeddingModel { id residency }
    }
  }
`)

export type Quote = ResultOf<typeof QUOTE_REEMBEDDING>['quoteReembedding']

export const START_REEMBEDDING = graphql(`
  mutation StartReembedding($input: ReembeddingInput!) {
    startReembedding(input: $input) { reembedding { id status stage progress { done total } } }
  }
`)

export const CANCEL_REEMBEDDING = graphql(`
  mutation CancelReembedding($id: ID!) {
    cancelReembedding(id: $id) { reembedding { id status stage progress { done total } } }
  }
`)

export const COLLECTION_REEMBEDDINGS = graphql(`
  query CollectionReembeddings($id: ID!) {
    collection(id: $id) {
      id
      embeddingModel { id vendor residency }
      reembeddings(first: 5) {
        edges {
          node {
            id
            status
            stage
            progress { done total }
            cost
            error { code message }
            formerModelId
            embeddingModelId
            startedAt
            endedAt
          }
        }
      }
    }
  }
`)

export type Reembedding = NonNullable<ResultOf<typeof COLLECTION_REEMBEDDINGS>['collection']>['reembeddings']['edges'][number]['node']

export const isUnderWay = ({ status }: Pick<Reembedding, 'status'>): boolean => status === 'RUNNING' || status === 'CANCELLING'
