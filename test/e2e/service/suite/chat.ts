import { encode } from 'gpt-tokenizer/encoding/cl100k_base'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { expect, it } from 'vitest'
import { balancedWallet, type Json } from '../../../support/client.ts'
import { MOCK_USAGE } from '../../../support/engines/mock-engine.ts'
import { assembleResponse } from '../../../support/response-events.ts'
import { chat, type Running } from './running.ts'

/** Models, embeddings and whole chats, as the OpenAI SDK asks for them. */
export function chats(running: Running): void {
  it('lists models, and embeds equally in base64 and floats', async () => {
    const caller = await running.newOrganization()
    const ids = (await caller.openai.models.list()).data.map((model) => model.id)
    expect(ids).toEqual(expect.arrayContaining(['e5-small-ar-en', 'extractive', 'mock-chat']))
    const input = ['السلام عليكم', 'peace be upon you']
    const embeddingInput = { model: 'e5-small-ar-en', input }
    const packed = await caller.openai.embeddings.create(embeddingInput)
    const floats = await caller.openai.embeddings.create({ ...embeddingInput, encoding_format: 'float' })
    expect(packed.data.map((item) => item.embedding.length)).toEqual([384, 384])
    for (const [i, item] of floats.data.entries())
      for (const [j, value] of item.embedding.entries()) expect(packed.data[i]!.embedding[j]).toBeCloseTo(value, 6)
    const short = await caller.openai.embeddings.create({ ...embeddingInput, dimensions: 64 })
    expect(Math.hypot(...short.data[0]!.embedding)).toBeCloseTo(1, 5)
    expect(short.data[0]!.embedding).toHaveLength(64)
    // LangChain's client for Python sends tokens unless it is told not to.
    const tokens = await caller.openai.embeddings.create({ ...embeddingInput, input: input.map((text) => encode(text)) })
    expect(tokens.data.map(({ embedding }) => embedding)).toEqual(packed.data.map(({ embedding }) => embedding))
    expect(tokens.usage).toEqual(packed.usage)
  })

  it('passes on the whole chat, and charges what the vendor reports', async () => {
    const caller = await running.newOrganization()
    const completion = await caller.openai.chat.completions.create(chat('hi', { unknown_field: { kept: [1] } }) as never)
    expect(completion).toMatchObject({ object: 'chat.completion', model: 'mock-chat', usage: MOCK_USAGE, vendor_extra: { kept: true } })
    expect(running.mock.requests.at(-1)).toMatchObject({ unknown_field: { kept: [1] } })
    const { body } = await caller.rest('GET', '/v1/usage')
    expect(body.data[0]).toMatchObject({
      input_tokens: 16,
      cached_input_tokens: 4,
      output_tokens: 5,
      amount_usd: '0.000028',
      source: 'provider',
    })
    expect((await balancedWallet(caller)).balance_usd).toBe('9.999972')
  })

  it('supports the Responses API as well, at the same price', async () => {
    const caller = await running.newOrganization()
    const request = { model: 'mock-chat', input: 'hi' }
    const whole = await caller.openai.responses.create(request)
    const events: ResponseStreamEvent[] = []
    for await (const event of await caller.openai.responses.create({ ...request, stream: true })) events.push(event)
    for (const { output_text, output, usage } of [whole, assembleResponse(events)]) {
      expect(output_text ?? JSON.stringify(output)).toContain('Hello from the mock مرحبا')
      expect(usage).toMatchObject({ input_tokens: 20, output_tokens: 5, total_tokens: 25 })
    }
    expect((await balancedWallet(caller)).balance_usd).toBe('9.999944')
  })

  it('returns typed fields beside the protocol object in GraphQL, plain and streamed', async () => {
    const caller = await running.newOrganization()
    const request = chat('hi')
    const { data, errors } = await caller.graphql(
      `mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) {
         id text finishReason cost response usage { promptTokens cachedPromptTokens completionTokens } model { id price { output } } } }`,
      { input: { request } },
    )
    expect(errors).toBeUndefined()
    expect(data.createChatCompletion).toMatchObject({
      text: 'Hello from the mock مرحبا',
      finishReason: 'STOP',
      cost: '0.000028',
      response: { vendor_extra: { kept: true } },
      usage: { promptTokens: 20, cachedPromptTokens: 4, completionTokens: 5 },
      model: { id: 'mock-chat', price: { output: '2' } },
    })
    const client = caller.socket()
    const events: Json[] = []
    for await (const event of client.iterate<Json>({
      query:
        'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { textDelta finishReason usage { totalTokens } cost } }',
      variables: { input: { request } },
    })) {
      expect(event.errors).toBeUndefined()
      events.push(event.data.chatCompletion)
    }
    await client.dispose()
    expect(events.map((event) => event.textDelta).join('')).toBe('Hello from the mock مرحبا')
    expect(events.at(-1)).toMatchObject({ usage: { totalTokens: 25 }, cost: '0.000028' })
    await balancedWallet(caller)
  })
}
