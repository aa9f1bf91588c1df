import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { type Log, silentLog } from '../../../common/process/log.ts'
import { ResponseTooLarge, StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { NeverSent, type ProtocolObject } from '../../ports/engines.ts'
import { CATALOG, createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { completion, type Step, stream, usage, usageChunk } from '../../test-support/scripted-engine.ts'
import { createChatCompletion } from './create-chat-completion.ts'
import { type ChatEvent, streamChatCompletion } from './stream-chat-completion.ts'

const hello = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
/** "Hello" counts as 2 tokens, its message as 4 more. */
const INPUT = 6
const engineDown = new KisError('engine_unavailable', 'down')
const engineFailed = new KisError('engine_error', 'failed')

async function all(events: AsyncIterable<ChatEvent>): Promise<ChatEvent[]> {
  const got: ChatEvent[] = []
  for await (const event of events) got.push(event)
  return got
}

describe('Chat completion', () => {
  it('is held, executed and charged, in this order', async () => {
    const { deps, billing, far } = parts()
    const response = await createChatCompletion(deps, createRequestContext(), hello)
    expect(response.response).toEqual(far.completions[0])
    expect(billing.writes).toEqual(['placeHold', 'settleHold'])
    expect(far.calls).toMatchObject([{ engineModel: 'vendor-chat', requestId: 'req_1', maxOutputTokens: 100 }])
    expect(far.requests[0]).toBe(hello)
    // (6 x 1.2 + 64) input tokens at 1,000 nano-USD and 10 output tokens at 2,000.
    expect(billing.only).toMatchObject({ amount: 92_000n, state: 'settled', charged: 30_000n, used: { source: 'provider' } })
    expect(billing.only.checkpoint).toMatchObject({ inputTokens: 0, outputTokens: 0 })
    expect(response.cost).toBe(30_000n)
  })

  it.each([
    { name: 'cached input at its own price', fields: { usage: usage(20, 5, 10) }, charged: 25_000n, source: 'provider' },
    { name: 'the counted tokens when usage is zero', fields: { usage: usage(0, 0) }, charged: 14_000n, source: 'counted' },
    { name: 'the counted output when it is zero', fields: { usage: usage(20, 0, 10) }, charged: 23_000n, source: 'counted' },
    { name: 'the counted input when it is zero', fields: { usage: usage(0, 5) }, charged: 16_000n, source: 'counted' },
    {
      name: 'no output when it is zero and empty',
      fields: { usage: usage(20, 0), choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'stop' }] },
      charged: 20_000n,
      source: 'provider',
    },
    { name: 'the counted tokens when usage is missing', fields: {}, charged: (6n + 4n * 2n) * 1_000n, source: 'counted' },
    { name: 'the counted tokens when usage is null', fields: { usage: null }, charged: 14_000n, source: 'counted' },
    { name: 'the counted tokens when usage is malformed', fields: { usage: usage(-1, 0.5) }, charged: 14_000n, source: 'counted' },
    { name: 'at most the hold when usage is above it', fields: { usage: usage(1_000, 1_000) }, charged: 92_000n, source: 'provider' },
  ])('charges $name', async ({ fields, charged, source }) => {
    const { deps, billing, far } = parts()
    far.completions = [completion(fields)]
    expect((await createChatCompletion(deps, createRequestContext(), hello)).cost).toBe(charged)
    expect(billing.only).toMatchObject({ charged, used: { source } })
    expect(billing.openHolds).toBe(0)
  })

  it('costs nothing when the engine fails', async () => {
    const { deps, billing, far } = parts()
    far.completions = [engineFailed]
    await expect(createChatCompletion(deps, createRequestContext(), hello)).rejects.toBe(engineFailed)
    expect(billing.only.state).toBe('voided')
    expect(far.chats).toBe(1)
  })

  it('cancels the engine and charges the input when the caller disconnects', async () => {
    const { deps, billing, far } = parts()
    far.completions = ['wait']
    const leaving = new AbortController()
    const response = createChatCompletion(deps, createRequestContext(somebody, leaving.signal), hello).catch((error) => error)
    await eventually(() => far.chats === 1)
    leaving.abort()
    expect(await response).toBeInstanceOf(Error)
    expect(far.ended).toBe(1)
    expect(billing.only).toMatchObject({ state: 'settled', charged: BigInt(INPUT) * 1_000n, used: { source: 'counted' } })
  })

  it.each(['complete', 'stream'] as const)('costs nothing when the caller disconnects before the engine call: %s', async (method) => {
    const { deps, billing, far } = parts()
    const waits = Promise.withResolvers<void>()
    far.chat[method] = (_call: unknown, _request: unknown, signal: AbortSignal) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(new NeverSent(signal.reason)))
        waits.resolve()
      })
    const leaving = new AbortController()
    const context = createRequestContext(somebody, leaving.signal)
    const response = method === 'complete' ? createChatCompletion(deps, context, hello) : streamChatCompletion(deps, context, hello).next()
    await waits.promise
    leaving.abort()
    const heard = await response.catch((error: unknown) => error)
    expect(heard).not.toBeInstanceOf(NeverSent)
    await eventually(() => billing.openHolds === 0)
    expect(billing.only).toMatchObject({ state: 'voided', charged: 0n })
  })

  it('calls no engine without balance', async () => {
    const { deps, billing, far } = parts({ balance: 91_999n })
    await expect(createChatCompletion(deps, createRequestContext(), hello)).rejects.toMatchObject({ code: 'insufficient_quota' })
    expect([far.chats, billing.writes]).toEqual([0, ['placeHold']])
  })

  it.each([
    ['placeHold', 'lost'],
    ['placeHold', 'down'],
  ] as const)('is refused when %s is %s: no engine is called, and no hold remains', async (method, fault) => {
    const { deps, billing, far } = parts()
    billing.fail(method, fault)
    await expect(createChatCompletion(deps, createRequestContext(), hello)).rejects.toMatchObject({ code: 'service_unavailable' })
    await deps.background[Symbol.asyncDispose]()
    expect([far.chats, billing.openHolds, billing.balance]).toEqual([0, 0, 1_000_000_000n])
  })

  it('is charged once when responses of billing are lost', async () => {
    const { deps, billing } = parts()
    billing.fail('settleHold', 'lost', 'down', 'lost')
    expect((await createChatCompletion(deps, createRequestContext(), hello)).cost).toBe(30_000n)
    expect(billing.balance).toBe(1_000_000_000n - 30_000n)
  })

  it('succeeds for exactly 7 of 200 concurrent calls when the balance covers 7', async () => {
    const { deps, billing, far } = parts({ balance: 92_000n * 7n })
    far.completions = [completion({ usage: usage(70, 10) })]
    const calls = await Promise.allSettled(Array.from({ length: 200 }, () => createChatCompletion(deps, createRequestContext(), hello)))
    expect(calls.filter(({ status }) => status === 'fulfilled')).toHaveLength(7)
    expect([far.chats, billing.openHolds, billing.balance]).toEqual([7, 0, 7n * 2_000n])
  })

  it('with a schema is refused for a model without structured output', async () => {
    const { deps, near, billing } = parts()
    const request = { ...hello, model: 'plain', response_format: { type: 'json_schema', json_schema: { name: 'a' } } }
    await expect(createChatCompletion(deps, createRequestContext(), request)).rejects.toMatchObject({
      code: 'unsupported_value',
      param: 'response_format',
      message: expect.stringContaining('`plain`'),
    })
    expect([near.chats, billing.holds.size]).toEqual([0, 0])
  })

  it('with a schema falls back only to models with structured output', async () => {
    const { deps, near, far } = parts({
      catalog: CATALOG.replace(
        'id: careful, engine: far, kind: chat,',
        'id: careful, engine: far, kind: chat, supports: [response_schema],',
      ).replace('fallbacks: [chat, plain]', 'fallbacks: [plain]'),
    })
    far.completions = [new KisError('engine_unavailable', 'It is away.')]
    const request = { ...hello, model: 'careful', response_format: { type: 'json_schema', json_schema: { name: 'a' } } }
    await expect(createChatCompletion(deps, createRequestContext(), request)).rejects.toMatchObject({ code: 'engine_unavailable' })
    expect(near.chats).toBe(0)
  })

  it('in JSON mode goes without the mode to a model without response formats, and warns', async () => {
    const { deps, near } = parts()
    const messages = [{ role: 'user', content: 'Answer as JSON.' }]
    const request = { ...hello, messages, model: 'plain', response_format: { type: 'json_object' }, extra: [1] }
    expect((await createChatCompletion(deps, createRequestContext(), request)).warnings).toEqual(['response_format_not_honored'])
    expect(near.requests[0]).toEqual({ ...hello, messages, model: 'plain', extra: [1] })
  })
})

