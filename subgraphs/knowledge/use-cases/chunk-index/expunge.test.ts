import { expect, it } from 'vitest'
import { depsOn, FakeInference, ManualClock, MemoryBlobStore } from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import type { ChunkIndex } from '../../ports/chunk-index.ts'
import { expungeIfDue } from './expunge.ts'

const { signal } = new AbortController()
const HOUR_MS = 3_600_000

/** Processes that share a store and a clock. Each expunges as `expunge` says. */
function processes(expunge: () => Promise<void>) {
  const documents = new MemoryDocumentStore()
  const clock = new ManualClock()
  const index = { expunge } as Partial<ChunkIndex> as ChunkIndex
  const start = () => depsOn({ documents, clock, index, blobs: new MemoryBlobStore(), inference: new FakeInference() })
  return { clock, all: [start(), start(), start()] }
}

it('expunges once a day in one of several processes', async () => {
  let times = 0
  const { clock, all } = processes(async () => void times++)
  const poll = () => Promise.all(all.map((deps) => expungeIfDue(deps, signal)))
  await poll()
  clock.ms += 23 * HOUR_MS
  await poll()
  expect(times).toBe(1)
  clock.ms += HOUR_MS
  await poll()
  expect(times).toBe(2)
})

it('expunges again soon after it failed, in any process', async () => {
  let times = 0
  const { all } = processes(async () => {
    if (times++ === 0) throw new Error('no node serves')
  })
  await expect(expungeIfDue(all[0]!, signal)).rejects.toThrow('no node serves')
  for (const deps of all) await expungeIfDue(deps, signal)
  expect(times).toBe(2)
})
