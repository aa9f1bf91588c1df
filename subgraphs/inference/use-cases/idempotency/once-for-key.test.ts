import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { KisError } from '../../../common/errors.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { createRequestContext, parts } from '../../test-support/parts.ts'
import { completion } from '../../test-support/scripted-engine.ts'
import { createChatCompletion } from '../calls/create-chat-completion.ts'
import type { RunDeps } from '../deps.ts'
import { packOutcome, unpackOutcome, unpackResponse } from './keyed-outcome.ts'
import { onceForKey } from './once-for-key.ts'

const request = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
const CHARGE = 30_000n

function chat(deps: RunDeps, idempotencyKey: string | null = 'k') {
  return onceForKey(deps, createRequestContext(), { operation: 'chat_completion', request, idempotencyKey }, (context) =>
    createChatCompletion(deps, context, request),
  )
}

/** The writes of a call with a key: its record, the id of its hold, its result, its end. */
const WRITES = ['record', 'hold', 'answer', 'end'] as const

describe('Idempotent response', () => {
  const outcome = (value: object, events: readonly object[] = []) => ({ usage: null, value, events, failure: null })
  const text = (characters: number) => ({ text: 'large '.repeat(characters / 6) })

  it('is whole up to 4 MiB, or longer in the events of a stream', async () => {
    for (const outcomeToPack of [outcome(text(4_000_000)), outcome(text(6_000_000), [{ text: 'a' }])])
      expect(await unpackOutcome(await packOutcome(outcomeToPack))).toEqual(outcomeToPack)
  })

  it('is the same bytes for a longer chat completion', async () => {
    const completion = { response: text(15_000_000), modelId: 'm' }
    const { value, response } = await unpackOutcome(await packOutcome(outcome(completion)))
    expect(value).toEqual({ response: {}, modelId: 'm' })
    expect(response!.sizeBytes).toBe(JSON.stringify(completion.response).length)
    expect(await unpackResponse(response!)).toEqual(completion.response)
  })

  it('is a conflict with a reason for other longer responses, or ones that cannot be compressed', async () => {
    const random = { response: { text: randomBytes(4_000_000).toString('hex') } }
    for (const long of [text(6_000_000), random]) {
      const { value, failure } = await unpackOutcome(await packOutcome(outcome(long)))
      expect([value, failure]).toMatchObject([
        null,
        { code: 'idempotency_conflict', message: expect.stringContaining('longer than the 1 MiB compressed') },
      ])
    }
  })
})

describe('Idempotent call whose store fails', () => {
  const faults = WRITES.flatMap((write, i) => (['failed', 'lost answer'] as const).map((effect) => ({ write, nth: i + 1, effect })))

  it.each(faults)('at its $write ($effect) is charged at most once, even when it is repeated', async ({ write, nth, effect }) => {
    const store = new MemoryDocumentStore()
    const { deps, billing, far } = parts({ store })
    store.failCall(nth, effect)
    const isRefused = write === 'record' || write === 'hold'
    const first = await chat(deps).catch((error: KisError) => error)
    if (isRefused) expect([first instanceof KisError && first.code, billing.holds.size, far.chats]).toEqual(['service_unavailable', 0, 0])
    else expect(first).toMatchObject({ cost: CHARGE })
    expect(await chat(deps)).toMatchObject(isRefused ? { cost: CHARGE } : { cost: CHARGE, replayed: true })
    expect([far.chats, billing.only.charged, billing.openHolds]).toEqual([1, CHARGE, 0])
    expect(await chat(deps)).toMatchObject({ cost: CHARGE, replayed: true })
  })

  it('is refused while the store is unavailable, and a call without a key is not', async () => {
    const store = new MemoryDocumentStore()
    const { deps, far } = parts({ store })
    store.failCall(1, 'failed')
    expect(await chat(deps, null)).toMatchObject({ cost: CHARGE })
    await expect(chat(deps)).rejects.toMatchObject({ code: 'service_unavailable', shouldRetry: true })
    expect(far.chats).toBe(1)
  })

  it('after an uncertain hold runs again once billing has confirmed that there is no hold', async () => {
    const { deps, billing, far } = parts()
    billing.fail('placeHold', 'lost')
    await expect(chat(deps)).rejects.toMatchObject({ code: 'service_unavailable' })
    await deps.background[Symbol.asyncDispose]()
    expect(await chat(deps)).toMatchObject({ cost: CHARGE })
    expect([far.chats, billing.openHolds]).toEqual([1, 0])
    expect([...billing.holds.values()].map(({ charged }) => charged)).toEqual([0n, CHARGE])
  })
})

it('an idempotent call that a deadline of the service ends is charged once, and its repeat gets the failure', async () => {
  const { deps, billing, far } = parts()
  far.completions = [new StoppedByLimit('engine_timeout', 'late')]
  await expect(chat(deps)).rejects.toMatchObject({ code: 'engine_timeout' })
  await expect(chat(deps)).rejects.toMatchObject({ code: 'engine_timeout', shouldRetry: false })
  expect([far.chats, billing.only.charged]).toEqual([1, 6_000n])
})

it('an idempotent call also pays for a fallback', async () => {
  const { deps, billing, far } = parts()
  far.completions = [new StoppedByLimit('engine_timeout', 'late'), completion()]
  const careful = { ...request, model: 'careful' }
  const send = () =>
    onceForKey(deps, createRequestContext(), { operation: 'chat_completion', request: careful, idempotencyKey: 'k' }, (context) =>
      createChatCompletion(deps, context, careful),
    )
  expect(await send()).toMatchObject({ cost: 36_000n, modelId: 'chat' })
  expect(await send()).toMatchObject({ cost: 36_000n, replayed: true })
  expect([...billing.holds.values()].map(({ charged }) => charged)).toEqual([6_000n, 30_000n])
})
