import { collect, EMBEDDING_MODEL, MODEL, runCases, TEXTS, thrown, WEATHER } from './cases.js'

const COLLECTIONS = `query Collections { collections(first: 10) { edges { node { id name } } } }`
const CREATE = `mutation Create($input: CreateCollectionInput!) { createCollection(input: $input) { collection { id name } } }`
const CHAT = `mutation Chat($input: ChatCompletionInput!) {
  createChatCompletion(input: $input) { text response choices { toolCalls { id name arguments } } usage { promptTokens completionTokens } }
}`
const EMBED = `mutation Embed($input: EmbeddingsInput!) { createEmbeddings(input: $input) { data { index float } } }`
const STREAM = `subscription Stream($input: ChatCompletionInput!) { chatCompletion(input: $input) { textDelta } }`
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false }
const RESPONSE_SCHEMA = { type: 'object', properties: { capital: { type: 'string' } }, required: ['capital'], additionalProperties: false }

const userMessage = (content) => ({ role: 'user', content })
const inputOf = (prompt, rest) => ({ input: { request: { model: MODEL, messages: [userMessage(prompt)], ...rest } } })

/**
 * Runs the cases of a GraphQL client. `connect` gives its operations for a key: `query` and `mutate` return the data,
 * `subscribe` an iterable of it. With `hurried`, they give up after the timeout.
 */
export function runGraphqlCases(connect) {
  const { query, mutate, subscribe } = connect(process.env.KIS_API_KEY, { hurried: false })
  const chat = async (prompt, rest, by = mutate) => (await by(CHAT, inputOf(prompt, rest))).createChatCompletion
  async function* stream(prompt) {
    for await (const { chatCompletion } of subscribe(STREAM, inputOf(prompt))) yield chatCompletion.textDelta
  }

  return runCases({
    async chat(prompt) {
      const { text, usage } = await chat(prompt)
      return { text, input: usage.promptTokens, output: usage.completionTokens }
    },
    stream: (prompt) => collect(stream(prompt)),
    async tools(prompt) {
      const tools = [{ type: 'function', function: { name: 'weather', description: 'The weather', parameters: CITY } }]
      const { response, choices } = await chat(prompt, { tools })
      const [{ toolCalls }] = choices
      const results = toolCalls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: WEATHER }))
      const messages = [userMessage(prompt), response.choices[0].message, ...results]
      const { text } = await chat(prompt, { tools, messages })
      return { text, calls: toolCalls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) })) }
    },
    async structured(prompt) {
      const response_format = { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: RESPONSE_SCHEMA } }
      return JSON.parse((await chat(prompt, { response_format })).text)
    },
    async embeddings() {
      const { createEmbeddings } = await mutate(EMBED, { input: { model: EMBEDDING_MODEL, input: TEXTS } })
      return createEmbeddings.data.map(({ float }) => float)
    },
    async errors() {
      const refused = `refused, asked by ${process.env.KIS_CLIENT}`
      return {
        key: await thrown(() => chat('chat', {}, connect('kis_live_wrong', { hurried: false }).mutate)),
        model: await thrown(() => chat('chat', { model: 'no-such-model' })),
        vendor: await thrown(() => chat(refused)),
        subscription: await thrown(() => first(stream(refused))),
      }
    },
    abort: async (prompt) => ({ text: await first(stream(prompt)) }),
    timeout: (prompt) => thrown(() => chat(prompt, {}, connect(process.env.KIS_API_KEY, { hurried: true }).mutate)),
    async lists() {
      const input = { code: 'kept', name: 'Kept', embeddingModel: EMBEDDING_MODEL }
      const { collection } = (await mutate(CREATE, { input })).createCollection
      const { collections } = await query(COLLECTIONS, {})
      return { created: collection.name, collections: collections.edges.map(({ node }) => node.name) }
    },
  })
}

/** Returns the first text of a stream, and leaves the stream. */
async function first(pieces) {
  for await (const piece of pieces) if (piece) return piece
}
