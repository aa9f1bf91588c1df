import OpenAI from 'openai'
import { type ConformanceClient, PARAMETERS, type Prompt, type Thrown, type Understood } from './clients.ts'

/** The official OpenAI client for Node, over `/v1/responses`. */
export function openaiResponses(baseUrl: string, apiKey: string): ConformanceClient {
  const { responses } = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0 })
  return {
    name: 'openai for Node, Responses',
    complete: async (prompt) => understood(await responses.create(createRequest(prompt))),
    stream: async (prompt) => understood(await responses.stream({ ...createRequest(prompt), stream: true }).finalResponse()),
    async failure(prompt, isStream) {
      let text = ''
      try {
        if (!isStream) await responses.create(createRequest(prompt))
        else {
          for await (const event of await responses.create({ ...createRequest(prompt), stream: true })) {
            if (event.type === 'response.output_text.delta') text += event.delta
            // The protocol's word for a failure in a stream, which the client does not throw.
            if (event.type === 'response.failed') return { status: null, word: event.response.error?.code ?? null, requestId: null, text }
          }
        }
      } catch (error) {
        if (!(error instanceof OpenAI.APIError)) throw error
        return { status: error.status ?? null, word: error.code ?? null, requestId: error.requestID ?? null, text } satisfies Thrown
      }
      throw new Error('the request succeeded')
    },
    async disconnect(prompt) {
      for await (const event of await responses.create({ ...createRequest(prompt), stream: true }))
        if (event.type === 'response.output_text.delta') break
    },
    close: async () => undefined,
  }
}

function createRequest({ model, text, image, tools, schema, after }: Prompt): OpenAI.Responses.ResponseCreateParamsNonStreaming {
  const content: OpenAI.Responses.ResponseInputContent[] = [{ type: 'input_text', text }]
  if (image) content.push({ type: 'input_image', detail: 'auto', image_url: `data:${image.mediaType};base64,${image.base64}` })
  return {
    model,
    input: [{ role: 'user', content }, ...(after ? openItems(after) : [])],
    ...(tools && { tools: tools.map((name) => ({ type: 'function' as const, name, parameters: PARAMETERS, strict: true })) }),
    ...(schema && {
      text: { format: { type: 'json_schema' as const, name: 'answer', strict: true, schema: schema as Record<string, unknown> } },
    }),
  }
}

function openItems({ calls, result }: NonNullable<Prompt['after']>): OpenAI.Responses.ResponseInputItem[] {
  return [
    ...calls.map(({ id, name, arguments: args }) => ({
      type: 'function_call' as const,
      call_id: id,
      name,
      arguments: JSON.stringify(args),
    })),
    ...calls.map(({ id }) => ({ type: 'function_call_output' as const, call_id: id, output: result })),
  ]
}

function understood({ output, output_text, status, usage }: OpenAI.Responses.Response): Understood {
  const calls = output.filter((item) => item.type === 'function_call')
  return {
    text: output_text,
    calls: calls.map(({ call_id, name, arguments: text }) => ({ id: call_id, name, arguments: JSON.parse(text) })),
    ended: status !== 'completed' ? String(status) : calls.length > 0 ? 'tools' : 'stop',
    usage: usage
      ? { prompt: usage.input_tokens, cached: usage.input_tokens_details?.cached_tokens ?? 0, completion: usage.output_tokens }
      : null,
  }
}
