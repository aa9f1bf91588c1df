import { describe, expect, it } from 'vitest'
import { KisError } from '../../../common/errors.ts'
import { EngineFailure } from '../../domain/engines/engine-failure.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { completion, stream, usage, usageChunk } from '../../test-support/scripted-engine.ts'
import { MAX_CALL_MS } from '../money/billed-call.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { type ChatEvent, streamChatCompletion } from './stream-chat-completion.ts'

/** `main` is regional. Its fallback `spare` belongs to another vendor and has ten times the price. */
const CATALOG = `
engines:
  far: { kind: openai, base_url: "http://vendor.test/v1", api_key: "k", badge: BADGE }
  near: { kind: openai, base_url: "http://other.test/v1", api_key: "k", badge: cloud }
models:
  - { id: main, engine: far, kind: chat, supports: [tools], context_window: 1000, max_output_tokens: 100, price: { input: "1", output: "2" }, fallbacks: [tiny, vendor/spare] }
  - { id: tiny, engine: near, kind: chat, supports: [tools], context_window: 3, max_output_tokens: 100, price: { input: "1", output: "2" } }
  - { id: vendor/spare, engine: near, engine_model: spare-1, kind: chat, max_output_tokens: 100, price: { input: "10", output: "20" } }
`
const under = (balance?: bigint, badge = 'regional') =>
  parts({ catalog: CATALOG.replace('BADGE', badge), ...(balance !== undefined && { balance }) })
