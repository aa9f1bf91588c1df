import fc from 'fast-check'
import OpenAI from 'openai'
import type { ResponseInput, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { describe, expect, it } from 'vitest'
import { KisError, ModelNotFound } from '../../subgraphs/common/errors.ts'
import { KEY, type RunningAdapter, readError, startAdapter } from './support.ts'

const usage = {
  prompt_tokens: 20,
  completion_tokens: 9,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 3 },
}
const charged = { promptTokens: 20, cachedPromptTokens: 4, cacheWritePromptTokens: 0, completionTokens: 9, totalTokens: 29 }
const createCompletion = (message: object, finish_reason = 'stop', rest: object = {}) => ({
  createChatCompletion: {
    response: {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_750_000_000,
      model: 'model-of-the-vendor',
      choices: [{ index: 0, message: { role: 'assistant', refusal: null, ...message }, logprobs: null, finish_reason, ...rest }],
      usage,
    },
    warnings: [],
    usage: charged,
  },
})
const delta = (content: object, finish_reason: string | null = null, rest: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'model-of-the-vendor',
  choices: [{ index: 0, delta: content, logprobs: null, finish_reason, ...rest }],
})
const usageChunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'model-of-the-vendor', choices: [], usage }

const createClient = (adapter: RunningAdapter) => new OpenAI({ baseURL: `${adapter.url}/v1`, apiKey: KEY, maxRetries: 0 })

/** An adapter whose engine streams these chunks one by one, then fails or ends. */
function streaming(chunks: readonly object[], failure?: KisError): Promise<RunningAdapter> {
  return startAdapter({
    async *ChatCompletionChunks() {
      for (const chunk of chunks) yield { chatCompletion: { chunks: [chunk] } }
      if (failure) throw failure
      yield { chatCompletion: { chunks: [], usage: charged } }
    },
  })
}

const head = delta({ role: 'assistant', content: '', refusal: null })
const callDelta = (index: number, call: object) => delta({ tool_calls: [{ index, ...call }] })
const opened = (index: number, id: string, name: string) => callDelta(index, { id, type: 'function', function: { name, arguments: '' } })
const written = (index: number, text: string) => callDelta(index, { function: { arguments: text } })

