import { graphql, type ResultOf } from '../../data/graphql.ts'

const DOCUMENT = graphql(`
  fragment HomeDocument on Document {
    id
    name
    status
    stage
    progress { done total }
    error { code message }
    collection { id name }
  }
`)

export type HomeDocument = ResultOf<typeof DOCUMENT>

export const KNOWLEDGE = graphql(
  `
  query HomeKnowledge {
    collections(first: 1) { totalCount edges { node { id name } } }
    organization { id documentCounts { queued processing ready failed } }
    processing: documents(status: PROCESSING, first: 10) { edges { node { ...HomeDocument } } }
    queued: documents(status: QUEUED, first: 10, order: ASC) { edges { node { ...HomeDocument } } }
    failed: documents(status: FAILED, first: 5) { edges { node { ...HomeDocument } } }
  }
`,
  [DOCUMENT],
)

export type Knowledge = ResultOf<typeof KNOWLEDGE>

export const DOCUMENT_UPDATED = graphql(
  `
  subscription HomeDocumentUpdated {
    documentUpdated { documentId document { ...HomeDocument } }
  }
`,
  [DOCUMENT],
)

export const RETRY = graphql(`
  mutation RetryFailedDocument($id: ID!) {
    retryDocument(id: $id) { document { id status stage attempts error { code message } } }
  }
`)

export const AGENTS = graphql(`
  query HomeAgents {
    agents(first: 1) { totalCount edges { node { id } } }
    agentRuns(first: 8) {
      edges { node { id status startedAt cost agentId agent { id name } } }
    }
    workflowRuns(first: 8) {
      edges { node { id status startedAt cost workflowId workflow { id name } } }
    }
  }
`)

export type Agents = ResultOf<typeof AGENTS>

export const RUN_ENDED = graphql(`
  subscription HomeRunEnded { runEnded { runId } }
`)

export const KEYS = graphql(`
  query HomeKeys {
    organization { id apiKeys(first: 2) { edges { node { id } } } }
  }
`)

export const SPEND = graphql(`
  query HomeSpend($since: DateTime!) {
    usageSummary(filter: { since: $since }, groupBy: [DAY]) { groups { day totals { calls amount } } }
    organization { id lowBalanceThreshold wallet { id balance held available } }
  }
`)

export type Spend = ResultOf<typeof SPEND>

export const WALLET_CHANGED = graphql(`
  subscription HomeWalletChanged { walletChanged { cursor } }
`)
