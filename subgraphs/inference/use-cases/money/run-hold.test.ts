import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../common/identity/principal.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createChatCompletion } from '../calls/create-chat-completion.ts'
import { embedQuery } from '../embeddings/embed-query.ts'
import { openRunHold } from './hold.ts'

const QUESTION = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }

async function running(amount: bigint) {
  const world = parts()
  const context = { ...createRequestContext(), caller: somebody as Principal }
  const run = await openRunHold(world.deps, context, amount)
  return { ...world, run, runContext: { ...context, runHoldId: run.id } }
}

describe('Calls of a run', () => {
  it('are paid from the run hold, each by its own hold, and the rest is released at the end', async () => {
    const { deps, billing, run, runContext } = await running(1_000_000n)
    const before = billing.balance
    const chat = await createChatCompletion(deps, runContext, QUESTION)
    await embedQuery(deps, runContext, { modelId: 'embed', text: 'hello' })
    const cost = before - billing.balance
    expect([...billing.holds.values()].map(({ charged }) => charged)).toEqual([chat.cost, cost - chat.cost])
    expect(cost).toBeGreaterThan(chat.cost)
    expect(billing.held).toBe(1_000_000n - cost)
    expect([...billing.holds.values()].map(({ runHoldId }) => runHoldId)).toEqual([run.id, run.id])
    expect(await run.end()).toBe(cost)
    expect(billing.held).toBe(0n)
  })

  it('are refused without an engine call when their worst case exceeds the rest', async () => {
    const { deps, billing, far, runContext } = await running(100n)
    await expect(createChatCompletion(deps, runContext, QUESTION)).rejects.toMatchObject({ code: 'run_limit_exceeded' })
    expect(far.calls).toEqual([])
    expect(billing.held).toBe(100n)
  })
})
