import { thrown } from './cases.js'

export const COLLECTIONS = `query Collections { collections(first: 10) { edges { node { id name } } } }`
export const CREATE = `mutation Create($input: CreateCollectionInput!) { createCollection(input: $input) { collection { id name } } }`
export const CHAT = `mutation Chat($input: ChatCompletionInput!) { createChatCompletion(input: $input) { text usage { promptTokens completionTokens } } }`
export const STREAM = `subscription Stream($input: ChatCompletionInput!) { chatCompletion(input: $input) { textDelta } }`

export const chatOf = (content, model) => ({ input: { request: { model, messages: [{ role: 'user', content }] } } })

/** Returns the first code of an error of the client, and whether the client took it for the answer's or the network's. */
export async function thrownGraphql(run) {
  let error
  const { name, message } = await thrown(() =>
    run().catch((caught) => {
      error = caught
      throw caught
    }),
  )
  return { name, message, code: (error.errors ?? error.graphQLErrors)?.[0]?.extensions?.code ?? null }
}

/** The values of a subscription as an iterable. `subscribe` gets a sink, and returns what ends the subscription. */
export async function* iterate(subscribe) {
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

/** Returns the first text of a stream, and leaves the stream. */
export async function first(pieces) {
  for await (const piece of pieces) if (piece) return piece
}
