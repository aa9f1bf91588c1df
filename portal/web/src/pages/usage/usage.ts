import { graphql, type ResultOf } from '../../data/graphql.ts'

export const CHART = graphql(`
  query UsageChart($groupBy: [UsageDimension!]!, $filter: UsageSummaryFilter) {
    usageSummary(groupBy: $groupBy, filter: $filter) {
      total {
        calls
        inputTokens
        cachedInputTokens
        cacheWriteTokens
        outputTokens
        amount
      }
      groups {
        day
        hour
        modelId
        apiKeyId
        apiKey {
          id
          name
        }
        operation
        totals {
          calls
          inputTokens
          cachedInputTokens
          cacheWriteTokens
          outputTokens
          amount
        }
      }
    }
  }
`)

export type Summary = NonNullable<ResultOf<typeof CHART>['usageSummary']>
export type Totals = Summary['total']

export const RECORDS = graphql(`
  query UsageRecords($first: Int, $after: String, $filter: UsageFilter) {
    usage(first: $first, after: $after, filter: $filter) {
      pageInfo {
        hasNextPage
        endCursor
      }
      edges {
        node {
          id
          at
          operation
          amount
          source
          requestId
          rateCardVersion
          model {
            id
          }
          apiKey {
            id
            name
          }
          quantities {
            unit
            quantity
            rate
          }
        }
      }
    }
  }
`)

export type UsageRecord = NonNullable<ResultOf<typeof RECORDS>['usage']>['edges'][number]['node']

export const RECORD = graphql(`
  query UsageRecord($id: ID!) {
    node(id: $id) {
      id
      ... on UsageRecord {
        at
        operation
        amount
        source
        requestId
        rateCardVersion
        model {
          id
        }
        apiKey {
          id
          name
        }
        quantities {
          unit
          quantity
          rate
        }
      }
    }
  }
`)

export const RECORDED = graphql(`
  subscription UsageRecorded {
    usageRecorded {
      cursor
    }
  }
`)