const request = { model: 'main', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
const down = new KisError('engine_unavailable', 'down')
const refused = (status: number) => new EngineFailure('engine_error', `status ${status}`, { isRepeatable: status >= 500 })

type Parts = ReturnType<typeof parts>
interface Outcome {
  readonly cost: bigint | null
  readonly warnings: readonly string[]
}

/** For each kind of call: how an engine fails before the first byte, every time, and the whole result. */
const WAYS: Record<
  string,
  { fail(engine: Parts['far'], failure: Error): void; send(parts: Parts, caller?: typeof somebody): Promise<Outcome> }
> = {
  'a completion': {
    fail: (engine, failure) => {
      engine.completions = [failure]
    },
    send: ({ deps }, caller) => createChatCompletion(deps, createRequestContext(caller), request),
  },
  'a stream': {
    fail: (engine, failure) => {
      engine.openings = Array(100).fill(failure)
    },
    async send({ deps }, caller) {
      const events: ChatEvent[] = []
      for await (const event of streamChatCompletion(deps, createRequestContext(caller), request)) events.push(event)
      return { cost: events.at(-1)!.cost, warnings: events.flatMap(({ warnings }) => warnings ?? []) }
    },
  },
}

describe.each(Object.entries(WAYS))('Fallback of %s', (_way, { fail, send }) => {
  it('uses the first suitable model at its own price, and says so', async () => {
    const these = under()
    const { billing, far, near } = these
    fail(far, refused(401))
    near.completions = [completion({ usage: usage(20, 3) })]
    expect(await send(these)).toMatchObject({ cost: 260_000n, warnings: ['answered_by:vendor/spare'] })
    // The window of `tiny` is too small.
    expect(near.calls.map(({ engineModel }) => engineModel)).toEqual(['spare-1'])
    expect([...billing.holds.values()]).toMatchObject([
      { state: 'voided', amount: 92_000n },
      { state: 'settled', amount: 920_000n, charged: 260_000n },
    ])
  })

  it('names no model when the requested one responds', async () => {
    expect((await send(under())).warnings).toEqual([])
  })

  it.each([
    ['the allowlist', 'regional', { modelAllowlist: ['main'] }],
    ['a regional residency policy', 'regional', { residencyPolicy: 'regional' }],
    ['a local residency policy', 'local', { residencyPolicy: 'local_only' }],
  ] as const)('uses no model outside %s', async (_name, badge, fields) => {
    for (const failure of [down, refused(500)]) {
      const these = under(undefined, badge)
      fail(these.far, failure)
      await expect(send(these, { ...somebody, ...fields })).rejects.toBe(failure)
      expect([these.near.chats, these.billing.openHolds, these.billing.balance]).toEqual([0, 0, 1_000_000_000n])
    }
  })

  it('fails with the error of the engine when the wallet is too small for it', async () => {
    const these = under(919_999n)
    fail(these.far, down)
    await expect(send(these)).rejects.toBe(down)
    expect([these.near.chats, these.billing.openHolds]).toEqual([0, 0])
  })

  it('fails with the error of the engine when the fallback refuses the request', async () => {
    const these = under()
    fail(these.far, refused(401))
    fail(these.near, new KisError('invalid_request', 'no such field here'))
    await expect(send(these)).rejects.toThrow('status 401')
    expect([these.near.chats, these.billing.openHolds]).toEqual([1, 0])
  })

  it.each([
    ['an engine that is down', down, 2],
    ['a vendor’s 500', refused(500), 2],
    ['a vendor that is overloaded', new KisError('rate_limit_exceeded', 'full'), 2],
    ['a short wait', new KisError('rate_limit_exceeded', 'full', { retryAfterMs: 2_000 }), 2],
    ['a long wait', new KisError('rate_limit_exceeded', 'full', { retryAfterMs: 2_001 }), 1],
    ['an unreadable response', new KisError('engine_error', 'garbage'), 1],
    ['a refused key', refused(401), 1],
    ['silence', new KisError('engine_timeout', 'silent'), 1],
    ['a vendor’s own timeout', new EngineFailure('engine_timeout', 'status 408', { isRepeatable: true }), 2],
    ['a broken connection', new EngineFailure('engine_unavailable', 'reset', { isRepeatable: false }), 1],
  ])('decides whether to retry after %s', async (_name, failure, tries) => {
    const these = under()
    fail(these.far, failure)
    await send(these)
    expect([these.far.chats, these.near.chats]).toEqual([tries, 1])
  })

  it('is not used for an invalid request', async () => {
    const these = under()
    fail(these.far, new KisError('context_length_exceeded', 'too long'))
    await expect(send(these)).rejects.toMatchObject({ code: 'context_length_exceeded' })
    expect([these.far.chats, these.near.chats]).toEqual([1, 0])
  })

  it('a call retried after a failure is charged once', async () => {
    const these = under()
    these.far.openings = [down]
    these.far.completions = [down, completion({ usage: usage(20, 3) })]
    expect(await send(these)).toEqual(expect.objectContaining({ cost: 26_000n, warnings: [] }))
    expect([these.far.chats, these.near.chats, these.billing.balance]).toEqual([2, 0, 1_000_000_000n - 26_000n])
  })

  it('retries at most a tenth of the calls while an engine fails them all', async () => {
    const these = under()
    fail(these.far, refused(500))
    for (let call = 0; call < 40; call++) await send(these)
    // 10 saved retries, and 40 calls that earn a tenth each.
    expect([these.far.chats, these.near.chats]).toEqual([40 + 13, 40])
  })

  it('is used immediately while the engine is skipped', async () => {
    const these = under()
    fail(these.far, down)
    for (let call = 0; call < 3; call++) await send(these)
    // The fifth failure in a row is not retried.
    expect(these.far.chats).toBe(5)
    expect((await send(these)).warnings).toEqual(['answered_by:vendor/spare'])
    expect(these.far.chats).toBe(5)
  })
})

it('a stream that fails after its first chunk yields the chunks and one error, without a fallback', async () => {
  const { deps, billing, far, near } = under()
  far.steps = [...stream(2), down]
  const events = streamChatCompletion(deps, createRequestContext(), request)
  expect((await events.next()).value?.chunks).toEqual(far.steps[0])
  expect((await events.next()).value?.chunks).toEqual(far.steps[1])
  await expect(events.next()).rejects.toBe(down)
  expect(await events.next()).toMatchObject({ done: true })
  expect([far.chats, near.chats, billing.openHolds]).toEqual([1, 0, 0])
})

it('a stream that fails after its usage arrived is charged by it, once', async () => {
  const { deps, billing, far } = under()
  far.steps = [...stream(1), [usageChunk(20, 1)], down]
  const events = streamChatCompletion(deps, createRequestContext(), request)
  await events.next()
  await expect(events.next()).rejects.toBe(down)
  expect(billing.only.charged).toBe(22_000n)
})

it('two models that are fallbacks of each other are called once each', async () => {
  const catalog = CATALOG.replace('price: { input: "10", output: "20" }', '$&, fallbacks: [main]').replace('BADGE', 'cloud')
  const these = parts({ catalog })
  these.far.completions = [refused(401)]
  these.near.completions = [refused(403)]
  await expect(createChatCompletion(these.deps, createRequestContext(), request)).rejects.toThrow('status 403')
  await expect(createChatCompletion(these.deps, createRequestContext(), { ...request, model: 'vendor/spare' })).rejects.toThrow(
    'status 401',
  )
  expect([these.far.chats, these.near.chats]).toEqual([2, 2])
})

it('no model is called after the deadline of the call', async () => {
  const { deps, far, near } = under()
  let nowMs = 0
  const clock = { ...deps.clock, now: () => new Date(nowMs) }
  far.chat.complete = async () => {
    nowMs += MAX_CALL_MS
    throw down
  }
  await expect(createChatCompletion({ ...deps, clock }, createRequestContext(), request)).rejects.toBe(down)
  expect(near.chats).toBe(0)
})

describe('Stream from a silent engine', () => {
  it.each([
    ['before its headers', { openings: ['wait' as const] }],
    ['after its headers', { steps: ['wait' as const] }],
  ])('%s is cancelled and served by the fallback, without a retry', async (_name, script) => {
    const { deps, billing, far, near } = under()
    Object.assign(far, script)
    const engines = new Map([...deps.engines].map(([name, engine]) => [name, name === 'far' ? { ...engine, firstByteMs: 5 } : engine]))
    const events = streamChatCompletion({ ...deps, engines }, createRequestContext(), request)
    expect((await events.next()).value).toMatchObject({ warnings: ['answered_by:vendor/spare'], chunks: near.steps[0] })
    expect([far.chats, far.ended, near.chats]).toEqual([1, 1, 1])
    expect([...billing.holds.values()].map(({ state }) => state)).toEqual(['settled', 'dispatched'])
    await events.return?.()
  })

  it('has no such limit after its first chunk', async () => {
    const { deps, far } = under()
    far.steps = [...stream(1), 'wait']
    const engines = new Map([...deps.engines].map(([name, engine]) => [name, { ...engine, firstByteMs: 5 }]))
    const events = streamChatCompletion({ ...deps, engines }, createRequestContext(), request)
    await events.next()
    const pending = events.next()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(far.ended).toBe(0)
    await events.return?.()
    expect(await pending).toMatchObject({ done: true })
    expect(far.ended).toBe(1)
  })
})
