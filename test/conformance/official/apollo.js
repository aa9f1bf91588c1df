import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { createClient } from 'graphql-ws'
import { TIMEOUT_MS, URL } from './cases.js'
import { runGraphqlCases } from './graphql-cases.js'

await runGraphqlCases((key, { hurried }) => {
  const authorization = `Bearer ${key}`
  const http = new HttpLink({ uri: `${URL}/graphql`, headers: { authorization } })
  const sockets = new GraphQLWsLink(
    createClient({ url: `${URL.replace('http', 'ws')}/graphql`, connectionParams: { authorization }, retryAttempts: 0 }),
  )
  const link = ApolloLink.split(({ operationType }) => operationType === 'subscription', sockets, http)
  const client = new ApolloClient({ link, cache: new InMemoryCache() })
  const contextOf = () => (hurried ? { fetchOptions: { signal: AbortSignal.timeout(TIMEOUT_MS) } } : {})
  return {
    query: async (text, variables) => (await client.query({ query: gql(text), variables })).data,
    mutate: async (text, variables) => (await client.mutate({ mutation: gql(text), variables, context: contextOf() })).data,
    async *subscribe(text, variables) {
      const observable = client.subscribe({ query: gql(text), variables })
      const results = iterate((sink) => {
        const subscription = observable.subscribe(sink)
        return () => subscription.unsubscribe()
      })
      for await (const { data, error } of results) {
        if (error) throw error
        yield data
      }
    },
  }
})

/** The values of a subscription as an iterable. `subscribe` gets a sink, and returns what ends the subscription. */
async function* iterate(subscribe) {
  const values = []
  let changed = Promise.withResolvers()
  let end = null
  const finish = (result) => {
    end = result
    changed.resolve()
  }
  const unsubscribe = subscribe({
    next(value) {
      values.push(value)
      changed.resolve()
    },
    error: (error) => finish({ error }),
    complete: () => finish({}),
  })
  try {
    for (;;) {
      yield* values.splice(0)
      if (end?.error) throw end.error
      if (end) return
      await changed.promise
      changed = Promise.withResolvers()
    }
  } finally {
    unsubscribe()
  }
}
