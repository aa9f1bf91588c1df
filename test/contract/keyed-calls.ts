import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { DocumentStore } from '../../subgraphs/common/ports/document-store.ts'
import { formatUsd } from '../../subgraphs/common/usd.ts'
import { FakeBilling } from '../../subgraphs/inference/test-support/fake-billing.ts'
import { createRequestContext, parts, somebody } from '../../subgraphs/inference/test-support/parts.ts'
import { completion, stream, usage, usageChunk } from '../../subgraphs/inference/test-support/scripted-engine.ts'
import { createChatCompletion } from '../../subgraphs/inference/use-cases/calls/create-chat-completion.ts'
import { streamChatCompletion } from '../../subgraphs/inference/use-cases/calls/stream-chat-completion.ts'
import type { RequestContext, RunDeps } from '../../subgraphs/inference/use-cases/deps.ts'
import { createEmbeddings } from '../../subgraphs/inference/use-cases/embeddings/create-embeddings.ts'
import { onceForKey } from '../../subgraphs/inference/use-cases/idempotency/once-for-key.ts'
import { streamOnceForKey } from '../../subgraphs/inference/use-cases/idempotency/stream-once-for-key.ts'
import { createTranscription } from '../../subgraphs/inference/use-cases/transcription/create-transcription.ts'
import { streamTranscription } from '../../subgraphs/inference/use-cases/transcription/stream-transcription.ts'
import { handClock } from '../gateway/support/clock.ts'
import { eventually } from '../support/eventually.ts'

const KEY = 'order-1'
const NEVER = new AbortController().signal
const hello = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
const HOUR_MS = 3_600_000

const chat = (
  deps: RunDeps,
  { request = hello, key = KEY, context = createRequestContext() }: { request?: object; key?: unknown; context?: RequestContext } = {},
) =>
  onceForKey(deps, context, { operation: 'chat_completion', request, idempotencyKey: key }, (callContext) =>
    createChatCompletion(deps, callContext, request),
  )

const chatStream = (deps: RunDeps, key: string | null = KEY) =>
  streamOnceForKey(
    deps,
    createRequestContext(),
    { operation: 'chat_completion_stream', request: hello, idempotencyKey: key },
    (callContext) => streamChatCompletion(deps, callContext, hello),
  )

async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = []
  for await (const event of events) got.push(event)
  return got
}

/** What a call comes to that fails. */
async function failure(call: Promise<unknown>): Promise<KisError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof KisError)) throw new Error(`it did not fail as expected: ${error}`)
  return error
}

