import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { completion, type Step, stream, usage, usageChunk } from '../../test-support/scripted-engine.ts'
import type { RequestContext, RunDeps } from '../deps.ts'
import { createEmbeddings } from '../embeddings/create-embeddings.ts'
import { embedQuery } from '../embeddings/embed-query.ts'
import { onceForKey } from '../idempotency/once-for-key.ts'
import { streamOnceForKey } from '../idempotency/stream-once-for-key.ts'
import { quoteRerank } from '../rerank/quote-rerank.ts'
import { createTranscription } from '../transcription/create-transcription.ts'
import { CallLimits } from './call-limits.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { LoadShedder } from './load-shedding.ts'
import { quoteChatCompletion } from './quote-chat-completion.ts'
import { OwnRates } from './rate-usage.ts'
import { streamChatCompletion } from './stream-chat-completion.ts'

const hello = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
/** The counted tokens of the message, and the requested output. */
const HELLO_TOKENS = 6 + 10

/** Use cases on a clock that the test moves, for a key with limits. */
function limitedTo(fields: Partial<Principal> & { readonly concurrency?: number }) {
  let now = 1_000_000
  const under = parts()
  const { concurrency = 1_000, ...limits } = fields
  const caller: Principal = { ...somebody, ...limits, plan: { ...somebody.plan, concurrency } }
  const callLimits = new CallLimits(new OwnRates({ ...systemClock, now: () => new Date(now) }), () => 1)
  return {
    ...under,
    deps: { ...under.deps, limits: callLimits },
    limits: callLimits,
    caller,
    createContext: (signal?: AbortSignal) => createRequestContext(caller, signal),
    advance(ms: number) {
      now += ms
    },
    get tokensLeft() {
      return callLimits.readState(caller)?.tokens?.remaining
    },
  }
}

describe('Rate limits beside model calls', () => {
  const NONE_LEFT = { code: 'rate_limit_exceeded', retryAfterMs: 60_000, rateLimits: { requests: { limit: 1, remaining: 0 } } }

  it.each([
    { name: 'a quote of a chat', quote: (deps: RunDeps, context: RequestContext) => quoteChatCompletion(deps, context, hello) },
    {
      name: 'a quote of a reranking',
      quote: (deps: RunDeps, context: RequestContext) => quoteRerank(deps, context, { model: 'rank', query: 'a', documents: ['b'] }),
    },
  ])('count a request without tokens: $name', async ({ quote }) => {
    const { deps, createContext, advance } = limitedTo({ requestsPerMinute: 1, tokensPerMinute: 1_000 })
    await quote(deps, createContext())
    expect(deps.limits.readState(createContext().caller as Principal)).toMatchObject({
      requests: { remaining: 0 },
      tokens: { remaining: 1_000 },
    })
    await expect(quote(deps, createContext())).rejects.toMatchObject(NONE_LEFT)
    advance(60_000)
    await quote(deps, createContext())
  })

  it('count the replay of a response, plain and streamed', async () => {
    const { deps, createContext, advance } = limitedTo({ requestsPerMinute: 1 })
    const sent = { operation: 'chat_completion', request: hello, idempotencyKey: 'k' } as const
    const chat = () => onceForKey(deps, createContext(), sent, (context) => createChatCompletion(deps, context, hello))
    const streamed = async () => {
      const call = { operation: 'chat_completion_stream', request: hello, idempotencyKey: 'k2' } as const
      const events = streamOnceForKey(deps, createContext(), call, (context) =>
        streamChatCompletion(deps, context, { ...hello, stream: true }),
      )
      return (await Array.fromAsync(events)).at(-1)
    }
    for (const call of [chat, streamed]) {
      advance(60_000)
      await call()
      await expect(call()).rejects.toMatchObject(NONE_LEFT)
      advance(60_000)
      expect(await call()).toMatchObject({ replayed: true })
      await expect(call()).rejects.toMatchObject(NONE_LEFT)
    }
  })

  it('count against the limits of ancestor keys', async () => {
    const { limits, caller } = limitedTo({
      requestsPerMinute: 2,
      ancestorRates: [{ apiKeyId: 'p', requestsPerMinute: 2, tokensPerMinute: 1 }],
    })
    await limits.consumeRequest({ ...caller, apiKeyId: 'child-1' })
    await limits.consumeRequest({ ...caller, apiKeyId: 'child-2' })
    await expect(limits.consumeRequest({ ...caller, apiKeyId: 'child-3' })).rejects.toMatchObject({ retryAfterMs: 30_000 })
  })

  it('charge at most one request for refused bodies, and accept no other body until it is paid', async () => {
    const { limits, caller, advance } = limitedTo({ requestsPerMinute: 2 })
    for (let refused = 0; refused < 2; refused++) {
      limits.requireNoDebt(caller)
      limits.countBody(caller)
    }
    limits.requireNoDebt(caller)
    for (let refused = 0; refused < 5; refused++) limits.countBody(caller)
    const owed = { code: 'rate_limit_exceeded', retryAfterMs: 30_000 }
    await expect(async () => limits.requireNoDebt(caller)).rejects.toMatchObject(owed)
    await expect(async () => limits.requireNoDebt({ ...caller, apiKeyId: 'child', ancestorRates: [caller] })).rejects.toMatchObject(owed)
    advance(30_000)
    limits.requireNoDebt(caller)
  })

  it('never stop a key without limits', async () => {
    const { limits, caller } = limitedTo({})
    for (let count = 0; count < 3; count++) {
      await limits.consumeRequest(caller)
      limits.countBody(caller)
      limits.requireNoDebt(caller)
    }
  })
})

