import { graphql, type ResultOf } from '../../../data/graphql.ts'

export const VERSIONS = graphql(`
  query AgentVersions($id: ID!, $first: Int, $after: String) {
    agent(id: $id) {
      id
      version
      versions(first: $first, after: $after) {
        pageInfo {
          hasNextPage
          endCursor
        }
        edges {
          node {
            version
            createdAt
            name
            model {
              id
            }
          }
        }
      }
    }
  }
`)

export type VersionRow = NonNullable<ResultOf<typeof VERSIONS>['agent']>['versions']['edges'][number]['node']

export const COMPARE = graphql(`
  query AgentDiff($id: ID!, $from: Int!, $to: Int!) {
    agent(id: $id) {
      id
      before: atVersion(version: $from) {
        ...AgentFacts
      }
      after: atVersion(version: $to) {
        ...AgentFacts
      }
    }
  }
  fragment AgentFacts on AgentVersion {
    version
    name
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
`)

export type VersionFacts = NonNullable<NonNullable<ResultOf<typeof COMPARE>['agent']>['before']>
