import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import { collect, KEY, MODEL, runCases, TIMEOUT_MS, thrown, thrownErrors, URL, WEATHER } from './cases.js'

const open = (apiKey, options) =>
  new Runner({
    modelProvider: new OpenAIProvider({ openAIClient: new OpenAI({ baseURL: `${URL}/v1`, apiKey, maxRetries: 0, ...options }) }),
    tracingDisabled: true,
  })
const runner = open(KEY)
const agent = new Agent({ name: 'Helper', model: MODEL })

await runCases({
  async chat(prompt) {
    const { finalOutput, state } = await runner.run(agent, prompt)
    return { text: finalOutput, input: state.usage.inputTokens, output: state.usage.outputTokens }
  },
  stream: async (prompt) => collect((await runner.run(agent, prompt, { stream: true })).toTextStream()),
  async tools(prompt) {
    const calls = []
    const execute = (args) => {
      calls.push({ name: 'weather', arguments: args })
      return WEATHER
    }
    const weather = tool({ name: 'weather', description: 'The weather', parameters: z.object({ city: z.string() }), execute })
    const { finalOutput } = await runner.run(new Agent({ name: 'Helper', model: MODEL, tools: [weather] }), prompt)
    return { text: finalOutput, calls }
  },
  async structured(prompt) {
    const outputType = z.object({ capital: z.string() })
    return (await runner.run(new Agent({ name: 'Helper', model: MODEL, outputType }), prompt)).finalOutput
  },
  errors: () => thrownErrors(({ key, model, prompt }) => open(key).run(new Agent({ name: 'Helper', model }), prompt)),
  async abort(prompt) {
    const controller = new AbortController()
    const result = await runner.run(agent, prompt, { stream: true, signal: controller.signal })
    for await (const text of result.toTextStream()) {
      if (!text) continue
      controller.abort()
      return { text }
    }
  },
  timeout: (prompt) => thrown(() => open(KEY, { timeout: TIMEOUT_MS }).run(agent, prompt)),
})
