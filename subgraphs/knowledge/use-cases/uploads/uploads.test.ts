import { createHash } from 'node:crypto'
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
import { sweepBlobs } from '../files/blobs.ts'
import { deleteFile, readFilePiece, uploadFile } from '../files/files.ts'
import { completeUpload, sweepUploads } from './complete-upload.ts'
import { appendToUpload, cancelUpload, createUpload, findUpload } from './uploads.ts'

const context = createContext()
const DAY_MS = 86_400_000

interface FileWorld extends World {
  readonly blobs: MemoryBlobStore
  readonly clock: ManualClock
}

const UNUSED = { index: {} as never, inference: {} as never }

const create = (deps: Deps, sizeBytes: number, more = {}) => createUpload(deps, context, { name: 'a.txt', sizeBytes, ...more })
const append = (deps: Deps, id: string, offset: number, text: string) =>
  appendToUpload(deps, context, { id, offset, contentBase64: base64(text) })
const complete = (deps: Deps, id: string) => completeUpload(deps, context, id)

async function send(deps: Deps, text: string) {
  const { _id } = await create(deps, text.length)
  await append(deps, _id, 0, text)
  return complete(deps, _id)
}

async function read(deps: Deps, id: string): Promise<string> {
  return Buffer.from((await readFilePiece(deps, context, { id, offset: 0, length: 1_000_000 })).bytes).toString()
}

/** Expects that after a day only the bytes of files are left. */
async function expectSettled(world: FileWorld): Promise<void> {
  const deps = depsOn(world)
  for (let round = 0; round < 3; round++) {
    world.clock.ms += 2 * DAY_MS
    await sweepUploads(deps)
    await sweepBlobs(deps)
  }
  expect(await deps.store.uploads.find({}, { limit: 10 })).toEqual([])
  const files = await deps.store.files.find({ organizationId: principal.organizationId }, { limit: 100 })
  for (const file of files) {
    const text = await read(deps, file._id)
    expect(createHash('sha256').update(text).digest('hex')).toBe(file.sha256)
  }
  const contents = new Map(files.map(({ sha256, sizeBytes }) => [sha256, sizeBytes]))
  expect((await readUsage(deps.store, principal.organizationId)).storageBytes).toBe([...contents.values()].reduce((a, b) => a + b, 0))
  for (const file of files) await deleteFile(deps, context, file._id)
  expect((await readUsage(deps.store, principal.organizationId)).storageBytes).toBe(0)
  expect([...world.blobs.keys]).toEqual([])
}

it('accepts a file in parts of any size, and stores it in few', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const { _id } = await create(deps, 26, { metadata: 'mine' })
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  for (const [offset, letter] of [...letters].entries()) await append(deps, _id, offset, letter)
  expect(world.blobs.keys.size).toBe(1)
  expect(await findUpload(deps, context, _id)).toMatchObject({ offset: 26, status: 'open', metadata: 'mine' })
  world.clock.ms += 3_600_000
  const done = await complete(deps, _id)
  expect(done).toMatchObject({ status: 'completed', offset: 26 })
  // Lists of files are ordered by their IDs, which start with the creation time.
  const { createdAt } = (await deps.store.files.findOne({ _id: done.fileId }))!
  expect(done.fileId.slice('file_'.length, 'file_'.length + 12)).toBe(createdAt.getTime().toString(16).padStart(12, '0'))
  expect(await read(deps, done.fileId)).toBe(letters)
  // A repeated completion returns the same file.
  expect((await complete(deps, _id)).fileId).toBe(done.fileId)
  expect((await readUsage(deps.store, principal.organizationId)).storageBytes).toBe(26)
  await expectSettled(world)
})

it('accepts bytes at its current offset only, so that of two writers one continues', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const { _id } = await create(deps, 6)
  const both = await Promise.allSettled([append(deps, _id, 0, 'abc'), append(deps, _id, 0, 'xyz')])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  await expect(append(deps, _id, 1, 'd')).rejects.toMatchObject({ code: 'in_use', message: expect.stringContaining('3 bytes') })
  await expect(append(deps, _id, 3, 'defg')).rejects.toMatchObject({ code: 'payload_too_large' })
  await expect(complete(deps, _id)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('3 of 6') })
  await append(deps, _id, 3, 'def')
  const { fileId } = await complete(deps, _id)
  expect(['abcdef', 'xyzdef']).toContain(await read(deps, fileId))
  await expect(append(deps, _id, 6, '')).rejects.toMatchObject({ code: 'in_use' })
  await expectSettled(world)
})

