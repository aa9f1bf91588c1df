import { expect, it } from 'vitest'
import { KisError } from '../../../common/errors.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { completion } from '../../test-support/scripted-engine.ts'
import { createChatCompletion } from '../calls/create-chat-completion.ts'
import type { CallContext, KeyedDeps } from '../deps.ts'
import { RunSteps } from './run-steps.ts'

it('a call waits before its retry, even when the error has a malformed time', async () => {
  const slept: number[] = []
  let now = 1_000_000
  const clock = {
    now: () => new Date(now),
    async sleep(ms: number) {
      slept.push(ms)
      now += ms
    },
  }
  let calls = 0
  const principals = {
    async recent() {
      calls += 1
      if (calls > 1) throw new KisError('permission_denied', 'The test ends.')
      throw new KisError('rate_limit_exceeded', 'Wait.', { retryAfterMs: Number.NaN })
    },
  }
  const context = { signal: new AbortController().signal } as CallContext
  const steps = new RunSteps({ clock, principals } as unknown as KeyedDeps, 'run_1', context, {
    ...{ waits: {}, isAwaited: false, putOff: () => undefined, calling: async () => undefined },
  })
  await expect(steps.once('node/call', () => Promise.reject(new Error('not reached')))).rejects.toMatchObject({ code: 'permission_denied' })
  expect(slept).toHaveLength(1)
  expect(slept[0]).toBeGreaterThanOrEqual(500)
})

it('a call that a deadline of the service ends is repeated, and both are charged to its node', async () => {
  const { deps, billing, far } = parts()
  billing.principal = somebody
  far.completions = [new StoppedByLimit('engine_timeout', 'late'), new KisError('engine_unavailable', 'down'), completion()]
  const context = { ...createRequestContext(), caller: somebody }
  const steps = new RunSteps(deps, 'run_1', context, {
    ...{ waits: {}, isAwaited: false, putOff: () => undefined, calling: async () => undefined },
  })
  const request = { model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
  const callOnce = () => steps.once('node/call', (stepContext) => createChatCompletion(deps, stepContext, request, 10_000))
  expect(await callOnce()).toMatchObject({ modelId: 'chat' })
  expect([...billing.holds.values()].reduce((sum, { charged }) => sum + charged, 0n)).toBe(36_000n)
  expect(steps.getCost('node')).toBe(36_000n)
  expect(await deps.keyedCalls.listCharges(context, 'run_1')).toEqual(new Map([['node', 36_000n]]))
})
