import { graphql, type ResultOf } from '../../../data/graphql.ts'

export const AGENTS = graphql(`
  query Agents($first: Int, $after: String) {
    agents(first: $first, after: $after) {
      pageInfo {
        hasNextPage
        endCursor
      }
      edges {
        node {
          id
          code
          name
          updatedAt
          model {
            id
            residency
          }
          collections {
            id
          }
          runs(first: 1) {
            edges {
              node {
                id
                status
                startedAt
              }
            }
          }
        }
      }
    }
  }
`)

export type AgentRow = NonNullable<ResultOf<typeof AGENTS>['agents']>['edges'][number]['node']

export const AGENT = graphql(`
  query Agent($id: ID!) {
    agent(id: $id) {
      id
      code
      name
      version
      instructions
      temperature
      topP
      maxOutputTokens
      responseSchema
      maxSteps
      maxCost
      model {
        id
      }
      collections {
        id
      }
      mcpServers {
        name
        url
        headerNames
        allowedTools
      }
    }
  }
`)

export type Agent = NonNullable<ResultOf<typeof AGENT>['agent']>

export const MODELS = graphql(`
  query ModelsForAgent {
    models(kind: CHAT) {
      id
      residency
      supportsTools
      supportsResponseSchema
    }
  }
`)

export const COLLECTIONS = graphql(`
  query CollectionsForAgent {
    collections(first: 100, sortBy: NAME, order: ASC) {
      edges {
        node {
          id
          name
        }
      }
    }
  }
`)

export const CREATE = graphql(`
  mutation CreateAgent($input: CreateAgentInput!) {
    createAgent(input: $input) {
      agent {
        id
        name
      }
    }
  }
`)

export const UPDATE = graphql(`
  mutation UpdateAgent($input: UpdateAgentInput!) {
    updateAgent(input: $input) {
      agent {
        id
        version
      }
    }
  }
`)

export const DELETE = graphql(`
  mutation DeleteAgent($id: ID!) {
    deleteAgent(id: $id) {
      id
    }
  }
`)