describe('Responses API by the official client', () => {
  it('returns the whole object', async () => {
    await using adapter = await startAdapter({ ChatCompletion: () => createCompletion({ content: '30 days.' }) })
    const response = await createClient(adapter).responses.create({
      model: 'm',
      instructions: 'Be short.',
      input: 'How long is annual leave?',
      max_output_tokens: 50,
      temperature: 0.2,
      metadata: { team: 'hr' },
      store: true,
    })
    expect(response.output_text).toBe('30 days.')
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      model: 'model-of-the-vendor',
      error: null,
      incomplete_details: null,
      instructions: 'Be short.',
      max_output_tokens: 50,
      metadata: { team: 'hr' },
      parallel_tool_calls: true,
      previous_response_id: null,
      store: false,
      temperature: 0.2,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      truncation: 'disabled',
      usage: {
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 3 },
        total_tokens: 29,
      },
    })
    expect(response.id).toMatch(/^resp_/)
    expect(response.output[0]).toMatchObject({
      type: 'message',
      role: 'assistant',
      status: 'completed',
      id: expect.stringMatching(/^msg_/),
    })
    expect(adapter.gateway.received[0]?.variables).toEqual({
      input: {
        request: {
          model: 'm',
          messages: [
            { role: 'system', content: 'Be short.' },
            { role: 'user', content: 'How long is annual leave?' },
          ],
          max_completion_tokens: 50,
          temperature: 0.2,
        },
      },
    })
  })

  it('streams text, and the deltas add up to the text', async () => {
    await using adapter = await streaming([head, delta({ content: '30 ' }), delta({ content: 'days' }), delta({}, 'stop'), usageChunk])
    const events: ResponseStreamEvent[] = []
    const stream = createClient(adapter).responses.stream({ model: 'm', input: 'How long?' })
    stream.on('event', (event) => events.push(event))
    const final = await stream.finalResponse()
    expect(final.output_text).toBe('30 days')
    expect(final.usage?.total_tokens).toBe(29)
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  })

  it('separates parallel calls that arrive interleaved', async () => {
    await using adapter = await streaming([
      head,
      opened(0, 'call_a', 'weather'),
      opened(1, 'call_b', 'clock'),
      written(0, '{"city":'),
      written(1, '{"zone":'),
      written(0, '"Riyadh"}'),
      written(1, '"+3"}'),
      delta({}, 'tool_calls'),
      usageChunk,
    ])
    const final = await createClient(adapter)
      .responses.stream({ model: 'm', input: 'When?', tools: [{ type: 'function', name: 'weather', parameters: {}, strict: false }] })
      .finalResponse()
    expect(final.output).toMatchObject([
      { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: '{"city":"Riyadh"}', status: 'completed' },
      { type: 'function_call', call_id: 'call_b', name: 'clock', arguments: '{"zone":"+3"}', status: 'completed' },
    ])
  })

  it('returns reasoning before the reply, as text or, if requested, as a summary', async () => {
    const chunks = [
      head,
      delta({ reasoning_content: 'Let me ' }),
      delta({ reasoning_content: 'see.' }),
      delta({ reasoning_details: [{ type: 'reasoning.text', text: 'Let me see.', signature: 's', format: 'anthropic', index: 0 }] }),
      delta({ content: 'Yes.' }),
      delta({}, 'stop'),
      usageChunk,
    ]
    await using adapter = await streaming(chunks)
    const { output } = await createClient(adapter).responses.stream({ model: 'm', input: 'So?' }).finalResponse()
    expect(output).toMatchObject([
      { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'Let me see.' }], status: 'completed' },
      { type: 'message', content: [{ type: 'output_text', text: 'Yes.' }] },
    ])
    const summarized = await createClient(adapter)
      .responses.stream({ model: 'm', input: 'So?', reasoning: { effort: 'low', summary: 'auto' } })
      .finalResponse()
    expect(summarized.output[0]).toMatchObject({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me see.' }] })
    expect(adapter.gateway.received[1]?.variables).toMatchObject({ input: { request: { reasoning_effort: 'low' } } })

    // Sent back as it came, it is in the chat protocol's own form again.
    const input = [{ role: 'user', content: 'So?' }, ...output, { role: 'user', content: 'Why?' }] as ResponseInput
    await createClient(adapter).responses.stream({ model: 'm', input }).finalResponse()
    expect(adapter.gateway.received[2]?.variables).toEqual({
      input: {
        request: {
          model: 'm',
          messages: [
            { role: 'user', content: 'So?' },
            {
              role: 'assistant',
              content: 'Yes.',
              reasoning_content: 'Let me see.',
              reasoning_details: [{ type: 'reasoning.text', text: 'Let me see.', signature: 's', format: 'anthropic', index: 0 }],
            },
            { role: 'user', content: 'Why?' },
          ],
        },
      },
    })
  })

  it('ends as incomplete at the token limit, and by a filter with its refusal', async () => {
    await using adapter = await streaming([head, delta({ content: '30' }), delta({}, 'length'), usageChunk])
    const cut = await createClient(adapter).responses.stream({ model: 'm', input: 'How long?' }).finalResponse()
    expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, usage: { output_tokens: 9 } })
    expect(cut.output).toMatchObject([{ type: 'message', status: 'incomplete', content: [{ text: '30' }] }])

    await using other = await streaming([head, delta({ refusal: 'No.' }), delta({}, 'content_filter'), usageChunk])
    const filtered = await createClient(other).responses.stream({ model: 'm', input: 'How long?' }).finalResponse()
    expect(filtered).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
    expect(filtered.output).toMatchObject([{ type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }])
  })

  it('fails with what had arrived, and every item is closed', async () => {
    await using adapter = await streaming(
      [head, delta({ content: '30' })],
      new KisError('engine_error', 'The vendor cut the line.', { param: 'input.request.messages[0].content' }),
    )
    const events: ResponseStreamEvent[] = []
    for await (const event of await createClient(adapter).responses.create({ model: 'm', input: 'How long?', stream: true }))
      events.push(event)
    expect(events.at(-2)).toMatchObject({ type: 'response.output_item.done', item: { status: 'incomplete' } })
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: {
        status: 'failed',
        error: { code: 'engine_error', message: 'The vendor cut the line.', param: 'input', type: 'server_error' },
        output: [{ content: [{ text: '30' }] }],
        usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
      },
    })
  })

  it('is an error with a status before the first event, with the path in the request', async () => {
    const fail = () => {
      throw new KisError('invalid_type', "'messages[1].content[0].image_url.url' must be a string.", {
        param: 'messages[1].content[0].image_url.url',
      })
    }
    await using adapter = await startAdapter({ ChatCompletion: fail, ChatCompletionChunks: fail })
    for (const stream of [false, true]) {
      const body = { model: 'm', instructions: 'x', stream, input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'y' }] }] }
      const response = await adapter.fetch('/v1/responses', { body })
      expect(await readError(response.clone())).toMatchObject({ status: 400, code: 'invalid_type', param: 'input[0].content[0].image_url' })
      expect(((await response.json()) as { error: { message: string } }).error.message).toContain("'input[0].content[0].image_url'")
    }
    await using other = await startAdapter({
      ChatCompletion() {
        throw new ModelNotFound('m')
      },
    })
    await expect(createClient(other).responses.create({ model: 'm', input: 'x' })).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })

  it('processes any body, or refuses it with a path in it', async () => {
    await using adapter = await startAdapter({ ChatCompletion: () => createCompletion({ content: 'Yes.' }) })
    const fields = [
      'input',
      'instructions',
      'tools',
      'tool_choice',
      'text',
      'reasoning',
      'include',
      'metadata',
      'top_logprobs',
      'truncation',
      'user',
      'stream_options',
    ]
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom<unknown[]>(
        'auto',
        [{ type: 'function' }],
        { type: 'function' },
        { type: 'allowed_tools', tools: [] },
        { format: {} },
        { format: { type: 'json_schema' } },
        { summary: 'auto' },
      ),
    )
    const any = fc.uniqueArray(fc.tuple(fc.constantFrom(...fields), value), { selector: ([name]) => name, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(any, async (input) => {
        const response = await adapter.fetch('/v1/responses', { body: { model: 'm', input: 'Hi', ...Object.fromEntries(input) } })
        if (response.status === 200) {
          expect(await response.json()).toMatchObject({ object: 'response', status: 'completed' })
        } else {
          const { status, param } = await readError(response)
          expect(status).toBe(400)
          expect(fields).toContain(param?.match(/^\w+/)?.[0])
        }
      }),
      { numRuns: 150 },
    )
  })
})
