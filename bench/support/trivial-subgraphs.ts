import { composeServices } from '@apollo/composition'
import { parse } from 'graphql'

/** Three subgraphs that respond from memory, and the operations for the gateways in front of them. */

const HEAD = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key"])'

export const SUBGRAPHS = {
  accounts: `${HEAD}
    type Query { viewer: Account }
    type Account { id: ID! name: String! email: String! organization: String! createdAt: String! }`,
  library: `${HEAD}
    type Query { document(id: ID!): Document documents(first: Int!): [Document!]! }
    type Document { id: ID! title: String! status: Status! chunkCount: Int! language: String file: File! }
    enum Status { READY FAILED }
    type File @key(fields: "id", resolvable: false) { id: ID! }`,
  files: `${HEAD}
    type Query { fileCount: Int! }
    type File @key(fields: "id") { id: ID! name: String! sizeBytes: Int! mediaType: String! }`,
} as const
export type SubgraphOfBench = keyof typeof SUBGRAPHS

/** Operations as clients send them: `{"query", "variables"}`. */
export const OPERATIONS = {
  'one subgraph': { query: 'query Viewer { viewer { id name email organization createdAt } }' },
  'three subgraphs': {
    query: `query Document($id: ID!) { viewer { id name email }
      document(id: $id) { id title status chunkCount language file { id name sizeBytes mediaType } } }`,
    variables: { id: 'doc_1' },
  },
  'list of 50 with files': {
    query: `query Documents($first: Int!) {
      documents(first: $first) { id title status chunkCount language file { id name sizeBytes mediaType } } }`,
    variables: { first: 50 },
  },
} as const

/** @param urls the address of each subgraph */
export function composeSupergraph(urls: Readonly<Record<SubgraphOfBench, string>>): string {
  const { supergraphSdl, errors } = composeServices(
    Object.entries(SUBGRAPHS).map(([name, sdl]) => ({ name, url: urls[name as SubgraphOfBench], typeDefs: parse(sdl) })),
  )
  if (errors) throw new Error(errors.map(({ message }) => message).join('\n'))
  return supergraphSdl
}
