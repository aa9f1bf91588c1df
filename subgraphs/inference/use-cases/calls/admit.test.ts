import { describe, expect, it } from 'vitest'
import type { Caller, Principal } from '../../../common/identity/principal.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createEmbeddings } from '../embeddings/create-embeddings.ts'
import { openEmbedding } from '../embeddings/embed-document.ts'
import { embedQuery } from '../embeddings/embed-query.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { streamChatCompletion } from './stream-chat-completion.ts'

type Parts = ReturnType<typeof parts>

/** Every entry point to a billed engine call. */
const WAYS: Record<string, (parts: Parts, caller: Caller | null, model: string, isRequestBad: boolean) => Promise<unknown>> = {
  'a chat completion': ({ deps }, caller, model, bad) =>
    createChatCompletion(deps, createRequestContext(caller), { model, messages: bad ? [] : [{ role: 'user', content: 'a' }] }),
  'a chat stream': ({ deps }, caller, model, bad) =>
    streamChatCompletion(deps, createRequestContext(caller), { model, messages: bad ? [] : [{ role: 'user', content: 'a' }] }).next(),
  embeddings: ({ deps }, caller, model, bad) => createEmbeddings(deps, createRequestContext(caller), { model, input: bad ? '' : 'a b' }),
  'a query embedding': ({ deps }, caller, model) => embedQuery(deps, createRequestContext(caller), { modelId: model, text: 'a' }),
  'a document embedding': ({ deps }, caller, model) => openEmbedding(deps, createRequestContext(caller), { modelId: model, tokens: 1 }),
}
const FOR_SERVICES = ['a query embedding', 'a document embedding']

for (const [way, call] of Object.entries(WAYS)) {
  describe(way, () => {
    const isChat = way.includes('chat')
    const ownModel = isChat ? 'chat' : 'embed-far'
    const otherKind = isChat ? 'embed' : 'chat'
    const isForServices = FOR_SERVICES.includes(way)
    const without = (fields: Partial<Principal>): Principal => ({ ...somebody, ...fields })

    // Everything is wrong at first; fixing one thing after the other shows the order of the checks.
    const steps: [string, Caller | null, string, boolean, string][] = [
      ['a service without a caller', { service: 'knowledge' }, 'nope', true, 'invalid_api_key'],
      ['no caller', null, 'nope', true, 'invalid_api_key'],
      ...(isForServices
        ? []
        : ([
            ['a key without the scope', without({ scopes: ['knowledge:read'] }), 'nope', true, 'permission_denied'],
            ['a bad request', somebody, 'nope', true, 'invalid_request'],
          ] as [string, Caller, string, boolean, string][])),
      ['an unknown model', somebody, 'nope', false, 'model_not_found'],
      ['a model of a disabled engine', somebody, 'unplugged', false, 'model_not_found'],
      [
        'a model outside the allowlist, of the wrong kind',
        without({ modelAllowlist: [], residencyPolicy: 'local_only' }),
        otherKind,
        false,
        'model_not_found',
      ],
      ['a model of the wrong kind, outside the policy', without({ residencyPolicy: 'local_only' }), otherKind, false, 'model_not_found'],
      [
        'a model outside the policy, without balance',
        without({ residencyPolicy: 'local_only' }),
        ownModel,
        false,
        'residency_policy_violation',
      ],
      ['a regional policy and a cloud model', without({ residencyPolicy: 'regional' }), ownModel, false, 'residency_policy_violation'],
      ...(isForServices
        ? []
        : ([['no rate, and no balance', without({ tokensPerMinute: 1 }), ownModel, false, 'rate_limit_exceeded']] as [
            string,
            Caller,
            string,
            boolean,
            string,
          ][])),
      ['no balance', somebody, ownModel, false, 'insufficient_quota'],
    ]
    it.each(steps)('with %s is refused, and no engine is called', async (_name, caller, model, bad, code) => {
      const under = parts({ balance: 0n })
      await expect(call(under, caller, model, bad)).rejects.toMatchObject({ code })
      expect([under.far.chats, under.far.embeds, under.near.chats, under.near.embeds]).toEqual([0, 0, 0, 0])
      expect(under.billing.writes).toEqual(code === 'insufficient_quota' ? ['placeHold'] : [])
    })
  })
}
