import Anthropic from '@anthropic-ai/sdk'
import { type ConformanceClient, PARAMETERS, type Prompt, type Thrown, type Understood } from './clients.ts'

const MAX_TOKENS = 500

/** The official Anthropic client for Node, over `/v1/messages`. */
export function anthropicNode(baseUrl: string, apiKey: string): ConformanceClient {
  const { messages } = new Anthropic({ baseURL: baseUrl, apiKey, authToken: null, maxRetries: 0 })
  return {
    name: 'the Anthropic client for Node',
    complete: async (prompt) => understood(await messages.create(createRequest(prompt))),
    stream: async (prompt) => understood(await messages.stream(createRequest(prompt)).finalMessage()),
    async failure(prompt, isStream) {
      if (!isStream) return thrownBy(() => messages.create(createRequest(prompt)))
      let text = ''
      return thrownBy(
        async () => {
          for await (const event of await messages.create({ ...createRequest(prompt), stream: true })) text += readText(event)
        },
        () => text,
      )
    },
    async disconnect(prompt) {
      const stream = await messages.create({ ...createRequest(prompt), stream: true })
      for await (const event of stream) if (readText(event)) break
    },
    close: async () => undefined,
  }
}

function createRequest({ model, text, image, tools, schema, after }: Prompt): Anthropic.MessageCreateParamsNonStreaming {
  const content: Anthropic.ContentBlockParam[] = [{ type: 'text', text }]
  if (image) content.push({ type: 'image', source: { type: 'base64', media_type: image.mediaType, data: image.base64 } })
  return {
    model,
    max_tokens: MAX_TOKENS,
    messages: [{ role: 'user', content }, ...(after ? createTurns(after) : [])],
    ...(tools && { tools: tools.map((name) => ({ name, input_schema: { ...PARAMETERS, required: [...PARAMETERS.required] } })) }),
    ...(schema && { output_config: { format: { type: 'json_schema', schema: schema as Record<string, unknown> } } }),
  }
}

function createTurns({ calls, result }: NonNullable<Prompt['after']>): Anthropic.MessageParam[] {
  return [
    { role: 'assistant', content: calls.map(({ id, name, arguments: input }) => ({ type: 'tool_use', id, name, input })) },
    { role: 'user', content: calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: result })) },
  ]
}

function understood({ content, stop_reason, usage }: Anthropic.Message): Understood {
  const cached = usage.cache_read_input_tokens ?? 0
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [{ id: block.id, name: block.name, arguments: block.input }] : [])),
    ended: stop_reason === 'tool_use' ? 'tools' : stop_reason === 'end_turn' ? 'stop' : String(stop_reason),
    usage: { prompt: usage.input_tokens + cached, cached, completion: usage.output_tokens },
  }
}

function readText(event: Anthropic.MessageStreamEvent): string {
  return event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : ''
}

async function thrownBy(run: () => Promise<unknown>, text: () => string = () => ''): Promise<Thrown> {
  try {
    await run()
  } catch (error) {
    if (!(error instanceof Anthropic.APIError)) throw error
    return { status: error.status ?? null, word: error.type ?? null, requestId: error.requestID ?? null, text: text() }
  }
  throw new Error('the request succeeded')
}
