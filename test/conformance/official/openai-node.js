import OpenAI, { toFile } from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { collect, EMBEDDING_MODEL, KEY, MODEL, mapped, runCases, TEXTS, TIMEOUT_MS, thrown, thrownErrors, URL, WEATHER } from './cases.js'

const open = (options) => new OpenAI({ baseURL: `${URL}/v1`, apiKey: KEY, maxRetries: 0, ...options })
const client = open()
const request = (content, model = MODEL) => ({ model, messages: [{ role: 'user', content }] })

await runCases({
  async chat(prompt) {
    const { choices, usage } = await client.chat.completions.create(request(prompt))
    return { text: choices[0].message.content, input: usage.prompt_tokens, output: usage.completion_tokens }
  },
  stream: async (prompt) => collect(mapped(client.chat.completions.stream(request(prompt)), ({ choices }) => choices[0]?.delta.content)),
  async tools(prompt) {
    const calls = []
    const parameters = z.toJSONSchema(z.object({ city: z.string() }))
    const toolResult = (city) => {
      calls.push({ name: 'weather', arguments: city })
      return WEATHER
    }
    const runner = client.chat.completions.runTools({
      ...request(prompt),
      tools: [{ type: 'function', function: { name: 'weather', parameters, parse: JSON.parse, function: toolResult } }],
    })
    return { text: await runner.finalContent(), calls }
  },
  async structured(prompt) {
    const response_format = zodResponseFormat(z.object({ capital: z.string() }), 'answer')
    return (await client.chat.completions.parse({ ...request(prompt), response_format })).choices[0].message.parsed
  },
  embeddings: async () =>
    (await client.embeddings.create({ model: EMBEDDING_MODEL, input: TEXTS })).data.map(({ embedding }) => [...embedding]),
  errors: () => thrownErrors(({ key, model, prompt }) => open({ apiKey: key }).chat.completions.create(request(prompt, model))),
  async abort(prompt) {
    const stream = await client.chat.completions.create({ ...request(prompt), stream: true })
    for await (const { choices } of stream) if (choices[0]?.delta.content) return { text: choices[0].delta.content }
  },
  timeout: (prompt) => thrown(() => client.chat.completions.create(request(prompt), { timeout: TIMEOUT_MS })),
  async lists() {
    const models = []
    for await (const { id } of client.models.list()) models.push(id)
    const uploaded = []
    for (const name of ['a.txt', 'b.txt', 'c.txt'])
      uploaded.push((await client.files.create({ file: await toFile(Buffer.from(name), name), purpose: 'assistants' })).id)
    const files = []
    for await (const { id } of client.files.list({ limit: 2 })) files.push(id)
    return { models, uploaded, files }
  },
})