it('restores missing bytes when a new reference finds them missing, for earlier files as well', async () => {
  const inline = async (deps: Deps) => (await uploadFile(deps, context, { name: 'a.txt', contentBase64: base64('abcdef') }))._id
  const inPieces = async (deps: Deps) => (await send(deps, 'abcdef')).fileId
  const ways = [inline, inPieces]
  for (const first of ways)
    for (const second of ways) {
      const world = newWorld(UNUSED)
      const deps = depsOn(world)
      const fileIds = [await first(deps)]
      const [key] = world.blobs.keys.keys()
      await world.blobs.delete(key!)
      fileIds.push(await second(deps))
      for (const id of fileIds) expect(await read(deps, id)).toBe('abcdef')
      await expectSettled(world)
    }
})

it('preserves bytes that another file shares when the upload that brought them is refused', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const full = await uploadFile(deps, context, { name: 'full.txt', contentBase64: base64('full') })
  const small = createContext({ ...principal, plan: { ...principal.plan, storageBytes: 8 } })
  const { _id } = await create(deps, 6)
  await append(deps, _id, 0, 'abcdef')
  const life = new Life()
  let isShared = false
  life.onCall = async (_call, name) => {
    const blobs = await deps.store.blobs.find({ _id: { $gte: '' } }, { limit: 2 })
    if (isShared || blobs.length < 2 || name !== 'blobs.findOneAndUpdate') return
    isShared = true
    // Another upload of the same bytes refers to them, and finds room that this upload did not find.
    await deleteFile(deps, context, full._id)
    await uploadFile(deps, small, { name: 'b.txt', contentBase64: base64('abcdef') })
  }
  expect(await completeUpload(depsOn(world, life), small, _id).catch(errorCode)).toBe('storage_quota_exceeded')
  expect(isShared).toBe(true)
  // A client that was refused cancels.
  await cancelUpload(deps, context, _id)
  const [file] = await deps.store.files.find({ organizationId: principal.organizationId }, { limit: 1 })
  expect(await read(deps, file!._id)).toBe('abcdef')
  await expectSettled(world)
})

it('does not sweep an upload during its completion', async () => {
  const world = newWorld(UNUSED)
  for (let at = 1, isReached = true; isReached; at++) {
    isReached = false
    const deps = depsOn(world)
    const { _id } = await create(deps, 6)
    await append(deps, _id, 0, 'abcdef')
    const life = new Life()
    life.onCall = async (call) => {
      if (call !== at) return
      isReached = true
      world.clock.ms += 2 * DAY_MS
      await sweepUploads(deps)
    }
    const done = await complete(depsOn(world, life), _id).catch(errorCode)
    if (typeof done !== 'string') expect(await read(deps, done.fileId)).toBe('abcdef')
    await expectSettled(world)
  }
})

it('reuses bytes that the organization has already', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const { _id } = await uploadFile(deps, context, { name: 'first.txt', contentBase64: base64('same') })
  const { fileId } = await send(deps, 'same')
  await send(deps, 'same')
  expect(world.blobs.keys.size).toBe(1)
  await deleteFile(deps, context, _id)
  expect(await read(deps, fileId)).toBe('same')
  await expectSettled(world)
})

it('ends an upload that is cancelled, refused or too old, with its bytes', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const { _id } = await create(deps, 4)
  await append(deps, _id, 0, 'abc')
  expect(await cancelUpload(deps, context, _id)).toMatchObject({ status: 'cancelled' })
  expect(await cancelUpload(deps, context, _id)).toMatchObject({ status: 'cancelled' })
  await expect(append(deps, _id, 3, 'd')).rejects.toMatchObject({ code: 'in_use' })
  expect(world.blobs.keys.size).toBe(0)

  const refusing = { ...deps, parser: { sniff: () => 'application/octet-stream' } as never }
  await expect(send(refusing, 'abc')).rejects.toMatchObject({ code: 'unsupported_file_type', param: null })
  expect(world.blobs.keys.size).toBe(0)

  const { _id: old } = await create(deps, 4)
  await append(deps, old, 0, 'abc')
  world.clock.ms += DAY_MS
  await expect(append(deps, old, 3, 'd')).rejects.toMatchObject({ code: 'not_found' })
  expect(await findUpload(deps, context, old)).toBeNull()
  await expectSettled(world)
})

