import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { z } from 'zod'
import { collect, EMBEDDING_MODEL, KEY, MODEL, mapped, runCases, TEXTS, TIMEOUT_MS, thrown, thrownErrors, URL, WEATHER } from './cases.js'

const configuration = { baseURL: `${URL}/v1` }
const open = (options) => new ChatOpenAI({ model: MODEL, apiKey: KEY, configuration, maxRetries: 0, ...options })
const chat = open()

await runCases({
  async chat(prompt) {
    const { text, usage_metadata } = await chat.invoke(prompt)
    return { text, input: usage_metadata.input_tokens, output: usage_metadata.output_tokens }
  },
  stream: async (prompt) => collect(mapped(await chat.stream(prompt), ({ text }) => text)),
  async tools(prompt) {
    const weather = tool(() => WEATHER, { name: 'weather', description: 'The weather', schema: z.object({ city: z.string() }) })
    const withTools = chat.bindTools([weather])
    const toolReply = await withTools.invoke([new HumanMessage(prompt)])
    const results = await Promise.all(toolReply.tool_calls.map((call) => weather.invoke(call)))
    if (!results.every((result) => result instanceof ToolMessage)) throw new Error('a tool gave no message')
    const { text } = await withTools.invoke([new HumanMessage(prompt), toolReply, ...results])
    return { text, calls: toolReply.tool_calls.map((call) => ({ name: call.name, arguments: call.args })) }
  },
  structured: (prompt) => chat.withStructuredOutput(z.object({ capital: z.string() })).invoke(prompt),
  embeddings: () => new OpenAIEmbeddings({ model: EMBEDDING_MODEL, apiKey: KEY, configuration, maxRetries: 0 }).embedDocuments(TEXTS),
  errors: () => thrownErrors(({ key, model, prompt }) => open({ apiKey: key, model }).invoke(prompt)),
  async abort(prompt) {
    const controller = new AbortController()
    for await (const { text } of await chat.stream(prompt, { signal: controller.signal })) {
      if (!text) continue
      controller.abort()
      return { text }
    }
  },
  timeout: (prompt) => thrown(() => open({ timeout: TIMEOUT_MS }).invoke(prompt)),
})