describe('Failing engine', () => {
  const careful = { ...hello, model: 'careful' }

  it('is retried once, then its fallbacks in order, each under its own hold', async () => {
    const { deps, billing, far, near } = parts()
    far.completions = [engineDown]
    expect((await createChatCompletion(deps, createRequestContext(), careful)).modelId).toBe('plain')
    expect([far.chats, near.chats]).toEqual([4, 1])
    expect([...billing.holds.values()].map(({ state }) => state)).toEqual([...Array(4).fill('voided'), 'settled'])
  })

  it('does not fall back to a model outside the allowlist or the residency policy', async () => {
    for (const caller of [
      { ...somebody, modelAllowlist: ['careful'] },
      { ...somebody, modelAllowlist: ['careful', 'chat'] },
    ]) {
      const { deps, far, near, billing } = parts()
      far.completions = [engineDown]
      await expect(createChatCompletion(deps, createRequestContext(caller), careful)).rejects.toBe(engineDown)
      expect([near.chats, billing.openHolds]).toEqual([0, 0])
    }
  })

  it('is skipped after consecutive failures, and the caller learns for how long', async () => {
    const { deps, far } = parts()
    far.completions = [engineDown]
    for (let call = 0; call < 4; call++) await createChatCompletion(deps, createRequestContext(), hello).catch(() => undefined)
    const reached = far.chats
    await expect(createChatCompletion(deps, createRequestContext(), hello)).rejects.toMatchObject({
      code: 'engine_unavailable',
      retryAfterMs: expect.any(Number),
    })
    expect(far.chats).toBe(reached)
  })

  it('is not retried after another error', async () => {
    const { deps, far } = parts()
    for (const code of ['invalid_request', 'engine_error', 'engine_timeout'] as const) {
      far.completions = [new KisError(code, 'no')]
      const { chats } = far
      await expect(createChatCompletion(deps, createRequestContext(), hello)).rejects.toMatchObject({ code })
      expect(far.chats).toBe(chats + 1)
    }
  })
})

