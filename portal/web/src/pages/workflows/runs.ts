import { graphql, type ResultOf } from '../../data/graphql.ts'

export const RUNS = graphql(`
  query WorkflowRuns($id: ID!, $first: Int, $after: String, $filter: WorkflowRunFilter) {
    workflow(id: $id) {
      id
      runs(first: $first, after: $after, filter: $filter) {
        pageInfo {
          hasNextPage
          endCursor
        }
        edges {
          node {
            id
            status
            workflowVersion
            startedAt
            endedAt
            cost
            error {
              code
              nodeId
            }
          }
        }
      }
    }
  }
`)

export type RunRow = NonNullable<ResultOf<typeof RUNS>['workflow']>['runs']['edges'][number]['node']
export type RunStatus = RunRow['status']

export const RUN = graphql(`
  query WorkflowRun($id: ID!) {
    workflowRun(id: $id) {
      id
      status
      workflowId
      workflow {
        id
        name
      }
      workflowVersion
      inputs
      output
      cost
      startedAt
      deadline
      endedAt
      error {
        code
        message
        nodeId
      }
      nodes {
        id
        nodeId
        state
        output
        cost
        startedAt
        endedAt
        error {
          code
          message
        }
      }
    }
  }
`)

export type Run = NonNullable<ResultOf<typeof RUN>['workflowRun']>
export type NodeRun = Run['nodes'][number]
export type NodeState = NodeRun['state']

export const START = graphql(`
  subscription StartWorkflow($input: RunWorkflowInput!) {
    workflowRun(input: $input) {
      type
      runId
    }
  }
`)

export const FOLLOW = graphql(`
  subscription FollowWorkflowRun($runId: ID!, $after: Cursor) {
    workflowRunEvents(runId: $runId, after: $after) {
      type
      cursor
      at
      nodeId
      index
      state
      cost
      run {
        id
        status
        cost
        endedAt
      }
    }
  }
`)

export type RunEvent = ResultOf<typeof FOLLOW>['workflowRunEvents']

export const RUN_ENDED = graphql(`
  subscription WorkflowRunEnded {
    runEnded {
      cursor
      workflowRun {
        id
        workflowId
      }
    }
  }
`)

export const CANCEL = graphql(`
  mutation CancelWorkflowRun($id: ID!) {
    cancelWorkflowRun(id: $id) {
      id
      status
    }
  }
`)

export const DELETE_RUN = graphql(`
  mutation DeleteWorkflowRun($id: ID!) {
    deleteWorkflowRun(id: $id) {
      id
    }
  }
`)
