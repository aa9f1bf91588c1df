import { readFileSync } from 'node:fs'
import type { ExecutionResult } from 'graphql'
import { buildASTSchema, parse, validate } from 'graphql'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { KisError, ServiceUnavailable } from '../../common/errors.ts'
import type { Link, Operation } from '../../common/link/link.ts'
import { systemClock } from '../../common/process/clock.ts'
import { somebody } from '../test-support/parts.ts'
import { billingOver } from './billing-link.ts'

const rates = {
  inputTokens: 150_000_000n,
  cachedInputTokens: 1n,
  cacheWriteTokens: 2n,
  outputTokens: 600_000_000n,
  audioMilliseconds: 0n,
  searchUnits: 0n,
}
const rateCard = { version: 'v', ...rates, tiers: [{ aboveInputTokens: 200_000, ...rates, outputTokens: 3n }] }
const texts = {
  inputTokens: '0.15',
  cachedInputTokens: '0.000000001',
  cacheWriteTokens: '0.000000002',
  outputTokens: '0.6',
  audioMilliseconds: '0',
  searchUnits: '0',
}
const quantities = { inputTokens: 1, cachedInputTokens: 2, cacheWriteTokens: 4, outputTokens: 3, audioMilliseconds: 0, searchUnits: 0 }
const createContext = (signal: AbortSignal) => ({ caller: somebody, requestId: 'req_1', signal })
const context = createContext(new AbortController().signal)

/** A link with scripted results; an error in the list is thrown. */
function scripted(...results: (ExecutionResult | Error)[]) {
  const operations: Operation[] = []
  const link = {
    async execute(operation: Operation) {
      operations.push(operation)
      const result = results.length > 1 ? results.shift()! : results[0]!
      if (result instanceof Error) throw result
      return result
    },
  } as unknown as Link
  return { billing: billingOver(link, { ...systemClock, sleep: (_ms, signal) => systemClock.sleep(1, signal) }), operations }
}

const refusal = (code: 'not_found' | 'internal' | 'insufficient_quota') => {
  const { message, extensions } = new KisError(code, 'no')
  return { errors: [{ message, extensions }] } as unknown as ExecutionResult
}
const ended = {
  errors: [{ message: 'ended', extensions: new ServiceUnavailable('x', { retryAfterMs: 0 }).extensions }],
} as unknown as ExecutionResult