describe('Chat stream', () => {
  it('does nothing before its first read, yields every chunk, and its cost last', async () => {
    const { deps, billing, far } = parts()
    const events = streamChatCompletion(deps, createRequestContext(), hello)
    await Promise.resolve()
    expect([billing.writes.length, far.chats]).toEqual([0, 0])
    const got = await all(events)
    expect(got.map(({ chunks }) => chunks)).toEqual(far.steps)
    expect(got.map(({ cost }) => cost)).toEqual([null, null, null, 26_000n])
    expect(billing.writes).toEqual(['placeHold', 'settleHold'])
    expect([billing.only.charged, far.ended]).toEqual([26_000n, 0])
  })

  it.each<{ name: string; steps: Step[]; charged: bigint; source: string }>([
    { name: 'by count without usage', steps: stream(3), charged: 12_000n, source: 'counted' },
    { name: 'by count where usage is zero', steps: [...stream(3), [usageChunk(0, 0)]], charged: 12_000n, source: 'counted' },
    { name: 'the counted output where it is zero', steps: [...stream(3), [usageChunk(20, 0)]], charged: 26_000n, source: 'counted' },
    { name: 'the counted input where it is zero', steps: [...stream(3), [usageChunk(0, 3)]], charged: 12_000n, source: 'counted' },
    { name: 'the output after the last usage', steps: [[usageChunk(20, 1)], ...stream(5)], charged: 30_000n, source: 'counted' },
    {
      name: 'the last of several usages',
      steps: [[usageChunk(20, 1)], ...stream(1), [usageChunk(20, 2)]],
      charged: 24_000n,
      source: 'provider',
    },
    { name: 'the hold where usage is above it', steps: [...stream(1), [usageChunk(500, 500)]], charged: 92_000n, source: 'provider' },
  ])('is charged $name', async ({ steps, charged, source }) => {
    const { deps, billing, far } = parts()
    far.steps = steps
    expect((await all(streamChatCompletion(deps, createRequestContext(), hello))).at(-1)?.cost).toBe(charged)
    expect(billing.only).toMatchObject({ charged, used: { source } })
  })

  it.each<[string, Step[]]>([
    ['nothing', []],
    ['a usage', [[usageChunk(20, 0)]]],
    ['chunks without choices', [[{ choices: [] }], [{ choices: [], usage: usage(20, 3) }]]],
  ])('that ends with %s and no reply is a failure, and costs nothing', async (_name, steps) => {
    const { deps, billing, far } = parts()
    far.steps = steps
    await expect(all(streamChatCompletion(deps, createRequestContext(), hello))).rejects.toMatchObject({ code: 'engine_error' })
    expect(billing.only.state).toBe('voided')
  })

  it('that is refused or fails before its first chunk rejects the first next() and costs nothing', async () => {
    for (const script of [
      { openings: [engineFailed], steps: [] },
      { openings: [], steps: [engineFailed] },
    ]) {
      const { deps, billing, far } = parts()
      Object.assign(far, script)
      const events = streamChatCompletion(deps, createRequestContext(), hello)
      await expect(events.next()).rejects.toBe(engineFailed)
      expect(await events.next()).toMatchObject({ done: true })
      expect(billing.only.state).toBe('voided')
    }
    const { deps, far } = parts({ balance: 0n })
    await expect(streamChatCompletion(deps, createRequestContext(), hello).next()).rejects.toMatchObject({ code: 'insufficient_quota' })
    await expect(streamChatCompletion(deps, createRequestContext(), { ...hello, n: 0 }).next()).rejects.toMatchObject({ param: 'n' })
    expect(far.chats).toBe(0)
  })

  it('falls back before the first chunk, and never after it', async () => {
    const { deps, far, near } = parts()
    far.openings = [engineFailed, engineFailed]
    const events = await all(streamChatCompletion(deps, createRequestContext(), { ...hello, model: 'careful' }))
    expect([far.chats, near.chats, events.length]).toEqual([2, 1, 4])
    far.steps = [...stream(1), engineDown]
    const cut = streamChatCompletion(deps, createRequestContext(), { ...hello, model: 'careful' })
    await cut.next()
    await expect(cut.next()).rejects.toBe(engineDown)
    expect(near.chats).toBe(1)
  })

  it.each<[string, Step[], number, bigint]>([
    // 4 characters per token, if a piece may be a single character.
    ['counted by chunk', stream(1_000).slice(0, -1), 10, BigInt(INPUT + 10 * 2) * 1_000n],
    [
      'by its own report',
      [...stream(9).slice(0, -1), [{ choices: [{ index: 0, delta: { content: 'more' } }], usage: usage(20, 11) }], ...stream(9)],
      9,
      42_000n,
    ],
    ['in one chunk', [[{ choices: [{ index: 0, delta: { content: 'many words '.repeat(100) } }] }], ...stream(3)], 1, 26_000n],
  ])('that exceeds its `max_tokens`, %s, is cut there with `length`', async (_name, steps, atLeast, charged) => {
    const { deps, billing, far } = parts()
    far.steps = [...steps, 'wait']
    const got = await all(streamChatCompletion(deps, createRequestContext(), hello))
    const chunks = got.flatMap((event) => event.chunks)
    const texts = chunks.flatMap((chunk) =>
      (chunk.choices as { delta: { content?: string } }[]).flatMap(({ delta }) => delta.content || []),
    )
    expect(texts.length).toBeGreaterThanOrEqual(atLeast)
    expect(texts.length).toBeLessThanOrEqual(atLeast + 5)
    expect(chunks.at(-2)).toMatchObject({ choices: [{ finish_reason: 'length' }] })
    expect([got.at(-1)?.cost, billing.only.charged, billing.openHolds, far.ended]).toEqual([charged, charged, 0, 1])
  })

  it('of single characters is not mistaken for an overlong one', async () => {
    const { deps, far } = parts()
    const pieces = [...'ten tokens in some forty letters'].map((content) => [{ choices: [{ index: 0, delta: { content } }] }])
    far.steps = [...pieces, [usageChunk(20, 10)]]
    const got = await all(streamChatCompletion(deps, createRequestContext(), hello))
    expect(got.flatMap((event) => event.chunks).at(-2)).toMatchObject({ choices: [{ finish_reason: 'stop' }] })
  })

  it('that is cut costs nothing, or the usage that the vendor reported', async () => {
    for (const [steps, expected] of [
      [[...stream(2), engineFailed], { state: 'voided', charged: 0n }],
      [[...stream(2), [usageChunk(20, 2)], engineFailed], { state: 'settled', charged: 24_000n }],
    ] as [Step[], object][]) {
      const { deps, billing, far } = parts()
      far.steps = steps
      await expect(all(streamChatCompletion(deps, createRequestContext(), hello))).rejects.toBe(engineFailed)
      expect(billing.only).toMatchObject(expected)
    }
  })

  const LENGTH = 8
  for (const how of ['return()', 'its signal'] as const) {
    for (let pulled = 0; pulled <= LENGTH; pulled++) {
      it(`abandoned by ${how} after ${pulled} chunks, with the next one pending, cancels the engine and charges those`, async () => {
        const { deps, billing, far } = parts()
        far.steps = [...stream(pulled), 'wait']
        const leaving = new AbortController()
        const events = streamChatCompletion(deps, createRequestContext(somebody, leaving.signal), hello)
        for (let chunk = 0; chunk < pulled; chunk++) await events.next()
        const pending = events.next()
        if (pulled === 0) await eventually(() => far.chats === 1)
        if (how === 'return()') await events.return?.()
        else leaving.abort()
        expect(await pending).toEqual({ done: true, value: undefined })
        await eventually(() => billing.openHolds === 0)
        expect(billing.only).toMatchObject({ state: 'settled', charged: BigInt(INPUT + 2 * pulled) * 1_000n, used: { source: 'counted' } })
        expect(far.ended).toBe(1)
      })
    }
  }

  it('abandoned at any moment of its start leaves no hold and no running engine call', async () => {
    for (let ticks = 0; ticks < 12; ticks++) {
      const { deps, billing, far } = parts()
      far.openings = ['wait']
      const events = streamChatCompletion(deps, createRequestContext(), hello)
      const pending = events.next()
      for (let tick = 0; tick < ticks; tick++) await new Promise((resolve) => setImmediate(resolve))
      await events.return?.()
      expect(await pending).toMatchObject({ done: true })
      await eventually(() => billing.openHolds === 0 && far.ended === far.chats)
      if (far.chats === 0) expect(billing.balance).toBe(1_000_000_000n)
    }
  })

  it.each([
    ['zero', usage(20, 0), 20 + 2 * 5, 'counted'],
    ['less than was delivered', usage(20, 2), 20 + 2 * 5, 'counted'],
    ['more than was delivered', usage(20, 7), 20 + 2 * 7, 'provider'],
    ['zero of all', usage(0, 0), INPUT + 2 * 5, 'counted'],
  ])('abandoned after an early usage of %s is charged the larger of that and the count', async (_name, early, charged, source) => {
    for (const isFailed of [false, true]) {
      const { deps, billing, far } = parts()
      const [first, ...rest] = stream(5) as (readonly ProtocolObject[])[]
      far.steps = [[{ ...first![0], usage: early }], ...rest, isFailed ? engineFailed : 'wait']
      const events = streamChatCompletion(deps, createRequestContext(), hello)
      for (let chunk = 0; chunk < 5; chunk++) await events.next()
      if (isFailed) await expect(events.next()).rejects.toBe(engineFailed)
      else await events.return?.()
      await eventually(() => billing.openHolds === 0)
      // A vendor's failure without usage is free.
      if (isFailed && early.prompt_tokens === 0) expect(billing.only.state).toBe('voided')
      else expect(billing.only).toMatchObject({ charged: BigInt(charged) * 1_000n, used: { source } })
    }
  })

  it('abandoned after its final usage is charged by it', async () => {
    const { deps, billing, far } = parts()
    far.steps = [...stream(1), [usageChunk(20, 9)], 'wait']
    const events = streamChatCompletion(deps, createRequestContext(), hello)
    await events.next()
    const rest = events.next()
    await new Promise(setImmediate)
    await events.return?.()
    await rest
    await eventually(() => billing.openHolds === 0)
    expect(billing.only).toMatchObject({ charged: 38_000n, used: { source: 'provider' } })
  })

  it('reports its progress to billing every 64 tokens', async () => {
    const { deps, billing, far } = parts()
    far.steps = [...stream(130), 'wait']
    const events = streamChatCompletion(deps, createRequestContext(), { ...hello, max_tokens: 100, n: 2 })
    for (let chunk = 0; chunk < 130; chunk++) await events.next()
    await eventually(() => billing.only.checkpoint.outputTokens === 128)
    expect(billing.writes).toEqual(['placeHold', 'checkpointHold', 'checkpointHold'])
    await events.return?.()
  })

  it('reports its progress to billing after 2 s, and a lost checkpoint changes nothing', async () => {
    const { deps, billing, far } = parts()
    let nowMs = Date.now()
    const clock = { ...deps.clock, now: () => new Date(nowMs) }
    billing.fail('checkpointHold', 'down')
    far.steps = [...stream(3), [usageChunk(20, 3)]]
    const events = streamChatCompletion({ ...deps, clock }, createRequestContext(), hello)
    await events.next()
    nowMs += 2_000
    await events.next()
    await eventually(() => billing.writes.includes('checkpointHold'))
    await all(events)
    expect(billing.only.charged).toBe(26_000n)
  })

  it('is charged once when responses of billing are lost', async () => {
    const { deps, billing } = parts()
    billing.fail('settleHold', 'lost', 'lost')
    expect((await all(streamChatCompletion(deps, createRequestContext(), hello))).at(-1)?.cost).toBe(26_000n)
    expect(billing.balance).toBe(1_000_000_000n - 26_000n)
  })
})

