import { graphql, type ResultOf } from '../../data/graphql.ts'

export const ORGANIZATION = graphql(`
  query Organization {
    organization {
      id
      name
      status
      residencyPolicy
      lowBalanceThreshold
      createdAt
      suspendedAt
      suspensionReason
      plan { code storageBytes vectors maxFileBytes requestsPerMinute tokensPerMinute concurrency ocrPagePrice }
    }
  }
`)

export type Organization = NonNullable<ResultOf<typeof ORGANIZATION>['organization']>

export const QUOTA = graphql(`
  query OrganizationQuota {
    organization { id quota { storageBytes { used limit } vectors { used limit } } ocrQuota { used limit } }
  }
`)

export const UPDATE = graphql(`
  mutation ChangeOrganization($input: UpdateOrganizationInput!) {
    updateOrganization(input: $input) { organization { id name residencyPolicy lowBalanceThreshold } }
  }
`)

export const EFFECTS = graphql(`
  query ResidencyEffects($policy: ResidencyPolicy!) {
    residencyEffects(policy: $policy) {
      policy
      residencies
      permittedModels { id kind residency }
      forbiddenModels { id kind residency }
    }
  }
`)

export type Effects = NonNullable<ResultOf<typeof EFFECTS>['residencyEffects']>

export const COLLECTIONS = graphql(`
  query CollectionsUnderPolicy($after: String) {
    collections(first: 100, after: $after) {
      pageInfo { hasNextPage endCursor }
      edges {
        node {
          id
          name
          embeddingModel { id residency }
          rerankModel { id residency }
          transcriptionModel { id residency }
        }
      }
    }
  }
`)

export type Collection = NonNullable<ResultOf<typeof COLLECTIONS>['collections']>['edges'][number]['node']

export const AGENTS = graphql(`
  query AgentsUnderPolicy($after: String) {
    agents(first: 100, after: $after) {
      pageInfo { hasNextPage endCursor }
      edges { node { id name model { id residency } } }
    }
  }
`)

export type Agent = NonNullable<ResultOf<typeof AGENTS>['agents']>['edges'][number]['node']

export const SESSIONS = graphql(`
  query Sessions($first: Int, $after: String) {
    sessions(first: $first, after: $after) {
      pageInfo { hasNextPage endCursor }
      edges { node { id userAgent isCurrent createdAt lastUsedAt expiresAt apiKey { id name } } }
    }
  }
`)

export type Session = NonNullable<ResultOf<typeof SESSIONS>['sessions']>['edges'][number]['node']

export const END_SESSION = graphql(`
  mutation EndSession($id: ID!) {
    revokeSession(id: $id) { session { id } }
  }
`)
