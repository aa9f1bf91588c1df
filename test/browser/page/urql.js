import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import { persistedExchange } from '@urql/exchange-persisted'
import { createResumingClient } from 'resuming-client'
import { work } from './work.js'

const { url, key, ...rest } = window.settings
const sockets = createResumingClient(url.replace('http', 'ws'), key)
const client = new Client({
  url,
  fetchOptions: { headers: { authorization: `Bearer ${key}` } },
  exchanges: [
    persistedExchange({ preferGetForPersistedQueries: true }),
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query, variables }) => ({
        subscribe: (sink) => ({ unsubscribe: sockets.subscribe({ query, variables }, sink) }),
      }),
    }),
  ],
})

async function run(text, variables) {
  const request = text.startsWith('mutation') ? client.mutation(text, variables) : client.query(text, variables)
  const { data, error } = await request.toPromise()
  if (error) throw error
  return data
}

function subscribe(text, variables, { next, error: fail, complete }) {
  client.subscription(text, variables).subscribe(({ data, error, hasNext }) => {
    if (error) fail(error)
    else if (data) next(data)
    if (hasNext === false) complete()
  })
}

await work({ run, subscribe, sockets }, rest)
