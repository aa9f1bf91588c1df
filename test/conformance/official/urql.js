import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import { createClient } from 'graphql-ws'
import { toAsyncIterable } from 'wonka'
import { TIMEOUT_MS, URL } from './cases.js'
import { runGraphqlCases } from './graphql-cases.js'

/** The client has no timeout of its own, but takes a fetch that has one. */
const hurriedFetch = (url, options) =>
  fetch(url, { ...options, signal: AbortSignal.any([options.signal, AbortSignal.timeout(TIMEOUT_MS)]) })

function readData({ data, error }) {
  if (error) throw error
  return data
}

await runGraphqlCases((key, { hurried }) => {
  const authorization = `Bearer ${key}`
  const sockets = createClient({ url: `${URL.replace('http', 'ws')}/graphql`, connectionParams: { authorization }, retryAttempts: 0 })
  const forwardSubscription = (request) => ({
    subscribe: (sink) => ({ unsubscribe: sockets.subscribe({ ...request, query: request.query ?? '' }, sink) }),
  })
  const client = new Client({
    url: `${URL}/graphql`,
    fetchOptions: { headers: { authorization } },
    exchanges: [fetchExchange, subscriptionExchange({ forwardSubscription })],
    ...(hurried && { fetch: hurriedFetch }),
  })
  return {
    query: async (text, variables) => readData(await client.query(text, variables)),
    mutate: async (text, variables) => readData(await client.mutation(text, variables)),
    async *subscribe(text, variables) {
      for await (const result of toAsyncIterable(client.subscription(text, variables))) yield readData(result)
    },
  }
})
