import { graphql, type ResultOf } from '../../data/graphql.ts'

export const ORGANIZATIONS = graphql(`
  query OperatorOrganizations($first: Int, $after: String, $filter: OrganizationFilter) {
    organizations(first: $first, after: $after, filter: $filter) {
      pageInfo {
        hasNextPage
        endCursor
      }
      edges {
        node {
          id
          name
          status
          residencyPolicy
          plan {
            code
          }
          stored {
            storageBytes
            vectors
          }
          createdAt
        }
      }
    }
  }
`)

export const ORGANIZATION = graphql(`
  query OperatorOrganization($id: ID!) {
    organization(id: $id) {
      id
      name
      status
      residencyPolicy
      createdAt
      suspendedAt
      suspensionReason
      deletedAt
      plan {
        code
        storageBytes
        vectors
        maxFileBytes
        requestsPerMinute
        tokensPerMinute
        concurrency
        ocrPages
      }
      limits {
        storageBytes
        vectors
        maxFileBytes
        requestsPerMinute
        tokensPerMinute
        concurrency
        ocrPages
      }
      stored {
        storageBytes
        vectors
      }
    }
  }
`)

/** A query of its own, because it needs the scope `billing:read` as well. */
export const WALLET = graphql(`
  query OperatorWallet($id: ID!) {
    organization(id: $id) {
      id
      wallet {
        id
        balance
        held
        available
      }
    }
  }
`)

export const CHANGES = graphql(`
  query OperatorChanges($id: ID!, $first: Int, $after: String) {
    organization(id: $id) {
      id
      changes(first: $first, after: $after) {
        pageInfo {
          hasNextPage
          endCursor
        }
        edges {
          node {
            id
            kind
            plan
            reason
            apiKeyId
            at
          }
        }
      }
    }
  }
`)

export const PLANS = graphql(`
  query OperatorPlans {
    plans {
      code
      storageBytes
      vectors
      maxFileBytes
      requestsPerMinute
      tokensPerMinute
      concurrency
      ocrPages
    }
  }
`)

export const QUEUES = graphql(`
  query OperatorQueues($after: String) {
    ingestionQueues(after: $after) {
      next
      queues {
        organization {
          id
          name
        }
        due
        underWay
        dueSince
      }
    }
  }
`)

/** One query per part: a part that does not respond fails alone. */
export const HEALTH = {
  billing: graphql(`
    query BillingHealth {
      health: billingHealth {
        isReady
        problems
      }
    }
  `),
  knowledge: graphql(`
    query KnowledgeHealth {
      health: knowledgeHealth {
        isReady
        problems
      }
    }
  `),
  inference: graphql(`
    query InferenceHealth {
      health: inferenceHealth {
        isReady
        problems
      }
    }
  `),
} as const

export const CREATE = graphql(`
  mutation CreateOrganization($input: CreateOrganizationInput!) {
    createOrganization(input: $input) {
      key
      organization {
        id
        name
      }
    }
  }
`)

export const ASSIGN_PLAN = graphql(`
  mutation AssignPlan($input: AssignPlanInput!) {
    assignPlan(input: $input) {
      organization {
        id
        plan {
          code
        }
      }
    }
  }
`)

export const SUSPEND = graphql(`
  mutation SuspendOrganization($input: SuspendOrganizationInput!) {
    suspendOrganization(input: $input) {
      organization {
        id
        status
      }
    }
  }
`)

export const RESUME = graphql(`
  mutation ResumeOrganization($id: ID!) {
    resumeOrganization(id: $id) {
      organization {
        id
        status
      }
    }
  }
`)

export const DELETE = graphql(`
  mutation DeleteOrganization($id: ID!) {
    deleteOrganization(id: $id) {
      organization {
        id
        status
      }
    }
  }
`)

export const TOP_UP = graphql(`
  mutation TopUpOrganization($input: TopUpWalletInput!) {
    topUpWallet(input: $input) {
      wallet {
        id
        balance
      }
    }
  }
`)

export const ADJUST = graphql(`
  mutation AdjustOrganization($input: AdjustWalletInput!) {
    adjustWallet(input: $input) {
      wallet {
        id
        balance
      }
    }
  }
`)

export type OrganizationRow = ResultOf<typeof ORGANIZATIONS>['organizations']['edges'][number]['node']
export type Organization = NonNullable<ResultOf<typeof ORGANIZATION>['organization']>
/** A change of an organization by an operator. */
export type OrganizationChange = NonNullable<ResultOf<typeof CHANGES>['organization']>['changes']['edges'][number]['node']
export type Plan = ResultOf<typeof PLANS>['plans'][number]
export type Queue = ResultOf<typeof QUEUES>['ingestionQueues']['queues'][number]