describe('Billing link', () => {
  it('sends operations of the contract, with money as decimal strings', async () => {
    const quoteHolds = [{ amount: '0.25', isCovered: false }]
    const responseData = { settleHold: { charged: '0.0015', state: 'SETTLED' }, placeHold: {}, voidHold: { charged: '0' }, quoteHolds }
    const { billing, operations } = scripted({ data: responseData })
    await billing.placeHold(
      { id: 'hold_1', operation: 'chat_completion', modelId: 'm', rateCard, ceiling: quantities, ttlSeconds: 60, holder: null },
      context,
    )
    await billing.dispatchHold('hold_1', quantities, context)
    await billing.checkpointHold('hold_1', quantities, 45, context)
    expect(await billing.settleHold('hold_1', quantities, 'counted', context)).toEqual({ charged: 1_500_000n, isOwn: true })
    expect(await billing.voidHold('hold_1', context)).toBe(0n)
    expect(await billing.quoteHolds([{ rateCard, ceiling: quantities }], context)).toEqual([{ amount: 250_000_000n, isCovered: false }])

    const sdl = readFileSync(new URL('../../../schema/billing.graphql', import.meta.url), 'utf8')
    const schema = buildASTSchema(parse(sdl), { assumeValidSDL: true })
    for (const { query } of operations) expect(validate(schema, parse(query))).toEqual([])
    expect(operations[0]?.variables).toEqual({
      input: {
        id: 'hold_1',
        operation: 'CHAT_COMPLETION',
        modelId: 'm',
        requestId: 'req_1',
        rateCard: { version: 'v', ...texts, tiers: [{ aboveInputTokens: 200_000, ...texts, outputTokens: '0.000000003' }] },
        ceiling: quantities,
        ttlSeconds: 60,
        holder: null,
      },
    })
    expect(operations[3]?.variables).toEqual({ input: { id: 'hold_1', quantities, source: 'COUNTED' } })
  })

  it('places and dispatches without retries: the caller handles a lost response', async () => {
    for (const failure of [new ServiceUnavailable('Billing'), refusal('insufficient_quota')]) {
      const { billing, operations } = scripted(failure)
      await expect(billing.dispatchHold('hold_1', quantities, context)).rejects.toBeInstanceOf(KisError)
      expect(operations).toHaveLength(1)
    }
  })

  it('retries a settlement and a release until billing responds', async () => {
    const lost = [new ServiceUnavailable('Billing'), refusal('internal'), new TypeError('socket')]
    const settle = scripted(...lost, { data: { settleHold: { charged: '1', state: 'EXPIRED' } } })
    expect(await settle.billing.settleHold('hold_1', quantities, 'provider', context)).toEqual({ charged: 1_000_000_000n, isOwn: false })
    const free = scripted(...lost, { data: { voidHold: { charged: '0' } } })
    await free.billing.voidHold('hold_1', context)
    expect([settle.operations.length, free.operations.length]).toEqual([4, 4])
  })

  it('treats a refusal as a response', async () => {
    const { billing, operations } = scripted(refusal('not_found'))
    await expect(billing.settleHold('hold_1', quantities, 'provider', context)).rejects.toMatchObject({ code: 'not_found' })
    expect(operations).toHaveLength(1)
  })

  it('stops at its deadline, and tells the caller not to retry', async () => {
    const { billing } = scripted(new ServiceUnavailable('Billing'))
    const soon = createContext(AbortSignal.timeout(30))
    await expect(billing.settleHold('hold_1', quantities, 'provider', soon)).rejects.toMatchObject({
      code: 'service_unavailable',
      shouldRetry: false,
    })
  })

  it('distinguishes a hold that has ended from billing that is down', async () => {
    await expect(scripted(ended).billing.checkpointHold('hold_1', quantities, 45, context)).rejects.toMatchObject({ code: 'not_found' })
    const down = scripted(new ServiceUnavailable('Billing')).billing
    await expect(down.checkpointHold('hold_1', quantities, 45, context)).rejects.toMatchObject({ code: 'service_unavailable' })
  })
})

describe('Unresponsive billing', () => {
  afterEach(() => void vi.useRealTimers())

  /** A link that responds only to the operations that `speaks` selects. */
  function mute(speaks: (operation: Operation) => boolean) {
    const link = {
      execute: (operation: Operation, { signal }: { readonly signal: AbortSignal }) =>
        new Promise((resolve, reject) => {
          if (speaks(operation)) resolve({ data: { checkpointHold: {} } })
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        }),
    } as unknown as Link
    return billingOver(link, systemClock)
  }
  const placeHold = (billing: ReturnType<typeof billingOver>) =>
    billing.placeHold(
      { id: 'hold_1', operation: 'embedding', modelId: 'm', rateCard, ceiling: quantities, ttlSeconds: 60, holder: null },
      context,
    )

  it('is reported as unavailable before a call begins, and can be called again', async () => {
    vi.useFakeTimers()
    const outcome = placeHold(mute(() => false)).catch((error) => error)
    await vi.advanceTimersByTimeAsync(2_500)
    expect(await outcome).toMatchObject({ code: 'service_unavailable', shouldRetry: true, retryAfterMs: 1_000 })
  })

  it('is waited for while it responds to other calls: it is only busy', async () => {
    vi.useFakeTimers()
    const billing = mute(({ query }) => query.includes('checkpointHold'))
    let hasEnded = false
    const outcome = placeHold(billing)
      .catch((error) => error)
      .finally(() => {
        hasEnded = true
      })
    for (let passedMs = 0; passedMs < 6_000; passedMs += 1_000) {
      await billing.checkpointHold('hold_2', quantities, 45, context)
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(hasEnded).toBe(false)
    await vi.advanceTimersByTimeAsync(2_500)
    expect(await outcome).toMatchObject({ code: 'service_unavailable' })
  })
})
