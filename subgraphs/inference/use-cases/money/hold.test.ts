import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Principal } from '../../../common/identity/principal.ts'
import { toQuantities } from '../../domain/tokens/usage.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { HOLD_TTL_SECONDS, openHold } from './hold.ts'

describe('Open hold', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())

  async function opened() {
    const { deps, billing } = parts()
    const context = { ...createRequestContext(), caller: somebody as Principal }
    const model = deps.catalog.models.find(({ id }) => id === 'chat')!
    const terms = { operation: 'chat_completion', model, ceiling: toQuantities(10, 10), atLeast: toQuantities(10, 0) } as const
    return { billing, hold: await openHold(deps, context, terms) }
  }
  const renewals = (writes: readonly string[]) => writes.filter((write) => write === 'checkpointHold').length

  it('is renewed while the engine works, often enough to lose one renewal, and not after it ends', async () => {
    const { billing, hold } = await opened()
    await vi.advanceTimersByTimeAsync(HOLD_TTL_SECONDS * 10 * 1_000)
    expect(renewals(billing.writes)).toBeGreaterThanOrEqual(20)
    hold.checkpoint(toQuantities(10, 5))
    await vi.advanceTimersByTimeAsync(HOLD_TTL_SECONDS * 1_000)
    expect(billing.only.checkpoint).toMatchObject({ inputTokens: 10, outputTokens: 5 })
    await hold.resolve(null)
    const { length } = billing.writes
    await vi.advanceTimersByTimeAsync(HOLD_TTL_SECONDS * 10 * 1_000)
    expect(billing.writes).toHaveLength(length)
  })

  it('is not renewed by a call that has handed it over to the next one', async () => {
    const { billing, hold } = await opened()
    hold.stopRenewal()
    await vi.advanceTimersByTimeAsync(HOLD_TTL_SECONDS * 10 * 1_000)
    expect(renewals(billing.writes)).toBe(0)
    expect(billing.openHolds).toBe(1)
  })
})
