import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { createClient } from 'graphql-ws'
import { collect, KEY, MODEL, runCases, TIMEOUT_MS, URL } from './cases.js'
import { CHAT, COLLECTIONS, CREATE, chatOf, first, iterate, STREAM, thrownGraphql } from './graphql-cases.js'

function connect(key) {
  const authorization = `Bearer ${key}`
  const http = new HttpLink({ uri: `${URL}/graphql`, headers: { authorization } })
  const sockets = new GraphQLWsLink(
    createClient({ url: `${URL.replace('http', 'ws')}/graphql`, connectionParams: { authorization }, retryAttempts: 0 }),
  )
  const link = ApolloLink.split(({ operationType }) => operationType === 'subscription', sockets, http)
  return new ApolloClient({ link, cache: new InMemoryCache() })
}

const client = connect(KEY)
const chat = (prompt, context = {}, model = MODEL, by = client) =>
  by.mutate({ mutation: gql(CHAT), variables: chatOf(prompt, model), context })
async function* stream(prompt) {
  const observable = client.subscribe({ query: gql(STREAM), variables: chatOf(prompt, MODEL) })
  const results = iterate((sink) => {
    const subscription = observable.subscribe(sink)
    return () => subscription.unsubscribe()
  })
  for await (const { data, error } of results) {
    if (error) throw error
    yield data.chatCompletion.textDelta
  }
}

await runCases({
  async chat(prompt) {
    const { text, usage } = (await chat(prompt)).data.createChatCompletion
    return { text, input: usage.promptTokens, output: usage.completionTokens }
  },
  stream: (prompt) => collect(stream(prompt)),
  async lists() {
    const input = { code: 'kept', name: 'Kept', embeddingModel: 'e5-small-ar-en' }
    const { collection } = (await client.mutate({ mutation: gql(CREATE), variables: { input } })).data.createCollection
    const { collections } = (await client.query({ query: gql(COLLECTIONS) })).data
    return { created: collection.name, collections: collections.edges.map(({ node }) => node.name) }
  },
  async errors() {
    return {
      key: await thrownGraphql(() => chat('chat', {}, MODEL, connect('kis_live_wrong'))),
      model: await thrownGraphql(() => chat('chat', {}, 'no-such-model')),
      vendor: await thrownGraphql(() => chat(`refused, asked by ${process.env.KIS_CLIENT}`)),
      subscription: await thrownGraphql(() => first(stream(`refused, asked by ${process.env.KIS_CLIENT}`))),
    }
  },
  abort: async (prompt) => ({ text: await first(stream(prompt)) }),
  timeout: (prompt) => thrownGraphql(() => chat(prompt, { fetchOptions: { signal: AbortSignal.timeout(TIMEOUT_MS) } })),
})
