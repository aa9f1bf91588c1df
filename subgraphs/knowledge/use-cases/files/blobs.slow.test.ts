import fc from 'fast-check'
import { expect, it } from 'vitest'
import { newWorld } from '../../../../test/support/data/knowledge-library.ts'
import {
  base64,
  Crash,
  createContext,
  depsOn,
  errorCode,
  Life,
  type ManualClock,
  type MemoryBlobStore,
  principal,
  type World,
} from '../../../../test/support/knowledge.ts'
import { full } from '../../../../test/support/soak.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { sweepBlobs } from './blobs.ts'
import { deleteFile, readFilePiece, recordFile, uploadFile } from './files.ts'

const context = createContext()
const HOUR_MS = 3_600_000

interface FileWorld extends World {
  readonly blobs: MemoryBlobStore
  readonly clock: ManualClock
}

const UNUSED = { index: {} as never, inference: {} as never }

const upload = (deps: Deps, text: string) => uploadFile(deps, context, { name: 'a.txt', contentBase64: base64(text) })

async function listFiles({ store }: Deps) {
  return store.files.find({ organizationId: principal.organizationId }, { limit: 1_000 })
}

/** Expects, after the sweep, that each content of a file exists and is counted once, and that nothing else exists. */
async function expectSettled(world: FileWorld): Promise<void> {
  const deps = depsOn(world)
  // Two rounds, because the second one checks again what the first one releases.
  for (let round = 0; round < 2; round++) {
    world.clock.ms += HOUR_MS
    await sweepBlobs(deps)
  }
  const files = await listFiles(deps)
  for (const file of files)
    expect((await readFilePiece(deps, context, { id: file._id, offset: 0, length: 100 })).bytes).toHaveLength(file.sizeBytes)
  const contents = new Map(files.map(({ sha256, sizeBytes }) => [sha256, sizeBytes]))
  expect(world.blobs.keys.size).toBe(contents.size)
  const { storageBytes } = await readUsage(deps.store, principal.organizationId)
  expect(storageBytes).toBe([...contents.values()].reduce((sum, size) => sum + size, 0))
  const blobs = await deps.store.blobs.find({ _id: { $gte: '' } }, { limit: 1_000 })
  expect(blobs.map(({ _id }) => _id.slice(-64)).sort()).toEqual([...contents.keys()].sort())
  for (const blob of blobs) {
    const uses = files.filter(({ sha256 }) => blob._id.endsWith(sha256)).map(({ _id }) => _id)
    expect(blob).toMatchObject({ referenceCount: uses.length, dying: false })
    expect(blob.references).toEqual(Object.fromEntries(uses.map((id) => [id, 0])))
    expect(blob.pendingAt).toBeUndefined()
  }
  for (const file of files) await deleteFile(deps, context, file._id)
  expect(await readUsage(deps.store, principal.organizationId)).toMatchObject({ storageBytes: 0, marks: {} })
  expect(world.blobs.keys.size).toBe(0)
  expect(await deps.store.blobs.find({ _id: { $gte: '' } }, { limit: 1_000 })).toEqual([])
}

it('stores and counts the same content once, and deletes it with its last file', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const [first, second] = await Promise.all([upload(deps, 'same'), upload(deps, 'same'), upload(deps, 'other')])
  expect((await readUsage(deps.store, principal.organizationId)).storageBytes).toBe(9)
  await Promise.all([deleteFile(deps, context, first._id), deleteFile(deps, context, second._id)])
  expect((await readUsage(deps.store, principal.organizationId)).storageBytes).toBe(5)
  expect(world.blobs.keys.size).toBe(1)
  await expectSettled(world)
})

it('refuses another file with the same bytes at 1,000, until one of them is deleted', async () => {
  const deps = depsOn(newWorld(UNUSED))
  const [blob] = await Promise.all([upload(deps, 'same')]).then(() => deps.store.blobs.find({ _id: { $gte: '' } }, { limit: 1 }))
  const more = (by: number) => deps.store.blobs.findOneAndUpdate({ _id: blob!._id }, { $inc: { referenceCount: by } })
  await more(999)
  await expect(upload(deps, 'same')).rejects.toMatchObject({ code: 'storage_quota_exceeded' })
  await upload(deps, 'other')
  await more(-1)
  await upload(deps, 'same')
  expect((await readUsage(deps.store, principal.organizationId)).storageBytes).toBe(9)
})