describe('Chat call that exceeds a limit or deadline of the service', () => {
  const stopped = () => new StoppedByLimit('engine_error', 'too much')
  const callOfTool = (index: number) => [
    { choices: [{ index: 0, delta: { tool_calls: [{ index, id: `c${index}`, function: { name: 'f', arguments: '' } }] } }] },
  ]

  it.each<[string, Step[], number]>([
    ['by the engine', [...stream(5), stopped()], 5],
    ['with an early usage of zero', [...stream(5), [usageChunk(20, 0)], stopped()], 5],
    ['by a limit of tool calls', [...stream(5), ...Array.from({ length: 1_025 }, (_, index) => callOfTool(index))], 1_030],
  ])('as a stream, %s, is charged the counted tokens', async (_name, steps, output) => {
    const { deps, billing, far } = parts()
    far.steps = steps
    const request = { ...hello, n: 100, max_tokens: 100 }
    await expect(all(streamChatCompletion(deps, createRequestContext(), request))).rejects.toMatchObject({ code: 'engine_error' })
    expect(billing.only).toMatchObject({ state: 'settled', used: { source: 'counted', quantities: { outputTokens: output } } })
    expect(billing.only.charged).toBeLessThanOrEqual(billing.only.amount)
  })

  it('by chunks without a choice is charged its input', async () => {
    const { deps, billing, far } = parts()
    far.steps = Array(1_001).fill([{ choices: [] }])
    await expect(all(streamChatCompletion(deps, createRequestContext(), hello))).rejects.toBeInstanceOf(StoppedByLimit)
    expect(billing.only).toMatchObject({ charged: BigInt(INPUT) * 1_000n, used: { source: 'counted' } })
  })

  it.each([
    ['its usage', { usage: usage(20, 5) }, 30_000n],
    ['the counted tokens', {}, BigInt(INPUT + 2 * 1_025) * 1_000n],
  ])('in a plain response with too many tool calls is charged %s', async (_name, fields, charged) => {
    const { deps, billing, far } = parts()
    const tool_calls = Array(1_025).fill({ function: { name: 'f', arguments: '' } })
    far.completions = [completion({ choices: [{ index: 0, message: { tool_calls } }], ...fields })]
    await expect(createChatCompletion(deps, createRequestContext(), { ...hello, n: 20, max_tokens: 100 })).rejects.toBeInstanceOf(
      StoppedByLimit,
    )
    expect(billing.only).toMatchObject({ state: 'settled', charged })
  })

  it('with an oversized response is charged all held output', async () => {
    const { deps, billing, far } = parts()
    far.completions = [new ResponseTooLarge('engine_error', 'too large')]
    await expect(createChatCompletion(deps, createRequestContext(), hello)).rejects.toBeInstanceOf(ResponseTooLarge)
    expect(billing.only).toMatchObject({ charged: BigInt(INPUT + 10 * 2) * 1_000n, used: { source: 'counted' } })
  })

  it('by its total time is charged its input', async () => {
    const { deps, billing, far } = parts()
    far.completions = ['wait']
    await expect(createChatCompletion(deps, createRequestContext(), hello, 5)).rejects.toMatchObject({ code: 'engine_timeout' })
    expect([billing.only.charged, far.ended]).toEqual([BigInt(INPUT) * 1_000n, 1])
  })

  it('before the engine was called costs nothing', async () => {
    const { deps, billing, far } = parts()
    const queued = (_call: unknown, _request: unknown, signal: AbortSignal) =>
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new NeverSent(signal.reason))))
    Object.assign(far.chat, { complete: queued, stream: queued })
    await expect(createChatCompletion(deps, createRequestContext(), hello, 5)).rejects.toMatchObject({ code: 'engine_timeout' })
    const engines = new Map([...deps.engines].map(([name, engine]) => [name, { ...engine, firstByteMs: 5 }]))
    await expect(streamChatCompletion({ ...deps, engines }, createRequestContext(), hello).next()).rejects.toMatchObject({
      code: 'engine_timeout',
    })
    expect([...billing.holds.values()].map(({ state }) => state)).toEqual(['voided', 'voided'])
  })

  it('or is abandoned by its reader is charged even where an interrupted call would be free', async () => {
    const record = {
      isFreeWhenCut: true,
      holding: async () => undefined,
      holdEnded: () => undefined,
      completed: () => Promise.reject(engineDown),
    }
    for (const [disconnect, charged] of [
      ['return', BigInt(INPUT + 2) * 1_000n],
      ['signal', 0n],
      ['record', 0n],
    ] as const) {
      const { deps, billing, far } = parts()
      far.steps = [...stream(1), ...(disconnect === 'record' ? [] : ['wait' as const])]
      const leaving = new AbortController()
      const events = streamChatCompletion(deps, { ...createRequestContext(somebody, leaving.signal), record }, hello)
      await events.next()
      if (disconnect === 'return') await events.return?.()
      else if (disconnect === 'signal') leaving.abort()
      else await expect(events.next()).rejects.toBe(engineDown)
      await eventually(() => billing.openHolds === 0)
      expect(billing.only.charged).toBe(charged)
    }
  })

  it('is served by a fallback, and pays for both', async () => {
    for (const isStream of [false, true]) {
      const { deps, billing, far } = parts()
      far.completions = [stopped()]
      far.openings = [stopped(), stopped()]
      const careful = { ...hello, model: 'careful' }
      const cost = isStream
        ? (await all(streamChatCompletion(deps, createRequestContext(), careful))).at(-1)?.cost
        : (await createChatCompletion(deps, createRequestContext(), careful)).cost
      const charges = [...billing.holds.values()].map(({ charged }) => charged)
      // Two models of the engine, each charged for the input, and the model that replied.
      expect(charges).toEqual([6_000n, 6_000n, isStream ? 26_000n : 30_000n])
      expect(cost).toBe(charges.reduce((sum, charged) => sum + charged))
    }
  })
})

