import { describe, expect, it } from 'vitest'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { quoteChatCompletion } from './quote-chat-completion.ts'

const hello = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }

describe('Quote of a chat completion', () => {
  it.each([
    { name: 'for a short reply', request: hello },
    { name: 'for three replies', request: { ...hello, n: 3 } },
    { name: 'without a maximum', request: { ...hello, max_tokens: undefined } },
    {
      name: 'with an image',
      request: { ...hello, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.test/b.png' } }] }] },
    },
  ])('equals the hold of the call: $name', async ({ request }) => {
    const { deps, billing, far } = parts()
    const [quoted] = await quoteChatCompletion(deps, createRequestContext(), request)
    expect([billing.writes, far.chats]).toEqual([[], 0])
    await createChatCompletion(deps, createRequestContext(), request)
    expect(quoted).toMatchObject({ model: { id: 'chat' }, amount: billing.only.amount, isCovered: true })
  })

  it('counts the input and reports the maximum output', async () => {
    const { deps } = parts()
    // "Hello" counts as 2 tokens, its message as 4 more; the hold adds a fifth and 64.
    expect(await quoteChatCompletion(deps, createRequestContext(), { ...hello, n: 2, stream: true })).toMatchObject([
      { inputTokens: 6, heldInputTokens: 72, maxOutputTokens: 20, amount: 112_000n },
    ])
  })

  it('includes each fallback that may be called, and no other', async () => {
    const { deps } = parts()
    const idsFor = async (request: object, caller = somebody) =>
      (await quoteChatCompletion(deps, createRequestContext(caller), { ...hello, model: 'careful', ...request })).map(
        ({ model }) => model.id,
      )
    expect(await idsFor({})).toEqual(['careful', 'chat', 'plain'])
    expect(await idsFor({}, { ...somebody, modelAllowlist: ['careful', 'plain'] })).toEqual(['careful', 'plain'])
  })

  it('is no error when the wallet cannot pay', async () => {
    const { deps } = parts({ balance: 91_999n })
    expect(await quoteChatCompletion(deps, createRequestContext(), hello)).toMatchObject([{ amount: 92_000n, isCovered: false }])
  })

  it.each([
    { name: 'without the scope', request: hello, caller: { ...somebody, scopes: [] }, code: 'permission_denied' },
    { name: 'for a model outside the allowlist', request: hello, caller: { ...somebody, modelAllowlist: [] }, code: 'model_not_found' },
    { name: 'without messages', request: { model: 'chat' }, caller: somebody, code: 'missing_required_parameter' },
    {
      name: 'outside the residency policy',
      request: hello,
      caller: { ...somebody, residencyPolicy: 'local_only' as const },
      code: 'residency_policy_violation',
    },
    {
      name: 'above the context window',
      request: { ...hello, messages: [{ role: 'user', content: 'word '.repeat(2_000) }] },
      caller: somebody,
      code: 'context_length_exceeded',
    },
  ])('is refused like the call: $name', async ({ request, caller, code }) => {
    const { deps } = parts()
    await expect(quoteChatCompletion(deps, createRequestContext(caller), request)).rejects.toMatchObject({ code })
    await expect(createChatCompletion(deps, createRequestContext(caller), request)).rejects.toMatchObject({ code })
  })
})
