import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { z } from 'zod'
import { collect, KEY, MODEL, mapped, runCases, TIMEOUT_MS, thrown, thrownErrors, URL, WEATHER } from './cases.js'

const open = (options) => new Anthropic({ baseURL: URL, apiKey: KEY, maxRetries: 0, ...options })
const client = open()
const request = (content, model = MODEL) => ({ model, max_tokens: 500, messages: [{ role: 'user', content }] })
const readDelta = (event) => (event.type === 'content_block_delta' ? event.delta.text : undefined)

await runCases({
  async chat(prompt) {
    const { content, usage } = await client.messages.create(request(prompt))
    return { text: content[0].text, input: usage.input_tokens, output: usage.output_tokens }
  },
  stream: (prompt) => collect(mapped(client.messages.stream(request(prompt)), readDelta)),
  async tools(prompt) {
    const calls = []
    const run = (args) => {
      calls.push({ name: 'weather', arguments: args })
      return WEATHER
    }
    const tool = betaZodTool({ name: 'weather', inputSchema: z.object({ city: z.string() }), description: 'The weather', run })
    const { content } = await client.beta.messages.toolRunner({ ...request(prompt), tools: [tool] })
    return { text: content[0].text, calls }
  },
  async structured(prompt) {
    const output_config = { format: zodOutputFormat(z.object({ capital: z.string() })) }
    return (await client.messages.parse({ ...request(prompt), output_config })).parsed_output
  },
  errors: () => thrownErrors(({ key, model, prompt }) => open({ apiKey: key }).messages.create(request(prompt, model))),
  async abort(prompt) {
    for await (const event of await client.messages.create({ ...request(prompt), stream: true }))
      if (readDelta(event)) return { text: readDelta(event) }
  },
  timeout: (prompt) => thrown(() => client.messages.create(request(prompt), { timeout: TIMEOUT_MS })),
  async lists() {
    const models = []
    for await (const { id } of client.models.list({ limit: 2 })) models.push(id)
    return { models }
  },
})
