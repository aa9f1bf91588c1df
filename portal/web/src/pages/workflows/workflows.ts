import { graphql, type ResultOf } from '../../data/graphql.ts'

export const WORKFLOWS = graphql(`
  query Workflows($first: Int, $after: String) {
    workflows(first: $first, after: $after) {
      pageInfo {
        hasNextPage
        endCursor
      }
      edges {
        node {
          id
          code
          name
          version
          updatedAt
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

export type WorkflowRow = NonNullable<ResultOf<typeof WORKFLOWS>['workflows']>['edges'][number]['node']

export const WORKFLOW = graphql(`
  query Workflow($id: ID!) {
    workflow(id: $id) {
      id
      code
      name
      version
      definition
      updatedAt
    }
  }
`)

export type Workflow = NonNullable<ResultOf<typeof WORKFLOW>['workflow']>

export const CHAT_MODELS = graphql(`
  query WorkflowModels {
    models(kind: CHAT) {
      id
    }
  }
`)

export const COLLECTIONS = graphql(`
  query WorkflowCollections {
    collections(first: 100) {
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
  mutation CreateWorkflow($input: CreateWorkflowInput!) {
    createWorkflow(input: $input) {
      workflow {
        id
      }
    }
  }
`)

export const UPDATE = graphql(`
  mutation UpdateWorkflow($input: UpdateWorkflowInput!) {
    updateWorkflow(input: $input) {
      workflow {
        id
        version
      }
    }
  }
`)

export const DELETE = graphql(`
  mutation DeleteWorkflow($id: ID!) {
    deleteWorkflow(id: $id) {
      id
    }
  }
`)

export const VERSIONS = graphql(`
  query WorkflowVersions($id: ID!, $first: Int, $after: String) {
    workflow(id: $id) {
      id
      versions(first: $first, after: $after) {
        pageInfo {
          hasNextPage
          endCursor
        }
        edges {
          node {
            version
            createdAt
          }
        }
      }
    }
  }
`)

export const VERSION = graphql(`
  query WorkflowVersion($id: ID!, $version: Int!) {
    workflow(id: $id) {
      id
      atVersion(version: $version) {
        version
        createdAt
        definition
      }
    }
  }
`)

export const DIFF = graphql(`
  query WorkflowDiff($id: ID!, $from: Int!, $to: Int!) {
    workflow(id: $id) {
      id
      before: atVersion(version: $from) {
        version
        definition
      }
      after: atVersion(version: $to) {
        version
        createdAt
        definition
      }
    }
  }
`)