/** Calls with an idempotency key, over a document store of any kind. */
export function keyedCallsContract(name: string, open: () => Promise<DocumentStore>): void {
  describe(`Calls with an idempotency key: ${name}`, () => {
    let store: DocumentStore
    beforeEach(async () => {
      store = await open()
    })
    afterEach(() => store[Symbol.asyncDispose]())

    /** A process on the store of the test; a second one is another process, or the same after a crash. */
    const started = (options: Parameters<typeof parts>[0] = {}) => parts({ store, ...options })

    it('are executed once, and then replayed for the same request, in any order of its fields', async () => {
      const { deps, billing, far } = started()
      const first = await chat(deps)
      const { max_tokens, ...rest } = hello
      const again = await chat(deps, { request: { max_tokens, ...rest } })
      expect(again).toEqual({ ...first, replayed: true })
      expect(first.replayed).toBeUndefined()
      expect([far.chats, billing.holds.size, billing.only.charged]).toEqual([1, 1, 30_000n])
    })

    it('are replayed with identical vectors and transcripts', async () => {
      const { deps, near, far } = started()
      near.createVector = () => Float32Array.from([0.1, -0, 1e-40, 3])
      const embed = () => {
        const request = { model: 'embed', input: ['a', 'b'] }
        return onceForKey(deps, createRequestContext(), { operation: 'embedding', request, idempotencyKey: 'a' }, (context) =>
          createEmbeddings(deps, context, request),
        )
      }
      const transcribe = () => {
        const request = { model: 'speech', contentBase64: Buffer.from('wav 2500 ').toString('base64') }
        const call = { operation: 'transcription', request, idempotencyKey: 'b' } as const
        return onceForKey(deps, createRequestContext(), call, (context) => createTranscription(deps, context, request as never))
      }
      for (const call of [embed, transcribe]) expect(await call()).toEqual({ ...(await call()), replayed: undefined })
      expect([near.embeds, far.transcribed.length]).toEqual([1, 1])
    })

    it('are read to their end when a caller abandons a streamed transcript, and replayed event by event', async () => {
      const { deps, billing, far } = started()
      far.transcriptSteps = [
        [{ type: 'transcript.text.delta', delta: 'Hel' }],
        [
          { type: 'transcript.text.delta', delta: 'lo' },
          { type: 'transcript.text.done', text: 'Hello' },
        ],
      ]
      const request = { model: 'speech-live', contentBase64: Buffer.from('wav 2500 ').toString('base64') }
      const transcript = () =>
        streamOnceForKey(deps, createRequestContext(), { operation: 'transcription_stream', request, idempotencyKey: KEY }, (callContext) =>
          streamTranscription(deps, callContext, request),
        )
      const left = transcript()
      const first = await left.next()
      await left.return?.()
      await deps.background[Symbol.asyncDispose]()
      const again = await all(transcript())
      expect(again[0]).toEqual({ ...first.value, replayed: true })
      expect(again.flatMap(({ events }) => events)).toMatchObject(far.transcriptSteps.flat())
      expect(again.map(({ cost, replayed }) => [cost, replayed])).toEqual([
        [null, true],
        [null, true],
        [250_000n, true],
      ])
      expect([far.transcribed.length, billing.only.charged]).toEqual([1, 250_000n])
    })

    it('refuse their key for another request or operation, and scope keys by the API key that sends them', async () => {
      const { deps, far } = started()
      await chat(deps)
      for (const other of [() => chat(deps, { request: { ...hello, seed: 1 } }), () => all(chatStream(deps))])
        expect(await failure(other())).toMatchObject({ code: 'idempotency_conflict', param: 'idempotencyKey', shouldRetry: false })
      expect(far.chats).toBe(1)
      expect((await chat(deps, { context: createRequestContext({ ...somebody, apiKeyId: 'key_b' }) })).replayed).toBeUndefined()
      expect((await chat(deps, { key: 'order-2' })).replayed).toBeUndefined()
      expect(far.chats).toBe(3)
    })

    it('call the engine once for fifty concurrent calls, on two processes; the others are told to retry later', async () => {
      const first = started({ isExclusive: false })
      const second = started({ isExclusive: false, billing: first.billing })
      const outcomes = await Promise.allSettled(Array.from({ length: 50 }, (_, i) => chat((i % 2 ? first : second).deps)))
      const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
      for (const error of refused) expect(error).toMatchObject({ code: 'idempotency_conflict', shouldRetry: true, retryAfterMs: 1_000 })
      expect(first.far.chats + second.far.chats).toBe(1)
      expect(first.billing.only.charged).toBe(30_000n)
      expect((await chat(second.deps)).replayed).toBe(true)
    })

    it('report to concurrent repeats a delay as long as the call has taken, 30 s at most', async () => {
      const clock = handClock()
      const { deps, far } = started({ clock })
      far.completions = ['wait']
      chat(deps).catch(() => undefined)
      await eventually(() => far.chats === 1)
      for (const [afterMs, waitMs] of [
        [0, 1_000],
        [5_000, 5_000],
        [60_000, 30_000],
      ] as const) {
        clock.advance(afterMs)
        expect(await failure(chat(deps))).toMatchObject({ code: 'idempotency_conflict', shouldRetry: true, retryAfterMs: waitMs })
      }
      deps.keyedCalls[Symbol.dispose]()
    })

    it.each([
      {
        name: 'the engine',
        arrange: (far: { completions: unknown[] }) => void far.completions.unshift(new KisError('engine_error', 'no')),
      },
      { name: 'the wallet', balance: 10n },
    ])('free their key when $name refuses them, because nothing was charged', async ({ arrange, balance = 1_000_000_000n }) => {
      const { deps, billing, far } = started({ balance })
      arrange?.(far as never)
      await failure(chat(deps))
      billing.balance = 1_000_000_000n
      expect((await chat(deps)).replayed).toBeUndefined()
      expect([...billing.holds.values()].filter(({ charged }) => charged > 0n)).toHaveLength(1)
    })

    it('free their key when the request itself is invalid', async () => {
      const { deps } = started()
      expect((await failure(chat(deps, { request: { model: 'chat' } }))).code).toBe('missing_required_parameter')
      expect((await chat(deps)).replayed).toBeUndefined()
    })

    it('continue when their caller disconnects, and are replayed whole', async () => {
      const { deps, billing, far } = started()
      const gate = Promise.withResolvers<void>()
      const { complete } = far.chat
      Object.assign(far.chat, { complete: (...args: Parameters<typeof complete>) => gate.promise.then(() => complete(...args)) })
      const leaving = new AbortController()
      const left = chat(deps, { context: createRequestContext(somebody, leaving.signal) })
      await eventually(() => billing.openHolds === 1)
      leaving.abort()
      gate.resolve()
      expect(await left).toMatchObject({ cost: 30_000n })
      expect((await chat(deps)).replayed).toBe(true)
      expect([far.chats, far.ended]).toEqual([1, 0])
    })

    it('are streamed again in the same chunks, even when their caller disconnected after the first', async () => {
      const { deps, billing, far } = started()
      const leaving = chatStream(deps)
      const { value: first } = await leaving.next()
      await leaving.return!()
      await eventually(() => billing.openHolds === 0 && billing.only.charged > 0n)
      await deps.background[Symbol.asyncDispose]()
      const events = await all(chatStream(deps))
      expect(events[0]).toEqual({ ...first, replayed: true })
      expect([far.chats, far.ended, billing.only.charged]).toEqual([1, 0, 26_000n])
      const fresh = await all(chatStream(deps, null))
      expect(events).toEqual(fresh.map((event) => ({ ...event, replayed: true })))
      expect(events.at(-1)).toMatchObject({ usage: { source: 'provider' }, cost: 26_000n })
    })

    it('are not started by a stream that nobody reads', async () => {
      const { deps, far } = started()
      await chatStream(deps).return!()
      expect(far.chats).toBe(0)
      expect((await all(chatStream(deps))).some(({ replayed }) => replayed)).toBe(false)
    })

    it('replay a charged failure, after the earlier chunks, and report that a retry does not help', async () => {
      const { deps, billing, far } = started()
      far.steps = [...stream(2), [usageChunk(20, 2)], new KisError('engine_error', 'cut')]
      for (const replayed of [undefined, true]) {
        const got: unknown[] = []
        const reading = (async () => {
          for await (const event of chatStream(deps)) got.push(event)
        })()
        expect(await failure(reading)).toMatchObject({ code: 'engine_error', message: 'cut', shouldRetry: replayed === undefined })
        expect(got).toMatchObject(Array(2).fill(replayed ? { replayed } : {}))
      }
      expect([far.chats, billing.only.charged]).toEqual([1, 24_000n])
    })

    it('ended by the stop of the process are charged for their output, and say so when they are repeated', async () => {
      const { deps, billing, far } = started()
      far.steps = [...stream(1), 'wait']
      const events = chatStream(deps)
      await events.next()
      const pending = failure(events.next())
      deps.keyedCalls[Symbol.dispose]()
      expect((await pending).code).toBe('service_unavailable')
      await deps.background[Symbol.asyncDispose]()
      expect(billing.only).toMatchObject({ state: 'settled', used: { source: 'counted' } })
      const next = started({ billing })
      const message = expect.stringContaining(`was charged ${formatUsd(billing.only.charged)} USD`)
      expect(await failure(all(chatStream(next.deps)))).toMatchObject({ code: 'idempotency_conflict', shouldRetry: false, message })
      expect(next.far.chats).toBe(0)
    })

    it.each([
      { name: 'a call', start: (deps: RunDeps) => chat(deps), again: (deps: RunDeps) => chat(deps) },
      {
        name: 'a stream',
        start: (deps: RunDeps) => chatStream(deps).next(),
        again: async (deps: RunDeps) => (await all(chatStream(deps))).at(-1)!,
      },
    ])('ended by the stop of the process before any output was delivered cost nothing, and run again: $name', async ({ start, again }) => {
      const { deps, billing, far } = started()
      far.completions = ['wait']
      far.steps = ['wait']
      const pending = start(deps).catch((error: unknown) => error)
      await heldBy(billing)
      await eventually(() => far.chats === 1)
      deps.keyedCalls[Symbol.dispose]()
      await pending
      await deps.background[Symbol.asyncDispose]()
      expect(billing.only).toMatchObject({ state: 'voided', charged: 0n })
      const next = started({ billing })
      expect((await again(next.deps)).replayed).toBeUndefined()
      expect([...billing.holds.values()].filter(({ charged }) => charged > 0n)).toHaveLength(1)
    })

    it('ended by a crash before any hold run again immediately where the store has one process, else after 30 s', async () => {
      const clock = handClock()
      for (const isExclusive of [true, false]) {
        const key = `crash-${isExclusive}`
        const first = started({ clock, isExclusive })
        expect(await first.deps.keyedCalls.claim({ ...createRequestContext(), caller: somebody }, key, 'x')).not.toHaveProperty('outcome')
        const second = started({ clock, isExclusive })
        const claim = () => second.deps.keyedCalls.claim({ ...createRequestContext(), caller: somebody }, key, 'x')
        if (!isExclusive) {
          expect((await failure(claim())).shouldRetry).toBe(true)
          clock.advance(30_001)
        }
        expect(await claim()).not.toHaveProperty('outcome')
      }
    })

    it('ended by a crash between response and charge are charged by the repeat, and replayed', async () => {
      const first = started()
      Object.assign(first.billing, { settleHold: () => new Promise(() => undefined) })
      chat(first.deps).catch(() => undefined)
      const id = await heldBy(first.billing)
      const newest = { sort: { expiresAt: -1 }, limit: 1 } as const
      await eventually(async () => (await first.deps.collections.keyedCalls.find({}, newest))[0]?.state === 'answered')
      const billing = new FakeBilling(first.billing.balance)
      billing.holds.set(id, first.billing.holds.get(id)!)
      const second = started({ billing })
      expect(await chat(second.deps)).toMatchObject({ response: completion(), cost: 30_000n, replayed: true })
      expect([first.far.chats + second.far.chats, billing.only.state, billing.only.charged]).toEqual([1, 'settled', 30_000n])
      expect(await chat(second.deps)).toMatchObject({ cost: 30_000n, replayed: true })
    })

    it.each([
      { name: 'that billing has charged are refused permanently', charged: 6_000n, calls: 0 },
      { name: 'that billing has not charged run again', charged: 0n, calls: 1 },
    ])('ended by a crash during the engine call wait until their hold has ended; those $name', async ({ charged, calls }) => {
      const clock = handClock()
      for (const { isExclusive, waitMs } of [
        { isExclusive: true, waitMs: 1_000 },
        { isExclusive: false, waitMs: 30_000 },
      ]) {
        const key = `works-${isExclusive}`
        const first = started({ clock, isExclusive })
        first.far.completions = ['wait']
        chat(first.deps, { key }).catch(() => undefined)
        const id = await heldBy(first.billing)
        await eventually(() => first.far.chats === 1)
        const second = started({ clock, isExclusive, billing: first.billing })
        if (!isExclusive) clock.advance(30_001)
        const early = await failure(chat(second.deps, { key }))
        expect(early).toMatchObject({ code: 'idempotency_conflict', shouldRetry: true, retryAfterMs: waitMs })
        clock.advance(90_000)
        Object.assign(first.billing.holds.get(id)!, { state: 'expired', charged })
        for (let repeat = 0; repeat < 2; repeat++) {
          if (charged === 0n) expect((await chat(second.deps, { key })).replayed).toBe(repeat === 0 ? undefined : true)
          else expect(await failure(chat(second.deps, { key }))).toMatchObject({ code: 'idempotency_conflict', shouldRetry: false })
        }
        expect(second.far.chats).toBe(calls)
      }
    })

    it('ended by a crash run again as soon as the next process of the store has ended its holds, and cost nothing', async () => {
      const first = started()
      await first.sole!.succeed(first.deps.keyedCalls, NEVER)
      first.far.completions = ['wait']
      first.far.steps = ['wait']
      chat(first.deps).catch(() => undefined)
      chatStream(first.deps, 'order-2')
        .next()
        .catch(() => undefined)
      const { billing } = first
      await eventually(() => first.far.chats === 2)
      const second = started({ billing })
      await second.sole!.succeed(second.deps.keyedCalls, NEVER)
      expect([billing.openHolds, billing.held, billing.balance]).toEqual([0, 0n, 1_000_000_000n])
      expect((await chat(second.deps)).cost).toBe(30_000n)
      expect((await all(chatStream(second.deps, 'order-2'))).at(-1)!.cost).toBe(26_000n)
      expect([second.far.chats, billing.balance]).toEqual([2, 1_000_000_000n - 56_000n])
      const third = started({ billing })
      await third.sole!.succeed(third.deps.keyedCalls, NEVER)
      expect((await chat(third.deps)).replayed).toBe(true)
    })

    it('ended by a crash after a part was delivered and reported to billing are charged for that part, and their repeats learn so', async () => {
      const clock = handClock()
      const first = started({ clock })
      await first.sole!.succeed(first.deps.keyedCalls, NEVER)
      first.far.steps = [...stream(2), 'wait']
      const events = chatStream(first.deps)
      await events.next()
      const { billing } = first
      expect(billing.only.checkpoint.outputTokens).toBe(0)
      clock.advance(2_000)
      await events.next()
      events.next().catch(() => undefined)
      await eventually(() => billing.only.checkpoint.outputTokens > 0)
      const second = started({ clock, billing })
      await second.sole!.succeed(second.deps.keyedCalls, NEVER)
      const { charged } = billing.only
      expect(charged).toBeGreaterThan(0n)
      for (let repeat = 0; repeat < 2; repeat++) {
        const message = expect.stringContaining(`was charged ${formatUsd(charged)} USD`)
        const error = { code: 'idempotency_conflict', shouldRetry: false, param: 'idempotencyKey', message }
        expect(await failure(all(chatStream(second.deps)))).toMatchObject(error)
      }
      expect([second.far.chats, billing.holds.size, billing.balance]).toEqual([0, 1, 1_000_000_000n - charged])
    })

    it('ended by a crash between response and charge are charged by the next process of the store, and replayed', async () => {
      const first = started()
      await first.sole!.succeed(first.deps.keyedCalls, NEVER)
      const settleHold = first.billing.settleHold
      Object.assign(first.billing, { settleHold: () => new Promise(() => undefined) })
      chat(first.deps).catch(() => undefined)
      await heldBy(first.billing)
      await eventually(async () => (await first.deps.collections.keyedCalls.find({ state: 'answered' }, { limit: 1 })).length === 1)
      const { billing } = first
      Object.assign(billing, { settleHold })
      // Of a call that comes first and that nobody can read.
      const [stored] = await first.deps.collections.keyedCalls.find({ state: 'answered' }, { limit: 1 })
      await first.deps.collections.keyedCalls.insertOne({ ...stored!, _id: `!${stored!._id}`, outcome: 'AAAA' })
      const second = started({ billing })
      await second.sole!.succeed(second.deps.keyedCalls, NEVER)
      expect(billing.only).toMatchObject({ state: 'settled', charged: 30_000n })
      expect(await chat(second.deps)).toMatchObject({ cost: 30_000n, replayed: true })
      expect(first.far.chats + second.far.chats).toBe(1)
    })

    it('whose response was stored and whose hold has expired before the charge run again', async () => {
      const clock = handClock()
      const first = started({ clock, isExclusive: false })
      Object.assign(first.billing, { settleHold: () => new Promise(() => undefined) })
      chat(first.deps).catch(() => undefined)
      const id = await heldBy(first.billing)
      await eventually(async () => (await first.deps.collections.keyedCalls.find({ state: 'answered' }, { limit: 1 })).length === 1)
      const billing = new FakeBilling(first.billing.balance)
      billing.holds.set(id, { ...first.billing.holds.get(id)!, state: 'expired' })
      clock.advance(30_001)
      const second = started({ clock, isExclusive: false, billing })
      const { replayed, cost } = await chat(second.deps)
      expect([replayed, cost, second.far.chats, billing.balance]).toEqual([undefined, 30_000n, 1, 1_000_000_000n - 30_000n])
      expect((await chat(second.deps)).replayed).toBe(true)
    })

    it('report that a response is too long to be stored, which was returned and charged once', async () => {
      const { deps, billing, far } = started()
      const noise = Array.from({ length: 400_000 }, () => Math.random().toString(36).slice(2, 6)).join('')
      far.completions = [completion({ usage: usage(20, 5), noise })]
      expect((await chat(deps)).response).toMatchObject({ noise })
      expect(await failure(chat(deps))).toMatchObject({
        code: 'idempotency_conflict',
        shouldRetry: false,
        message: expect.stringContaining('longer than'),
      })
      expect([far.chats, billing.only.charged]).toEqual([1, 30_000n])
    })

    it('free their key after 24 hours, and leave nothing behind', async () => {
      const clock = handClock()
      const { deps, far } = started({ clock })
      await chat(deps)
      clock.advance(24 * HOUR_MS - 1)
      expect((await chat(deps)).replayed).toBe(true)
      expect(await deps.keyedCalls.removeExpired()).toBe(0)
      clock.advance(1)
      expect((await chat(deps, { request: { ...hello, seed: 1 } })).replayed).toBeUndefined()
      expect(far.chats).toBe(2)
      clock.advance(24 * HOUR_MS)
      expect([await deps.keyedCalls.removeExpired(), await deps.keyedCalls.removeExpired()]).toEqual([1, 0])
    })
  })
}

/** The id of the hold, once it is dispatched. */
async function heldBy(billing: FakeBilling): Promise<string> {
  await eventually(() => billing.holds.size === 1 && billing.only.state === 'dispatched')
  return [...billing.holds.keys()][0]!
}
