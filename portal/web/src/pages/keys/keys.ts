import { graphql, type ResultOf } from '../../data/graphql.ts'

export const KEYS = graphql(`
  query Keys($first: Int, $after: String, $filter: ApiKeyFilter) {
    organization {
      id
      apiKeys(first: $first, after: $after, filter: $filter) {
        pageInfo {
          hasNextPage
          endCursor
        }
        edges {
          node {
            id
            name
            last4
            scopes
            lastUsedAt
            expiresAt
            revokedAt
            spent {
              thisMonth
            }
          }
        }
      }
    }
  }
`)

export type KeyRow = NonNullable<ResultOf<typeof KEYS>['organization']>['apiKeys']['edges'][number]['node']

export const KEY = graphql(`
  query Key($id: ID!) {
    apiKey(id: $id) {
      id
      name
      last4
      scopes
      modelAllowlist
      requestsPerMinute
      tokensPerMinute
      lastUsedAt
      expiresAt
      revokedAt
      createdAt
      spendLimit {
        amount
        period
        spent
        held
        resetsAt
      }
      spent {
        today
        thisMonth
        total
      }
    }
  }
`)

export type Key = NonNullable<ResultOf<typeof KEY>['apiKey']>

/** The models that an allowlist can name. */
export const MODEL_IDS = graphql(`
  query KeyModels {
    models {
      id
    }
  }
`)

export const CREATE = graphql(`
  mutation CreateKey($input: CreateApiKeyInput!) {
    createApiKey(input: $input) {
      key
      apiKey {
        id
        name
      }
    }
  }
`)

export const UPDATE = graphql(`
  mutation UpdateKey($input: UpdateApiKeyInput!) {
    updateApiKey(input: $input) {
      apiKey {
        id
      }
    }
  }
`)

export const ROTATE = graphql(`
  mutation RotateKey($id: ID!) {
    rotateApiKey(id: $id) {
      key
      apiKey {
        id
        name
      }
    }
  }
`)

export const REVOKE = graphql(`
  mutation RevokeKey($id: ID!) {
    revokeApiKey(id: $id) {
      apiKey {
        id
        revokedAt
      }
    }
  }
`)

/** Returns the state of a key. `revoked` and `expired` keys cannot call anything. */
export function stateOf({ revokedAt, expiresAt }: Pick<Key, 'revokedAt' | 'expiresAt'>, now = Date.now()) {
  if (revokedAt) return 'revoked'
  return expiresAt && Date.parse(expiresAt) <= now ? 'expired' : 'active'
}