describe('Rate limits of a descendant key', () => {
  const parent = { apiKeyId: 'parent', requestsPerMinute: 2, tokensPerMinute: 1_000 }

  it('apply together with those of its ancestors, for any number of keys, and a refusal takes nothing', async () => {
    const { deps, caller, advance } = limitedTo({ requestsPerMinute: 2, ancestorRates: [parent] })
    const call = (apiKeyId: string) => createChatCompletion(deps, createRequestContext({ ...caller, apiKeyId }), hello)
    await call('child-1')
    expect((await call('child-2')).rateLimits).toMatchObject({ requests: { limit: 2, remaining: 1 } })
    for (const key of ['child-1', 'child-2', 'child-3'])
      await expect(call(key)).rejects.toMatchObject({
        code: 'rate_limit_exceeded',
        retryAfterMs: 30_000,
        message: 'Rate limit reached: the rate of a key that this one descends from. Try again in 30 s.',
      })
    advance(30_000)
    await call('child-3')
    await expect(call('child-1')).rejects.toMatchObject({ retryAfterMs: 30_000 })
  })

  it('count its tokens against ancestors, by what the call used', async () => {
    const { deps, caller, far, limits } = limitedTo({ ancestorRates: [parent] })
    const left = () => limits.readState({ ...caller, ...parent, ancestorRates: [] })?.tokens?.remaining
    far.completions = [completion({ usage: usage(300, 200) })]
    await createChatCompletion(deps, createRequestContext(caller), hello)
    expect(left()).toBe(500)
    const strict = { ...caller, ancestorRates: [parent, { apiKeyId: 'first', requestsPerMinute: null, tokensPerMinute: 15 }] }
    await expect(createChatCompletion(deps, createRequestContext(strict), hello)).rejects.toMatchObject({
      shouldRetry: false,
      message: expect.stringContaining('a key that it descends from may use fewer a minute'),
    })
    expect(left()).toBe(500)
    // Without an output limit, the call consumes no more than the limits have.
    await createChatCompletion(deps, createRequestContext(strict), { ...hello, max_tokens: undefined })
  })
})

