import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import { createClient } from 'graphql-ws'
import { toAsyncIterable } from 'wonka'
import { collect, KEY, MODEL, runCases, TIMEOUT_MS, URL } from './cases.js'
import { CHAT, COLLECTIONS, CREATE, chatOf, first, STREAM, thrownGraphql } from './graphql-cases.js'

function connect(key, fetch = globalThis.fetch) {
  const authorization = `Bearer ${key}`
  const sockets = createClient({ url: `${URL.replace('http', 'ws')}/graphql`, connectionParams: { authorization }, retryAttempts: 0 })
  const forwardSubscription = (request) => ({
    subscribe: (sink) => ({ unsubscribe: sockets.subscribe({ ...request, query: request.query ?? '' }, sink) }),
  })
  return new Client({
    url: `${URL}/graphql`,
    fetchOptions: { headers: { authorization } },
    fetch,
    exchanges: [fetchExchange, subscriptionExchange({ forwardSubscription })],
  })
}

const client = connect(KEY)

async function run(operation) {
  const { data, error } = await operation
  if (error) throw error
  return data
}

const chat = (prompt, model = MODEL, by = client) => run(by.mutation(CHAT, chatOf(prompt, model)))

async function* stream(prompt) {
  for await (const { data, error } of toAsyncIterable(client.subscription(STREAM, chatOf(prompt, MODEL)))) {
    if (error) throw error
    yield data.chatCompletion.textDelta
  }
}

await runCases({
  async chat(prompt) {
    const { text, usage } = (await chat(prompt)).createChatCompletion
    return { text, input: usage.promptTokens, output: usage.completionTokens }
  },
  stream: (prompt) => collect(stream(prompt)),
  async lists() {
    const input = { code: 'kept', name: 'Kept', embeddingModel: 'e5-small-ar-en' }
    const { collection } = (await run(client.mutation(CREATE, { input }))).createCollection
    const { collections } = await run(client.query(COLLECTIONS, {}))
    return { created: collection.name, collections: collections.edges.map(({ node }) => node.name) }
  },
  async errors() {
    return {
      key: await thrownGraphql(() => chat('chat', MODEL, connect('kis_live_wrong'))),
      model: await thrownGraphql(() => chat('chat', 'no-such-model')),
      vendor: await thrownGraphql(() => chat(`refused, asked by ${process.env.KIS_CLIENT}`)),
      subscription: await thrownGraphql(() => first(stream(`refused, asked by ${process.env.KIS_CLIENT}`))),
    }
  },
  abort: async (prompt) => ({ text: await first(stream(prompt)) }),
  // The client has no timeout of its own: its fetch has one.
  timeout(prompt) {
    const hurried = (url, options) => fetch(url, { ...options, signal: AbortSignal.any([options.signal, AbortSignal.timeout(TIMEOUT_MS)]) })
    return thrownGraphql(() => chat(prompt, MODEL, connect(KEY, hurried)))
  },
})
