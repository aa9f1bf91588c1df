import { graphql, type ResultOf } from '../../../data/graphql.ts'

// Objects that need other scopes are selected by ID alone, so that a key without these scopes still sees the run.
export const RUN = graphql(`
  query AgentRun($id: ID!) {
    agentRun(id: $id) {
      id
      status
      agentId
      agentVersion
      threadId
      messages
      outputText
      output
      cost
      startedAt
      endedAt
      error {
        code
        message
      }
      usage {
        promptTokens
        cachedPromptTokens
        completionTokens
        totalTokens
      }
      steps {
        kind
        number
        model {
          id
        }
        collection {
          id
        }
        query
        hitCount
        cost
        usage {
          promptTokens
          completionTokens
        }
      }
      citations {
        mark
        chunkId
        text
        fileName
        pageStart
        pageEnd
        collection {
          id
        }
        document {
          id
        }
      }
    }
  }
`)

export type Run = NonNullable<ResultOf<typeof RUN>['agentRun']>
export type Citation = Run['citations'][number]

export const RUNS = graphql(`
  query AgentRuns($id: ID!, $first: Int, $after: String, $filter: AgentRunFilter) {
    agent(id: $id) {
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
            agentVersion
            startedAt
            endedAt
            cost
            threadId
          }
        }
      }
    }
  }
`)

export type RunRow = NonNullable<ResultOf<typeof RUNS>['agent']>['runs']['edges'][number]['node']

/** Starts a run. Its first event has the ID; `FOLLOW` receives the others. */
export const START = graphql(`
  subscription StartAgentRun($input: RunAgentInput!) {
    agentRun(input: $input) {
      runId
    }
  }
`)

export const FOLLOW = graphql(`
  subscription FollowAgentRun($runId: ID!, $after: Cursor) {
    agentRunEvents(runId: $runId, after: $after) {
      type
      cursor
      number
      textDelta
      toolCall {
        id
        name
        arguments
      }
      search {
        query
        collection {
          id
        }
        hits {
          chunkId
          fileName
          pageStart
        }
      }
      run {
        id
        status
        threadId
      }
    }
  }
`)

export type RunEvent = NonNullable<ResultOf<typeof FOLLOW>['agentRunEvents']>

export const CANCEL = graphql(`
  mutation CancelAgentRun($id: ID!) {
    cancelAgentRun(id: $id) {
      id
      status
    }
  }
`)

export const DELETE_RUN = graphql(`
  mutation DeleteAgentRun($id: ID!) {
    deleteAgentRun(id: $id) {
      id
    }
  }
`)

export const THREADS = graphql(`
  query AgentThreads($id: ID!, $first: Int, $after: String) {
    agent(id: $id) {
      id
      threads(first: $first, after: $after) {
        pageInfo {
          hasNextPage
          endCursor
        }
        edges {
          node {
            id
            title
            messageCount
            updatedAt
          }
        }
      }
    }
  }
`)

export const THREAD = graphql(`
  query Thread($id: ID!) {
    thread(id: $id) {
      id
      agentId
      title
      messages
    }
  }
`)

export const DELETE_THREAD = graphql(`
  mutation DeleteThread($id: ID!) {
    deleteThread(id: $id) {
      id
    }
  }
`)

export const RUN_ENDED = graphql(`
  subscription AgentRunEnded {
    runEnded {
      agentRun {
        id
        agentId
      }
    }
  }
`)
