import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache, type TypedDocumentNode } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { createClient } from 'graphql-ws'

const URL = `${import.meta.env.VITE_KIS_URL ?? 'http://127.0.0.1:4000'}/graphql`

/** Queries use HTTP. Subscriptions use a socket, which connects again after a break. */
export function connect(key: string) {
  const headers = { authorization: `Bearer ${key}` }
  const sockets = createClient({
    url: URL.replace(/^http/, 'ws'),
    connectionParams: headers,
    shouldRetry: () => true, // A break is an `error` event in some browsers, which the default does not retry.
  })
  const link = ApolloLink.split(
    ({ operationType }) => operationType === 'subscription',
    new GraphQLWsLink(sockets),
    new HttpLink({ uri: URL, headers }),
  )
  return { apollo: new ApolloClient({ cache: new InMemoryCache(), link }), sockets }
}

type Connection<Node> = { edges: { node: Node & { id: string; name: string } }[] }
type Run = { outputText: string | null; error: Error | null; citations: { mark: number; fileName: string; text: string }[] }

export const HOME: TypedDocumentNode<{ collections: Connection<object>; agents: Connection<object> }> = gql`query {
  collections(first: 1) { edges { node { id name } } }
  agents(first: 1) { edges { node { id name } } }
}`

export const DOCUMENTS: TypedDocumentNode<{ collection: { documents: Connection<{ status: string }> } }, { id: string }> = gql`
  query ($id: ID!) { collection(id: $id) { id documents(first: 20) { edges { node { id name status } } } } }`

/** Apollo Client finds the document in its cache by its ID, so the page shows the new status. */
export const DOCUMENT_UPDATED: TypedDocumentNode<{ documentUpdated: { documentId: string } }, { id: string }> = gql`
  subscription ($id: ID!) { documentUpdated(collectionId: $id) { documentId document { id name status } } }`

export const SEARCH: TypedDocumentNode<
  { searchCollection: { hits: { chunk: { id: string; text: string; document: { name: string } } }[] } },
  { id: string; query: string }
> = gql`query ($id: ID!, $query: String!) {
  searchCollection(input: { collectionId: $id, query: $query, limit: 5 }) { hits { chunk { id text document { id name } } } }
}`

export const ASK: TypedDocumentNode<
  { agentRun: { type: string; textDelta: string | null; run: Run | null } },
  { agent: string; question: string; idempotencyKey: string }
> = gql`subscription ($agent: ID!, $question: String!, $idempotencyKey: String!) {
  agentRun(input: { agentId: $agent, input: $question, idempotencyKey: $idempotencyKey }) {
    type textDelta run { id outputText error { message } citations { mark fileName text } }
  }
}`