it('warns the operator of a usage of zero once per model and hour', async () => {
  const warned: object[] = []
  let nowMs = Date.now()
  const clock = { ...systemClock, now: () => new Date(nowMs) }
  const { deps, far } = parts({ clock, log: { ...silentLog, warn: (facts: object) => void warned.push(facts) } as Log })
  far.completions = [completion({ usage: usage(20, 0) })]
  far.steps = [...stream(3), [usageChunk(0, 3)]]
  await createChatCompletion(deps, createRequestContext(), hello)
  await all(streamChatCompletion(deps, createRequestContext(), hello))
  expect(warned).toEqual([{ model: 'chat', engine: 'far' }])
  nowMs += 3_600_000
  await createChatCompletion(deps, createRequestContext(), hello)
  far.completions = [completion(), completion({})]
  await createChatCompletion(deps, createRequestContext(), hello)
  await createChatCompletion(deps, createRequestContext(), hello)
  expect(warned).toHaveLength(2)
})

describe('Chat request with an oversized maximum response', () => {
  // A token with 20 alternatives takes 64 bytes for each of 21, and 4 for itself.
  const catalog = CATALOG.replace('context_window: 1000, max_output_tokens: 100', 'max_output_tokens: 100000')
  const logprobs = { logprobs: true, top_logprobs: 20 }

  it.each<[string, object, boolean, string | null]>([
    ['14 choices with alternatives', { n: 14, ...logprobs }, true, 'max_completion_tokens'],
    ['14 choices with alternatives of few tokens', { n: 14, ...logprobs, max_tokens: 14_224 }, true, null],
    ['14 choices with alternatives of too many tokens', { n: 14, ...logprobs, max_tokens: 14_225 }, true, 'max_tokens'],
    ['14 choices', { n: 14 }, true, null],
    ['alternatives', { ...logprobs, max_completion_tokens: 15_558 }, false, 'max_completion_tokens'],
    ['alternatives of few tokens', { ...logprobs, max_completion_tokens: 15_557 }, false, null],
    ['128 choices', { n: 128 }, false, 'max_completion_tokens'],
    ['50 choices', { n: 50 }, false, null],
  ])('is refused before the hold: %s', async (_name, fields, isStream, param) => {
    const { deps, billing } = parts({ catalog, balance: 10n ** 15n })
    const request = { model: 'chat', messages: hello.messages, ...fields }
    const response = isStream
      ? all(streamChatCompletion(deps, createRequestContext(), request))
      : createChatCompletion(deps, createRequestContext(), request)
    if (param === null) return expect(response).resolves.toBeDefined()
    await expect(response).rejects.toMatchObject({ code: 'invalid_request', param })
    expect(billing.holds.size).toBe(0)
  })

  it('is accepted by an engine without log probabilities', async () => {
    const { deps, far } = parts({ catalog, balance: 10n ** 15n })
    Object.assign(far.chat, { hasLogprobs: false })
    await createChatCompletion(deps, createRequestContext(), { model: 'chat', messages: hello.messages, ...logprobs })
  })
})
