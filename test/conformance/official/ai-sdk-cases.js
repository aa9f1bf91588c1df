import { embedMany, generateText, Output, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { collect, KEY, MODEL, runCases, TEXTS, TIMEOUT_MS, thrown, thrownErrors, WEATHER } from './cases.js'

/** Runs the cases of the AI SDK with one of its providers. `embedder` is null where the provider has none. */
export function runAiSdkCases(open, embedder) {
  const model = open(KEY)(MODEL)
  const common = { model, maxRetries: 0 }
  return runCases({
    async chat(prompt) {
      const { text, usage } = await generateText({ ...common, prompt })
      return { text, input: usage.inputTokens, output: usage.outputTokens }
    },
    stream: (prompt) => collect(streamText({ ...common, prompt }).textStream),
    async tools(prompt) {
      const weather = tool({ description: 'The weather', inputSchema: z.object({ city: z.string() }), execute: () => WEATHER })
      const { text, steps } = await generateText({ ...common, prompt, tools: { weather }, stopWhen: stepCountIs(3) })
      const calls = steps.flatMap(({ toolCalls }) => toolCalls)
      return { text, calls: calls.map(({ toolName, input }) => ({ name: toolName, arguments: input })) }
    },
    async structured(prompt) {
      const output = Output.object({ schema: z.object({ capital: z.string() }) })
      return (await generateText({ ...common, prompt, output })).output
    },
    ...(embedder && { embeddings: async () => (await embedMany({ model: embedder, values: TEXTS, maxRetries: 0 })).embeddings }),
    errors: () => thrownErrors(({ key, model: id, prompt }) => generateText({ model: open(key)(id), maxRetries: 0, prompt })),
    async abort(prompt) {
      const controller = new AbortController()
      for await (const text of streamText({ ...common, prompt, abortSignal: controller.signal, onError: () => undefined }).textStream) {
        if (!text) continue
        controller.abort()
        return { text }
      }
    },
    timeout: (prompt) => thrown(() => generateText({ ...common, prompt, abortSignal: AbortSignal.timeout(TIMEOUT_MS) })),
  })
}