it('ends with one copy of each content and its count, through concurrent uploads, deletions and crashes', async () => {
  const step = fc.record({
    kind: fc.constantFrom('upload' as const, 'delete' as const, 'sweep' as const),
    text: fc.constantFrom('one', 'another'),
    diesAt: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 16 })),
    effect: fc.constantFrom('failed' as const, 'lost answer' as const),
  })
  const acceptable = (reason: unknown) => reason instanceof Crash || ['not_found', 'service_unavailable'].includes(errorCode(reason))
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(step, { minLength: 1, maxLength: 6 }), async (scheduler, steps) => {
      const world = newWorld(UNUSED)
      const there = await upload(depsOn(world), 'one')
      const run = async ({ kind, text, diesAt, effect }: (typeof steps)[number]) => {
        const life = new Life(diesAt, effect)
        life.onCall = () => scheduler.schedule(Promise.resolve())
        const deps = depsOn(world, life)
        if (kind === 'upload') await upload(deps, text)
        else if (kind === 'delete') await deleteFile(deps, context, there._id)
        else await sweepBlobs(deps)
      }
      const results = await scheduler.waitFor(Promise.allSettled(steps.map(run)))
      for (const result of results) if (result.status === 'rejected' && !acceptable(result.reason)) throw result.reason
      await expectSettled(world)
    }),
    { numRuns: full(5_000) },
  )
}, 120_000)

it('counts concurrent uploads of the same content once, even when the later one dies with its mark set', async () => {
  const world = newWorld(UNUSED)
  const life = new Life(7)
  life.onCall = async (call, name) => {
    if (call !== 6) return
    expect(name).toBe('usage.findOneAndUpdate')
    await upload(depsOn(world), 'same')
  }
  await upload(depsOn(world), 'other')
  await expect(upload(depsOn(world, life), 'same')).rejects.toBeInstanceOf(Crash)
  await expectSettled(world)
})

it('stores nothing of an upload above the quota, and reports the excess', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const small = { ...principal, plan: { ...principal.plan, storageBytes: 5 } }
  await upload(deps, 'abc')
  const refused = uploadFile(deps, createContext(small), { name: 'b.txt', contentBase64: base64('defg') })
  await expect(refused).rejects.toMatchObject({
    code: 'storage_quota_exceeded',
    message: expect.stringMatching(/3 bytes of 5 bytes used, 4 bytes needed/),
  })
  // The same content needs no more room.
  await uploadFile(deps, createContext(small), { name: 'c.txt', contentBase64: base64('abc') })
  await expectSettled(world)
})

it('refuses an upload that the sweep treated as interrupted, rather than store a file without bytes', async () => {
  const world = newWorld(UNUSED)
  const life = new Life()
  const deps = depsOn(world, life)
  life.onCall = async (_call, name) => {
    if (name !== 'files.insertOne') return
    world.clock.ms += HOUR_MS
    await sweepBlobs(depsOn(world))
  }
  expect(await upload(deps, 'abc').catch(errorCode)).toBe('service_unavailable')
  expect(await listFiles(deps)).toEqual([])
  await expectSettled(world)
})

it('preserves the reference of a file that was recorded while the sweep treated it as interrupted', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const bytes = Buffer.from('abc')
  const file = { _id: 'file_1', name: 'a.txt', mediaType: 'text/plain' }
  await expect(recordFile(depsOn(world, new Life(6)), principal, file, bytes)).rejects.toBeInstanceOf(Crash)
  world.clock.ms += HOUR_MS
  const life = new Life()
  let isRecorded = false
  life.onCall = async (_call, name) => {
    if (isRecorded || name !== 'blobs.findOneAndUpdate') return
    isRecorded = true
    await recordFile(deps, principal, file, bytes)
  }
  await sweepBlobs(depsOn(world, life))
  expect(isRecorded).toBe(true)
  expect(await listFiles(deps)).toHaveLength(1)
  await expectSettled(world)
})
