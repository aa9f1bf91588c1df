import OpenAI from 'openai'
import { type ConformanceClient, PARAMETERS, type Prompt, type Thrown, type Understood } from './clients.ts'

/** The official OpenAI client for Node. */
export function openaiNode(baseUrl: string, apiKey: string): ConformanceClient {
  const { chat } = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0 })
  return {
    name: 'openai for Node',
    complete: async (prompt) => understood(await chat.completions.create(createRequest(prompt))),
    stream: async (prompt) => understood(await chat.completions.stream(createStreamRequest(prompt)).finalChatCompletion()),
    async failure(prompt, isStream) {
      if (!isStream) return thrownBy(() => chat.completions.create(createRequest(prompt)))
      let text = ''
      return thrownBy(
        async () => {
          for await (const chunk of await chat.completions.create({ ...createRequest(prompt), stream: true }))
            text += chunk.choices[0]?.delta.content ?? ''
        },
        () => text,
      )
    },
    async disconnect(prompt) {
      for await (const chunk of await chat.completions.create({ ...createRequest(prompt), stream: true }))
        if (chunk.choices[0]?.delta.content) break
    },
    close: async () => undefined,
  }
}

const createStreamRequest = (prompt: Prompt) => ({
  ...createRequest(prompt),
  stream: true as const,
  stream_options: { include_usage: true },
})

function createRequest({ model, text, image, tools, schema, after }: Prompt): OpenAI.ChatCompletionCreateParamsNonStreaming {
  const content: OpenAI.ChatCompletionContentPart[] | string = image
    ? [
        { type: 'text', text },
        { type: 'image_url', image_url: { url: `data:${image.mediaType};base64,${image.base64}` } },
      ]
    : text
  return {
    model,
    messages: [
      { role: 'user', content },
      ...(after
        ? [toAssistantMessage(after), ...after.calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: after.result }))]
        : []),
    ],
    ...(tools && { tools: tools.map((name) => ({ type: 'function' as const, function: { name, parameters: PARAMETERS } })) }),
    ...(schema && {
      response_format: {
        type: 'json_schema' as const,
        json_schema: { name: 'answer', strict: true, schema: schema as Record<string, unknown> },
      },
    }),
  }
}

function toAssistantMessage({ calls }: NonNullable<Prompt['after']>): OpenAI.ChatCompletionAssistantMessageParam {
  return {
    role: 'assistant',
    tool_calls: calls.map(({ id, name, arguments: args }) => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    })),
  }
}

function understood({ choices, usage }: OpenAI.ChatCompletion): Understood {
  const { message, finish_reason } = choices[0]!
  const calls = (message.tool_calls ?? []).filter((call) => call.type === 'function')
  return {
    text: message.content ?? '',
    calls: calls.map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: JSON.parse(text) })),
    ended: finish_reason === 'tool_calls' ? 'tools' : finish_reason,
    usage: usage
      ? { prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details?.cached_tokens ?? 0, completion: usage.completion_tokens }
      : null,
  }
}

async function thrownBy(run: () => Promise<unknown>, text: () => string = () => ''): Promise<Thrown> {
  try {
    await run()
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error
    return { status: error.status ?? null, word: error.code ?? null, requestId: error.requestID ?? null, text: text() }
  }
  throw new Error('the request succeeded')
}
