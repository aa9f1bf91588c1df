import { afterEach, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { parts, somebody } from '../../test-support/parts.ts'
import type { RunRecord } from '../tables.ts'
import { type FollowedEvent, RunLog } from './run-log.ts'

type Events = AsyncIterableIterator<FollowedEvent, undefined>
const open: Events[] = []
afterEach(() => {
  for (const events of open.splice(0)) void events.return?.()
})

/** Two processes on one store. `reads` counts the first one's queries for the runs' events. */
async function world(runs: number) {
  const { deps } = parts()
  let reads = 0
  const runEvents = new Proxy(deps.collections.runEvents, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (name !== 'find') return member
      return (...args: Parameters<typeof target.find>) => {
        reads += 1
        return target.find(...args)
      }
    },
  })
  const here = new RunLog({ ...deps, collections: { ...deps.collections, runEvents } }, deps.collections.runs)
  const there = new RunLog(deps, deps.collections.runs)
  const ids = Array.from({ length: runs }, (_, i) => `run_${i}`)
  for (const _id of ids) {
    const run = { _id, organizationId: 'org_a', agentId: 'agt_1', expiresAt: new Date(), outbox: [] } as unknown as RunRecord
    await deps.collections.runs.insertOne(run)
    const writer = await there.writerFor(run, true)
    writer.write({ type: 'run_started', agentVersion: 1 })
    await writer.flushed()
  }
  /** Reads the first event, and waits for the next. */
  const follow = async (id: string) => {
    const events: Events = here.follow('org_a', id, null)
    open.push(events)
    expect((await events.next()).value?.sequence).toBe(1)
    return events.next()
  }
  return { here, there, ids, follow, reads: () => reads }
}

it('is read once for all followers, and each receives what another process has written', async () => {
  const { there, ids, follow, reads } = await world(10)
  const next = Array.from({ length: 500 }, (_, i) => follow(ids[i % ids.length]!))
  // Each follower has read its first event, and that there are no more.
  await eventually(() => reads() >= 1_000)
  const before = reads()
  const began = Date.now()
  await eventually(() => Date.now() - began > 1_500)
  expect(reads() - before).toBeLessThanOrEqual(8)
  for (const id of ids) await there.end('org_a', id, 'completed')
  for (const result of await Promise.all(next)) expect(result.value).toMatchObject({ sequence: 2, event: { type: 'done' } })
}, 60_000)

it('allows fifty followers of one key, and another after one leaves', async () => {
  const { here, ids } = await world(1)
  const follow = (apiKeyId: string) => here.followFor({ ...somebody, apiKeyId }, ids[0]!, null)
  const followed = Array.from({ length: 50 }, () => follow('key_a'))
  open.push(...followed)
  expect(() => follow('key_a')).toThrowError(expect.objectContaining({ code: 'rate_limit_exceeded' }))
  open.push(follow('key_b'))
  await followed[0]!.return?.()
  open.push(follow('key_a'))
  expect(() => follow('key_a')).toThrowError(expect.objectContaining({ code: 'rate_limit_exceeded' }))
})

it('allows followers of one organization half of all slots, and others beside them', async () => {
  const { here, ids } = await world(1)
  const follow = (organizationId: string, apiKeyId: string) => here.followFor({ ...somebody, organizationId, apiKeyId }, ids[0]!, null)
  for (let i = 0; i < 2_000; i++) open.push(follow('org_a', `key_${i % 40}`))
  expect(() => follow('org_a', 'key_new')).toThrowError(expect.objectContaining({ code: 'rate_limit_exceeded' }))
  open.push(follow('org_b', 'key_b'))
})

it('yields nothing after the last event of an ended run, and refuses unknown cursors', async () => {
  const { there, ids } = await world(1)
  const [id] = ids as [string]
  await there.end('org_a', id, 'completed')
  expect(await there.follow('org_a', id, '2').next()).toEqual({ done: true, value: undefined })
  expect((await there.follow('org_a', id, '1').next()).value).toMatchObject({ sequence: 2 })
  for (const after of ['3', '100', '01x', '-1', '1e3', '9999999999'])
    await expect(there.follow('org_a', id, after).next(), after).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
})