describe('Requests per minute', () => {
  it('are admitted up to the limit, then refused until exactly the reported time, and a refusal takes nothing', async () => {
    const { deps, createContext, advance, billing, far } = limitedTo({ requestsPerMinute: 3 })
    for (const remaining of [2, 1, 0])
      expect((await createChatCompletion(deps, createContext(), hello)).rateLimits).toMatchObject({
        requests: { limit: 3, remaining, resetMs: (3 - remaining) * 20_000 },
        tokens: null,
      })
    for (let i = 0; i < 3; i++)
      await expect(createChatCompletion(deps, createContext(), hello)).rejects.toMatchObject({
        code: 'rate_limit_exceeded',
        retryAfterMs: 20_000,
        shouldRetry: true,
        rateLimits: { requests: { limit: 3, remaining: 0, resetMs: 60_000 }, tokens: null },
      })
    expect([far.chats, billing.holds.size]).toEqual([3, 3])
    advance(19_999)
    await expect(createChatCompletion(deps, createContext(), hello)).rejects.toMatchObject({ retryAfterMs: 1 })
    advance(1)
    await createChatCompletion(deps, createContext(), hello)
  })

  it('count every operation, but not what a service embeds for itself', async () => {
    const { deps, createContext, limits, caller } = limitedTo({ requestsPerMinute: 10 })
    const left = () => limits.readState(caller)?.requests?.remaining
    await embedQuery(deps, createContext(), { modelId: 'embed', text: 'a' })
    expect(left()).toBe(10)
    await createEmbeddings(deps, createContext(), { model: 'embed', input: 'a' })
    await createTranscription(deps, createContext(), { model: 'speech', contentBase64: Buffer.from('wav 2500').toString('base64') })
    for await (const _event of streamChatCompletion(deps, createContext(), hello));
    expect(left()).toBe(7)
  })

  it('are counted per key', async () => {
    const { deps, caller } = limitedTo({ requestsPerMinute: 1 })
    await createChatCompletion(deps, createRequestContext(caller), hello)
    await createChatCompletion(deps, createRequestContext({ ...caller, apiKeyId: 'key_b' }), hello)
    await expect(createChatCompletion(deps, createRequestContext(caller), hello)).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
  })
})

