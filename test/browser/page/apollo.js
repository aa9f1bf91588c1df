import { ApolloClient, gql, HttpLink, InMemoryCache, split } from '@apollo/client'
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { createResumingClient } from 'resuming-client'
import { work } from './work.js'

const { url, key, ...rest } = window.settings
const sockets = createResumingClient(url.replace('http', 'ws'), key)
const persisted = new PersistedQueryLink({
  useGETForHashedQueries: true,
  async sha256(text) {
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
  },
})
const http = persisted.concat(new HttpLink({ uri: url, headers: { authorization: `Bearer ${key}` } }))
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: split(({ operationType }) => operationType === 'subscription', new GraphQLWsLink(sockets), http),
})

async function run(text, variables) {
  const document = gql(text)
  const { data } = text.startsWith('mutation')
    ? await client.mutate({ mutation: document, variables })
    : await client.query({ query: document, variables })
  return data
}

function subscribe(text, variables, { next, error: fail, complete }) {
  client.subscribe({ query: gql(text), variables, fetchPolicy: 'no-cache' }).subscribe({
    next: ({ data, error }) => (error ? fail(error) : next(data)),
    complete,
  })
}

await work({ run, subscribe, sockets }, rest)