it('limits unfinished uploads of an organization, and refuses those that exceed the plan', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  await expect(create(deps, 500_001)).rejects.toMatchObject({ code: 'payload_too_large' })
  await create(deps, 500_000)
  await create(deps, 499_996)
  await uploadFile(deps, context, { name: 'a.txt', contentBase64: base64('abcd') })
  await expect(create(deps, 1)).rejects.toMatchObject({
    code: 'storage_quota_exceeded',
    message: expect.stringContaining('4 bytes of 1000000 bytes used'),
  })

  const roomy = createContext({ ...principal, organizationId: 'org_2', plan: { ...principal.plan, storageBytes: null } })
  const many = Array.from({ length: 105 }, () => createUpload(deps, roomy, { name: 'a', sizeBytes: 1 }))
  const results = await Promise.allSettled(many)
  const created = results.filter(({ status }) => status === 'fulfilled').length
  expect(created).toBeLessThanOrEqual(100)
  expect((await deps.store.uploads.find({ openOf: 'org_2' }, { limit: 200 })).length).toBe(created)
  for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'rate_limit_exceeded' })
  // Another organization is not affected, and cannot see the upload.
  const other = createContext({ ...principal, organizationId: 'org_3' })
  const { _id } = await createUpload(deps, other, { name: 'a', sizeBytes: 1 })
  await expect(append(deps, _id, 0, 'a')).rejects.toMatchObject({ code: 'not_found' })
  await expect(cancelUpload(deps, context, _id)).rejects.toMatchObject({ code: 'not_found' })
  await expect(complete(deps, _id)).rejects.toMatchObject({ code: 'not_found' })
  expect(await findUpload(deps, context, _id)).toBeNull()
})

it('leaves a whole file or nothing, through crashes and concurrent completion or deletion', async () => {
  const step = fc.record({
    kind: fc.constantFrom('send', 'complete', 'cancel', 'delete', 'inline'),
    diesAt: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 16 })),
    effect: fc.constantFrom('failed' as const, 'lost answer' as const),
  })
  const acceptable = (reason: unknown) =>
    reason instanceof Crash || ['not_found', 'service_unavailable', 'in_use'].includes(errorCode(reason))
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(step, { minLength: 1, maxLength: 5 }), async (scheduler, steps) => {
      const world = newWorld(UNUSED)
      const first = await create(depsOn(world), 4)
      await append(depsOn(world), first._id, 0, 'same')
      const run = async ({ kind, diesAt, effect }: (typeof steps)[number]) => {
        const life = new Life(diesAt, effect)
        life.onCall = () => scheduler.schedule(Promise.resolve())
        const deps = depsOn(world, life)
        if (kind === 'send') await send(deps, 'same')
        else if (kind === 'complete') await complete(deps, first._id)
        else if (kind === 'cancel') await cancelUpload(deps, context, first._id)
        else if (kind === 'delete') await deleteFile(deps, context, first.fileId)
        else await uploadFile(deps, context, { name: 'b.txt', contentBase64: base64('same') })
      }
      const results = await scheduler.waitFor(Promise.allSettled(steps.map(run)))
      for (const result of results) if (result.status === 'rejected' && !acceptable(result.reason)) throw result.reason
      await expectSettled(world)
    }),
    { numRuns: full(3_000) },
  )
}, 120_000)

it('streams a file of unknown length, up to the limit of the plan', async () => {
  const world = newWorld(UNUSED)
  const deps = depsOn(world)
  const plan = { ...principal.plan, maxFileBytes: 10, storageBytes: 15 }
  const small = createContext({ ...principal, plan })
  const start = () => createUpload(deps, small, { name: 'a.txt' })
  const add = (id: string, offset: number, text: string) => appendToUpload(deps, small, { id, offset, contentBase64: base64(text) })
  const { _id } = await start()
  expect(await add(_id, 0, 'eight by')).toMatchObject({ offset: 8, sizeBytes: 8 })
  await expect(add(_id, 8, 'tes')).rejects.toMatchObject({ code: 'payload_too_large' })
  // Received bytes of an unfinished upload count when another upload grows.
  const other = await start()
  await expect(add(other._id, 0, 'ten bytes.')).rejects.toMatchObject({ code: 'storage_quota_exceeded' })
  const { fileId } = await completeUpload(deps, small, _id)
  expect(await read(deps, fileId)).toBe('eight by')
  await cancelUpload(deps, small, other._id)
  await expectSettled(world)
})