describe('Tokens per minute', () => {
  it('are taken for the worst case and corrected by the use', async () => {
    const under = limitedTo({ tokensPerMinute: 100 })
    under.far.completions = ['wait']
    const gone = new AbortController()
    const call = createChatCompletion(under.deps, under.createContext(gone.signal), hello)
    await eventually(() => under.far.chats === 1)
    expect(under.tokensLeft).toBe(100 - HELLO_TOKENS)
    gone.abort()
    await expect(call).rejects.toThrow()
    expect(under.tokensLeft).toBe(100 - 6)
    under.far.completions = [completion({ usage: usage(20, 5, 4) })]
    expect((await createChatCompletion(under.deps, under.createContext(), hello)).rateLimits).toMatchObject({
      requests: null,
      tokens: { limit: 100, remaining: 100 - 6 - 25 },
    })
  })

  it('are returned in full when the engine fails, or the wallet is empty', async () => {
    const under = limitedTo({ tokensPerMinute: 100 })
    under.far.completions = [new KisError('engine_error', 'failed')]
    await expect(createChatCompletion(under.deps, under.createContext(), hello)).rejects.toMatchObject({
      code: 'engine_error',
      rateLimits: { tokens: { remaining: 100 } },
    })
    under.billing.balance = 0n
    await expect(createChatCompletion(under.deps, under.createContext(), hello)).rejects.toMatchObject({
      code: 'insufficient_quota',
      rateLimits: { tokens: { remaining: 100 } },
    })
  })

  it('used beyond the estimate are recovered before the next call', async () => {
    const under = limitedTo({ tokensPerMinute: 60 })
    under.far.completions = [completion({ usage: usage(20, 100) })]
    await createChatCompletion(under.deps, under.createContext(), hello)
    expect(under.tokensLeft).toBe(0)
    await expect(createChatCompletion(under.deps, under.createContext(), hello)).rejects.toMatchObject({
      retryAfterMs: (120 - 60 + HELLO_TOKENS) * 1_000,
    })
    under.advance((120 - 60 + HELLO_TOKENS) * 1_000)
    await createChatCompletion(under.deps, under.createContext(), hello)
  })

  it('of an absurd report create a debt of ten minutes, not of years', async () => {
    const under = limitedTo({ tokensPerMinute: 60 })
    under.far.completions = [completion({ usage: usage(20, 2 ** 31 - 1) })]
    await createChatCompletion(under.deps, under.createContext(), hello)
    under.advance(11 * 60_000)
    await createChatCompletion(under.deps, under.createContext(), hello)
  })

  it('refuse permanently a request that never fits', async () => {
    const { deps, createContext, far, tokensLeft } = limitedTo({ tokensPerMinute: 15 })
    await expect(createChatCompletion(deps, createContext(), hello)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      shouldRetry: false,
      retryAfterMs: null,
      message: expect.stringContaining('16 tokens'),
    })
    expect([far.chats, tokensLeft]).toEqual([0, 15])
  })

  it('admit a request without a maximum to a small limit', async () => {
    const under = limitedTo({ tokensPerMinute: 30 })
    under.far.completions = [completion({ usage: usage(6, 4) })]
    const { max_tokens: _, ...unbounded } = hello
    await createChatCompletion(under.deps, under.createContext(), unbounded)
    expect(under.tokensLeft).toBe(20)
  })

  it.each<{ how: string; steps: Step[]; pulled: number; disconnects: boolean; used: number }>([
    { how: 'comes to its end', steps: [...stream(3), [usageChunk(20, 3)]], pulled: 99, disconnects: false, used: 23 },
    { how: 'is cut by the engine', steps: [...stream(2), new KisError('engine_error', 'cut')], pulled: 99, disconnects: false, used: 0 },
    { how: 'is left after its first event', steps: [...stream(2), 'wait'], pulled: 1, disconnects: true, used: 6 + 1 },
    { how: 'is left before its first event', steps: stream(2), pulled: 0, disconnects: true, used: 0 },
  ])('of a stream that $how are those that were used, and its slot is free', async ({ steps, pulled, disconnects, used }) => {
    const under = limitedTo({ tokensPerMinute: 100, concurrency: 1 })
    under.far.steps = steps
    const events = streamChatCompletion(under.deps, under.createContext(), hello)
    for (let i = 0; i < pulled; i++) {
      const item = await events.next().catch(() => ({ done: true, value: undefined }))
      if (item.done) break
      if (i === 0) expect(item.value?.rateLimits).toMatchObject({ tokens: { limit: 100, remaining: 100 - HELLO_TOKENS } })
      else expect(item.value?.rateLimits).toBeNull()
    }
    if (disconnects) await events.return?.()
    await eventually(() => under.billing.openHolds === 0)
    expect(under.tokensLeft).toBe(100 - used)
    under.far.completions = [completion()]
    await createChatCompletion(under.deps, under.createContext(), hello)
    expect(under.deps.load.calls).toBe(0)
  })
})

describe('Concurrent calls of one organization', () => {
  it('are refused above the plan, with any of its keys, and a refusal takes nothing', async () => {
    const { deps, caller, far, createContext, advance } = limitedTo({ concurrency: 2, requestsPerMinute: 4 })
    far.completions = ['wait']
    const gone = new AbortController()
    const other = createRequestContext({ ...caller, apiKeyId: 'key_b' }, gone.signal)
    const waiting = [createChatCompletion(deps, createContext(gone.signal), hello), createChatCompletion(deps, other, hello)]
    await eventually(() => far.chats === 2)
    await expect(createChatCompletion(deps, createContext(), hello)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      retryAfterMs: 1_000,
      rateLimits: { requests: { remaining: 3 } },
    })
    await expect(embedQuery(deps, createContext(), { modelId: 'embed', text: 'a' })).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    await expect(
      createChatCompletion(
        deps,
        createRequestContext({ ...caller, organizationId: 'org_b', apiKeyId: 'key_c' }, AbortSignal.abort()),
        hello,
      ),
    ).rejects.toThrow()
    gone.abort()
    await Promise.allSettled(waiting)
    far.completions = [completion()]
    advance(60_000)
    for (let i = 0; i < 3; i++) await createChatCompletion(deps, createContext(), hello)
    expect(deps.load.calls).toBe(0)
  })

  it('are released when the caller disconnects while the hold is being placed', async () => {
    const under = limitedTo({ concurrency: 1, tokensPerMinute: 100 })
    const events = streamChatCompletion(under.deps, under.createContext(), hello)
    const first = events.next()
    await events.return?.()
    expect((await first).done).toBe(true)
    await eventually(() => under.billing.openHolds === 0)
    await createChatCompletion(under.deps, under.createContext(), hello)
  })
})

