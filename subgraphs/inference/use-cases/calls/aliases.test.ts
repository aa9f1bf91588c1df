import { describe, expect, it } from 'vitest'
import { isOffered } from '../../domain/engines/residency.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { streamChatCompletion } from './stream-chat-completion.ts'

const CATALOG = `
engines:
  far: { kind: openai, base_url: "http://vendor.test/v1", api_key: "k", badge: cloud }
  near: { kind: embedded, badge: local }
models:
  - { id: new, engine: far, engine_model: new-1, kind: chat, max_output_tokens: 100, price: { input: "1", output: "2" }, aliases: [best, gpt-4o] }
  - { id: other, engine: near, kind: chat, max_output_tokens: 100, price: { input: "1", output: "2" } }
`
const request = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 })

describe('Model alias', () => {
  it.each(['new', 'best', 'gpt-4o'])('resolves to its model: %s', async (name) => {
    const { deps, billing, far } = parts({ catalog: CATALOG })
    expect(await createChatCompletion(deps, createRequestContext(), request(name))).toMatchObject({
      modelId: 'new',
      cost: 30_000n,
      warnings: [],
    })
    expect((await streamChatCompletion(deps, createRequestContext(), request(name)).next()).value?.warnings).toEqual([])
    expect(far.calls.map(({ engineModel }) => engineModel)).toEqual(['new-1', 'new-1'])
    expect(billing.modelIds).toEqual(['new', 'new'])
  })

  it.each([
    [['new'], true],
    [['best'], true],
    [['gpt-4o', 'other'], true],
    [['other'], false],
    [[], false],
  ])('may be called by every name of its model when the allowlist has one of them: %j', async (modelAllowlist, isAllowed) => {
    const { deps, far } = parts({ catalog: CATALOG })
    for (const name of ['new', 'best', 'gpt-4o']) {
      const response = createChatCompletion(deps, createRequestContext({ ...somebody, modelAllowlist }), request(name))
      if (isAllowed) await response
      // The error contains the requested name, and nothing of the model behind it.
      else await expect(response).rejects.toThrow(`The model \`${name}\` does not exist or you do not have access to it.`)
    }
    expect(far.chats).toBe(isAllowed ? 3 : 0)
    const { models } = deps.catalog
    expect(models.filter((model) => isOffered(model, { ...somebody, modelAllowlist })).some(({ id }) => id === 'new')).toBe(isAllowed)
  })

  it('does not bypass a residency policy', async () => {
    const { deps, far } = parts({ catalog: CATALOG })
    const response = createChatCompletion(
      deps,
      createRequestContext({ ...somebody, residencyPolicy: 'local_only', modelAllowlist: ['best'] }),
      request('best'),
    )
    await expect(response).rejects.toMatchObject({ code: 'residency_policy_violation' })
    expect(far.chats).toBe(0)
  })
})
