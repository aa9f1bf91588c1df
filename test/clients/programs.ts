/**
 * Programs of a frontend, each as its library wants it. They call the generated operations by their ids, and print what
 * they got. Lines after `@ts-expect-error` are wrong, so that a type that became `any` fails to compile.
 */

const ARGUMENTS = `const [url = '', key = ''] = process.argv.slice(2)
const authorization = \`Bearer \${key}\`
`

const CODEGEN = `import type { ResultOf } from '@graphql-typed-document-node/core'
import { useFragment } from './gql/fragment-masking'
import { HomeQueryDocument, HomeMutationDocument, Home_CollectionFragmentDoc } from './gql/graphql'

function firstCollection({ collections }: ResultOf<typeof HomeQueryDocument>): string | undefined {
  // @ts-expect-error a part that fails is null
  collections.edges
  const [edge] = collections?.edges ?? []
  if (!edge) return undefined
  const collection = useFragment(Home_CollectionFragmentDoc, edge.node)
  const chunks: number = collection.chunkCount
  // @ts-expect-error the fragment does not select it
  collection.createdAt
  return \`\${collection.name}, \${chunks} chunks, \${collection.embeddingModel?.id}\`
}
`

const APOLLO = `import { ApolloClient, ApolloLink, CombinedGraphQLErrors, HttpLink, InMemoryCache } from '@apollo/client'
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries'
import type { DocumentNode } from 'graphql'
${CODEGEN}
${ARGUMENTS}
const byId = new PersistedQueryLink({
  generateHash: (document: DocumentNode) => (document as DocumentNode & { __meta__: { hash: string } }).__meta__.hash,
  disable: () => false,
})
const client = new ApolloClient({
  link: ApolloLink.from([byId, new HttpLink({ uri: url, headers: { authorization } })]),
  cache: new InMemoryCache(),
})
async function main() {
  const home = await client.query({ query: HomeQueryDocument, variables: { first: 1 } })
  // @ts-expect-error the variable is a number
  void (() => client.query({ query: HomeQueryDocument, variables: { first: 'one' } }))
  const made = await client.mutate({
    mutation: HomeMutationDocument, variables: { input: { name: 'apollo' }, fileId: 'file_none' }, errorPolicy: 'all',
  })
  console.log(JSON.stringify({
    organization: home.data?.organization?.name,
    collection: firstCollection(home.data as ResultOf<typeof HomeQueryDocument>),
    key: made.data?.createApiKey?.key,
    file: made.data?.deleteFile,
    errors: CombinedGraphQLErrors.is(made.error) ? made.error.errors : made.error,
  }))
}
main()
`

const URQL = `import { Client, fetchExchange } from '@urql/core'
import { persistedExchange } from '@urql/exchange-persisted'
import type { DocumentNode } from 'graphql'
${CODEGEN}
${ARGUMENTS}
const byId = persistedExchange({
  generateHash: async (_, document) => (document as DocumentNode & { __meta__: { hash: string } }).__meta__.hash,
  enforcePersistedQueries: true,
  enableForMutation: true,
  preferGetForPersistedQueries: false,
})
const client = new Client({ url, exchanges: [byId, fetchExchange], fetchOptions: { headers: { authorization } } })
async function main() {
  const home = await client.query(HomeQueryDocument, { first: 1 })
  // @ts-expect-error the variable is a number
  void (() => client.query(HomeQueryDocument, { first: 'one' }))
  const made = await client.mutation(HomeMutationDocument, { input: { name: 'urql' }, fileId: 'file_none' })
  console.log(JSON.stringify({
    organization: home.data?.organization?.name,
    collection: home.data && firstCollection(home.data),
    key: made.data?.createApiKey?.key,
    file: made.data?.deleteFile,
    errors: made.error?.graphQLErrors,
  }))
}
main()
`

const RELAY = `import { commitMutation, Environment, fetchQuery, Network, type PayloadError, readInlineData, RecordSource, Store } from 'relay-runtime'
import type { GraphQLResponse } from 'relay-runtime'
import collectionFragment, { type Home_collection$key } from './__generated__/Home_collection.graphql'
import mutation, { type HomeMutation } from './__generated__/HomeMutation.graphql'
import query, { type HomeQuery, type HomeQuery$data } from './__generated__/HomeQuery.graphql'

${ARGUMENTS}
const environment = new Environment({
  store: new Store(new RecordSource()),
  network: Network.create(async ({ id }, variables) => {
    const body = JSON.stringify({ documentId: id, variables })
    const response = await fetch(url, { method: 'POST', headers: { authorization, 'content-type': 'application/json' }, body })
    return (await response.json()) as GraphQLResponse
  }),
})
function firstCollection({ collections }: HomeQuery$data): string | undefined {
  // @ts-expect-error a part that fails is null
  collections.edges
  const [edge] = collections?.edges ?? []
  if (!edge) return undefined
  const key: Home_collection$key = edge.node
  const collection = readInlineData(collectionFragment, key)
  const chunks: number = collection.chunkCount
  // @ts-expect-error the fragment does not select it
  collection.createdAt
  return \`\${collection.name}, \${chunks} chunks, \${collection.embeddingModel?.id}\`
}
async function main() {
  const home = await fetchQuery<HomeQuery>(environment, query, { first: 1 }).toPromise()
  // @ts-expect-error the variable is a number
  void (() => fetchQuery<HomeQuery>(environment, query, { first: 'one' }))
  const variables = { input: { name: 'relay' }, fileId: 'file_none' }
  const made = await new Promise<{ data: HomeMutation['response'], errors: readonly PayloadError[] | null | undefined }>((resolve, reject) =>
    commitMutation<HomeMutation>(environment, {
      mutation, variables, onCompleted: (data, errors) => resolve({ data, errors }), onError: reject,
    }))
  console.log(JSON.stringify({
    organization: home?.organization?.name,
    collection: home && firstCollection(home),
    key: made.data.createApiKey?.key,
    file: made.data.deleteFile,
    errors: made.errors,
  }))
}
main()
`

export const PROGRAMS = { apollo: APOLLO, urql: URQL, relay: RELAY } as const