describe('Load shedding', () => {
  const calm = { lagMs: 0, utilisation: 0.2, memory: 0.3 }
  const kinds = ['background', 'embeddings', 'chat'] as const
  const refused = (load: LoadShedder) =>
    kinds.filter((kind) => {
      try {
        load.check(kind)
        return false
      } catch (error) {
        expect(error).toMatchObject({ code: 'service_unavailable', retryAfterMs: 2_000, shouldRetry: true })
        return true
      }
    })

  it.each([
    { load: { ...calm, utilisation: 1 }, kinds: [] },
    { load: { ...calm, lagMs: 5_000 }, kinds: [] },
    { load: { ...calm, utilisation: 1, lagMs: 150 }, kinds: ['background'] },
    { load: { ...calm, utilisation: 1, lagMs: 500 }, kinds: ['background', 'embeddings'] },
    { load: { ...calm, utilisation: 1, lagMs: 1_500 }, kinds: ['background', 'embeddings', 'chat'] },
    { load: { ...calm, memory: 0.78 }, kinds: ['background'] },
    { load: { ...calm, memory: 0.9 }, kinds: ['background', 'embeddings', 'chat'] },
  ])('with $load sheds $kinds, once the load lasts', ({ load: heavy, kinds: shed }) => {
    using load = new LoadShedder(() => calm)
    for (let check = 1; check <= 3; check++) {
      load.note(heavy)
      expect(refused(load)).toEqual([])
    }
    load.note(heavy)
    expect(refused(load)).toEqual(shed)
    load.note(calm)
    expect(refused(load)).toEqual([])
  })

  it('sheds the least important calls first as load rises, and admits them again as it falls', () => {
    using load = new LoadShedder(() => calm)
    const ends: (() => void)[] = []
    const fill = (calls: number) => {
      while (load.calls < calls) ends.push(load.enter('chat'))
    }
    fill(1_000)
    expect(refused(load)).toEqual(['background'])
    fill(2_000)
    expect(refused(load)).toEqual(['background', 'embeddings'])
    fill(4_000)
    expect(refused(load)).toEqual(['background', 'embeddings', 'chat'])
    for (const end of [...ends, ...ends]) end()
    expect([load.calls, refused(load)]).toEqual([0, []])
  })

  it('refuses a call before any other check', async () => {
    const { deps, billing } = parts()
    for (let check = 0; check < 4; check++) deps.load.note({ ...calm, memory: 0.99 })
    await expect(createChatCompletion(deps, createRequestContext(null), 'nonsense')).rejects.toMatchObject({ code: 'service_unavailable' })
    await expect(streamChatCompletion(deps, createRequestContext(null), 'nonsense').next()).rejects.toMatchObject({
      code: 'service_unavailable',
    })
    expect(billing.writes).toEqual([])
  })

  it('measures the load of its own process', async () => {
    using load = new LoadShedder()
    const note = load.note.bind(load)
    const seen = new Promise((resolve) => {
      load.note = (now) => {
        note(now)
        resolve(now)
      }
    })
    expect(await seen).toEqual({ lagMs: expect.any(Number), utilisation: expect.any(Number), memory: expect.any(Number) })
  })
})
