import { graphql, type ResultOf } from '../../data/graphql.ts'

export const WALLET = graphql(`
  query Wallet($first: Int, $after: String) {
    organization {
      id
      lowBalanceThreshold
      wallet {
        id
        balance
        held
        available
        holds {
          id
          amount
          operation
          model {
            id
          }
          apiKey {
            id
            name
          }
          expiresAt
        }
        entries(first: $first, after: $after) {
          pageInfo {
            hasNextPage
            endCursor
          }
          edges {
            node {
              id
              kind
              amount
              held
              balance
              reference
              sequence
              at
            }
          }
        }
      }
    }
  }
`)

type Organization = NonNullable<ResultOf<typeof WALLET>['organization']>
export type Wallet = Organization['wallet']
export type Hold = Wallet['holds'][number]
export type Entry = Wallet['entries']['edges'][number]['node']

export const CHANGED = graphql(`
  subscription WalletChanged {
    walletChanged {
      cursor
    }
  }
`)

export const SET_THRESHOLD = graphql(`
  mutation SetThreshold($input: UpdateOrganizationInput!) {
    updateOrganization(input: $input) {
      organization {
        id
        lowBalanceThreshold
      }
    }
  }
`)

export const TOP_UP = graphql(`
  mutation TopUp($input: TopUpWalletInput!) {
    topUpWallet(input: $input) {
      wallet {
        id
        balance
        held
        available
      }
    }
  }
`)
