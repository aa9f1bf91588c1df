import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Caller, CONFIRM_MS, type Principal } from '../../../common/identity/principal.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createEmbeddings } from '../embeddings/create-embeddings.ts'
import { embedQuery } from '../embeddings/embed-query.ts'
import { createTranscription } from '../transcription/create-transcription.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { streamChatCompletion } from './stream-chat-completion.ts'

type Parts = ReturnType<typeof parts>

const chat = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
const wav = Buffer.from('wav 2500 ').toString('base64')

/** Every entry point to an engine for which the caller's own process holds money. */
const WAYS: Record<string, (parts: Parts, caller: Caller) => Promise<unknown>> = {
  'a chat completion': ({ deps }, caller) => createChatCompletion(deps, createRequestContext(caller), chat),
  'a chat stream': async ({ deps }, caller) => {
    for await (const _ of streamChatCompletion(deps, createRequestContext(caller), chat));
  },
  embeddings: ({ deps }, caller) => createEmbeddings(deps, createRequestContext(caller), { model: 'embed-far', input: 'a b' }),
  'a query embedding': ({ deps }, caller) => embedQuery(deps, createRequestContext(caller), { modelId: 'embed-far', text: 'a' }),
  'a transcription': ({ deps }, caller) => createTranscription(deps, createRequestContext(caller), { model: 'speech', contentBase64: wav }),
}

describe.each(Object.entries(WAYS))('%s after the rules of its caller changed', (way, call) => {
  const changed = (now: Partial<Principal> | null) => {
    const world = parts()
    world.billing.rules = 1
    world.billing.principal = now && { ...somebody, ...now }
    return world
  }

  it('proceeds when the new rules permit it, and counts once', async () => {
    const world = changed({})
    const limited = { ...somebody, requestsPerMinute: 10 }
    world.billing.principal = limited
    await call(world, limited)
    expect([world.billing.openHolds, world.deps.load.calls]).toEqual([0, 0])
    const isRequest = way !== 'a query embedding'
    expect(world.deps.limits.readState(limited)?.requests?.remaining).toBe(isRequest ? 9 : 10)
    // The next call uses the rules that are known now.
    const { length } = world.billing.writes
    await call(world, limited)
    expect(world.billing.writes.slice(length)).toEqual(['placeHold', 'settleHold'])
  })

  it('is refused for an access token without the scope, whatever its key may do', async () => {
    const world = changed({ scopes: ['admin'] })
    await expect(world.deps.principals.now({ ...somebody, scopes: ['billing:read'] })).resolves.toMatchObject({ scopes: ['billing:read'] })
    await expect(call(world, { ...somebody, scopes: ['billing:read'] })).rejects.toMatchObject({ code: 'permission_denied' })
  })

  it.each<[string, Partial<Principal> | null, string]>([
    ['another residency policy', { residencyPolicy: 'local_only' }, 'residency_policy_violation'],
    ['another allowlist', { modelAllowlist: [] }, 'model_not_found'],
    ['other scopes', { scopes: ['billing:read'] }, 'permission_denied'],
    ['the end of the key', { isEnded: true }, 'invalid_api_key'],
    ['a new secret of the key', { rotations: 1 }, 'invalid_api_key'],
    ['the end of the organization', null, 'invalid_api_key'],
  ])('is refused by %s, and no engine is called', async (_what, now, code) => {
    const world = changed(now)
    await expect(call(world, somebody)).rejects.toMatchObject({ code })
    const { far, near, billing } = world
    expect([far.chats + near.chats, far.embedded, far.transcribed, billing.openHolds]).toEqual([0, [], [], 0])
    expect(world.deps.load.calls).toBe(0)
  })

  it('is refused when its hold was placed just before the change, and the notice came long after', async () => {
    const world = parts()
    const { billing, far } = world
    const placeHold = billing.placeHold
    const now = performance.now.bind(performance)
    let aheadMs = 0
    const late = vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
    onTestFinished(() => late.mockRestore())
    billing.placeHold = async (...args) => {
      await placeHold(...args)
      aheadMs += CONFIRM_MS
      billing.rules = 1
      billing.principal = { ...somebody, residencyPolicy: 'local_only' }
    }
    await expect(call(world, somebody)).rejects.toMatchObject({ code: 'residency_policy_violation' })
    expect([far.chats, far.embedded, far.transcribed, billing.openHolds]).toEqual([0, [], [], 0])
  })
})

it('refuses a call that changes overtake again and again, with a later retry', async () => {
  const world = parts()
  world.billing.rules = 1
  world.billing.findPrincipal = async () => somebody
  await expect(createChatCompletion(world.deps, createRequestContext(), chat)).rejects.toMatchObject({
    code: 'service_unavailable',
    shouldRetry: true,
  })
  expect(world.billing.openHolds).toBe(0)
})
