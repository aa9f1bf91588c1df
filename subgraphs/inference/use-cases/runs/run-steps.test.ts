import { expect, it } from 'vitest'
import { KisError } from '../../../common/errors.ts'
import type { CallContext, KeyedDeps } from '../deps.ts'
import { RunSteps } from './run-steps.ts'

it('a call waits before its retry, also when the error names a time that is no number', async () => {
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
