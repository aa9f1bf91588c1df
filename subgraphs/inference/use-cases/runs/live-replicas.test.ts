import { expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { openCollections } from '../tables.ts'
import { LiveReplicas } from './live-replicas.ts'

/** Processes that send heartbeats only when the test calls for one, on a clock that the test moves. */
function processes() {
  const store = new MemoryDocumentStore()
  let now = 1_000_000
  const clock = { ...systemClock, now: () => new Date(now) }
  return {
    store,
    advance(ms: number) {
      now += ms
    },
    start: () => new LiveReplicas(openCollections(store).replicas, clock),
  }
}

it('counts the processes with a recent heartbeat', async () => {
  const { start, advance } = processes()
  const [first, second] = [start(), start()]
  expect(first.count).toBe(1)
  await second.beat()
  await first.beat()
  expect([first.count, second.count]).toEqual([2, 1])
  advance(14_000)
  await second.beat()
  expect(second.count).toBe(2)
  advance(14_000)
  await second.beat()
  expect(second.count).toBe(1)
})

it('retains its last count while the store is unavailable', async () => {
  const { start, store } = processes()
  const [first, second] = [start(), start()]
  await second.beat()
  await first.beat()
  for (const call of [1, 2, 3]) {
    store.failCall(call, 'failed')
    await expect(first.beat()).rejects.toThrow()
    expect(first.count).toBe(2)
  }
})

it('deregisters at shutdown', async () => {
  const { start } = processes()
  const [first, other] = [start(), start()]
  await first.beat()
  await first[Symbol.asyncDispose]()
  await other.beat()
  expect(other.count).toBe(1)
  await start()[Symbol.asyncDispose]()
})
