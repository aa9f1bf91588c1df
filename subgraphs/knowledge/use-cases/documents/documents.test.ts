import { expect, it } from 'vitest'
import { newWorld } from '../../../../test/support/data/knowledge-library.ts'
import { base64, Crash, createContext, depsOn, errorCode, Life, principal } from '../../../../test/support/knowledge.ts'
import type { ChunkIndex } from '../../ports/chunk-index.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { deleteFile, getFile, readFilePiece, uploadFile } from '../files/files.ts'
import { createCollection, deleteCollection, getCollection, updateCollection } from './collections.ts'
import { createDocument, deleteDocument, getDocument } from './documents.ts'

const context = createContext()
const { organizationId } = principal

/** Returns an index that records only the collections for which it was prepared. Nothing is ingested here. */
function roomsOnly() {
  const rooms = new Set<string>()
  const index = {
    createCollection: async ({ collectionId }: { readonly collectionId: string }) => void rooms.add(collectionId),
    dropCollection: async (id: string) => void rooms.delete(id),
    deleteDocument: async () => {},
  } as unknown as ChunkIndex
  return { rooms, index }
}

const newCollection = (deps: Deps, code = 'c') => createCollection(deps, context, { code, name: 'C', embeddingModel: 'embed' })
const newFile = (deps: Deps) => uploadFile(deps, context, { name: 'a.txt', contentBase64: base64('text') })
const listDocuments = ({ store }: Deps, collectionId: string) => store.documents.find({ collectionId, listed: true }, { limit: 100 })

it('two parallel attach calls create one document and one attachment', async () => {
  const deps = depsOn(newWorld(roomsOnly()))
  const [collection, file] = [await newCollection(deps), await newFile(deps)]
  const attach = () => createDocument(deps, context, { collectionId: collection._id, fileId: file._id })
  const results = await Promise.all([attach(), attach(), attach()])
  expect(new Set(results.map(({ document }) => document._id)).size).toBe(1)
  expect(results.filter(({ outcome }) => outcome === 'created')).toHaveLength(1)
  expect(await listDocuments(deps, collection._id)).toHaveLength(1)
  expect(await getFile(deps, organizationId, file._id)).toMatchObject({ attachmentCount: 1 })
})

it('an attached file cannot be deleted until its documents are deleted', async () => {
  const deps = depsOn(newWorld(roomsOnly()))
  const [collection, file] = [await newCollection(deps), await newFile(deps)]
  const { document } = await createDocument(deps, context, { collectionId: collection._id, fileId: file._id })
  await expect(deleteFile(deps, context, file._id)).rejects.toMatchObject({
    code: 'in_use',
    message: expect.stringContaining(document._id),
  })
  await deleteDocument(deps, context, document._id)
  await deleteFile(deps, context, file._id)
  await expect(deleteFile(deps, context, file._id)).rejects.toMatchObject({ code: 'not_found' })
  expect(await readUsage(deps.store, organizationId)).toMatchObject({ storageBytes: 0 })
})

it('an attach call that dies at any point leaves a file that can be attached again and deleted', async () => {
  for (let call = 1; ; call++) {
    const world = newWorld(roomsOnly())
    const deps = depsOn(world)
    const life = new Life(call, call % 2 ? 'failed' : 'lost answer')
    const [collection, file] = [await newCollection(deps), await newFile(deps)]
    const input = { collectionId: collection._id, fileId: file._id }
    await createDocument(depsOn(world, life), context, input).catch((error) => expect(error).toBeInstanceOf(Crash))
    const { document } = await createDocument(deps, context, input)
    expect(await listDocuments(deps, collection._id)).toHaveLength(1)
    await deleteDocument(deps, context, document._id)
    await deleteFile(deps, context, file._id)
    if (!life.isDead) break
  }
})

for (const [what, vanish] of Object.entries({
  collection: (deps: Deps, collectionId: string) => deleteCollection(deps, context, collectionId),
  file: (deps: Deps, _collectionId: string, fileId: string) => deleteFile(deps, context, fileId),
})) {
  it(`a ${what} deleted while a document is recorded leaves no document without its ${what}`, async () => {
    for (let call = 1, passed = false; !passed; call++) {
      const world = newWorld(roomsOnly())
      const deps = depsOn(world)
      const [collection, file] = [await newCollection(deps), await newFile(deps)]
      passed = true
      const life = new Life()
      life.onCall = async (at) => {
        if (at !== call) return
        passed = false
        // A file that already has a document stays.
        await vanish(deps, collection._id, file._id).catch((error) => expect(errorCode(error)).toBe('in_use'))
      }
      const outcome = await createDocument(depsOn(world, life), context, { collectionId: collection._id, fileId: file._id }).then(
        () => 'attached',
        errorCode,
      )
      const documents = await listDocuments(deps, collection._id)
      const isThere = (await deps.store.collections.findOne({ _id: collection._id })) && (await deps.store.files.findOne({ _id: file._id }))
      if (!passed && !isThere && documents.length === 0) expect(['not_found', 'attached']).toContain(outcome)
      else expect({ outcome, documents: documents.length }).toEqual({ outcome: 'attached', documents: 1 })
      if (isThere) continue
      expect(await deps.store.documents.findOne({ collectionId: collection._id })).toBeNull()
      expect((await deps.store.files.findOne({ _id: file._id }))?.attachmentCount ?? 0).toBe(0)
    }
  })
}

it('refuses to attach when the vector limit is reached, or the key may not use the model, and stores nothing', async () => {
  const deps = depsOn(newWorld(roomsOnly()))
  const [collection, file] = [await newCollection(deps), await newFile(deps)]
  const input = { collectionId: collection._id, fileId: file._id }
  const full = { ...principal, plan: { ...principal.plan, vectors: 0 } }
  await expect(createDocument(deps, createContext(full), input)).rejects.toMatchObject({
    code: 'storage_quota_exceeded',
    message: expect.stringMatching(/0 of 0 vectors used, at least 1 needed/),
  })
  await expect(createDocument(deps, createContext({ ...principal, modelAllowlist: [] }), input)).rejects.toMatchObject({
    code: 'model_not_found',
  })
  expect(await listDocuments(deps, collection._id)).toEqual([])
  expect(await getFile(deps, organizationId, file._id)).toMatchObject({ attachmentCount: 0 })
})

it('a document of a collection in deletion no longer exists', async () => {
  const deps = depsOn(newWorld(roomsOnly()))
  const [collection, file] = [await newCollection(deps), await newFile(deps)]
  const { document } = await createDocument(deps, context, { collectionId: collection._id, fileId: file._id })
  await deps.store.collections.findOneAndUpdate({ _id: collection._id }, { $set: { listed: false } })
  await expect(getDocument(deps, organizationId, document._id)).rejects.toMatchObject({ code: 'not_found' })
})

it('nothing of another organization can be attached, read or deleted', async () => {
  const deps = depsOn(newWorld(roomsOnly()))
  const [collection, file] = [await newCollection(deps), await newFile(deps)]
  const { document } = await createDocument(deps, context, { collectionId: collection._id, fileId: file._id })
  const otherContext = createContext({ ...principal, organizationId: 'org_2' })
  for (const attempt of [
    () => createDocument(deps, otherContext, { collectionId: collection._id, fileId: file._id }),
    () => deleteDocument(deps, otherContext, document._id),
    () => deleteCollection(deps, otherContext, collection._id),
    () => updateCollection(deps, otherContext, { id: collection._id, name: 'Mine' }),
    () => deleteFile(deps, otherContext, file._id),
    () => readFilePiece(deps, otherContext, { id: file._id, offset: 0, length: 1 }),
  ])
    await expect(attempt()).rejects.toMatchObject({ code: 'not_found' })
})

it('an update changes the given fields and no others, also in parallel', async () => {
  const deps = depsOn(newWorld(roomsOnly()))
  const { _id: id } = await newCollection(deps)
  await Promise.all([
    updateCollection(deps, context, { id, name: 'Ports' }),
    updateCollection(deps, context, { id, description: 'of Oman' }),
    updateCollection(deps, context, { id, code: 'ports' }),
  ])
  expect(await getCollection(deps, organizationId, id)).toMatchObject({ code: 'ports', name: 'Ports', description: 'of Oman' })
  // Null removes a description. A code and a name cannot be removed.
  expect(await updateCollection(deps, context, { id, code: null, name: null, description: null })).toMatchObject({
    code: 'ports',
    name: 'Ports',
    description: null,
  })
  expect(await updateCollection(deps, context, { id })).toMatchObject({ code: 'ports' })
})

it('a collection that agents search is deleted only after they are detached, and the error names them', async () => {
  const world = newWorld(roomsOnly())
  const deps = depsOn(world)
  const { _id: id } = await newCollection(deps)
  world.inference.agents.set(
    id,
    Array.from({ length: 12 }, (_, i) => `Guide ${i}`),
  )
  await expect(deleteCollection(deps, createContext({ ...principal, organizationId: 'org_2' }), id)).rejects.toMatchObject({
    code: 'not_found',
  })
  await expect(deleteCollection(deps, context, id)).rejects.toMatchObject({
    code: 'in_use',
    message: expect.stringMatching(/"Guide 0", .*"Guide 9" and 2 more/),
  })
  expect(await getCollection(deps, organizationId, id)).toMatchObject({ listed: true })
  await deleteCollection(deps, context, id, true)
  await expect(getCollection(deps, organizationId, id)).rejects.toMatchObject({ code: 'not_found' })
})

it('a code is unique in an organization, and free again when its collection is deleted', async () => {
  const world = newWorld(roomsOnly())
  const deps = depsOn(world)
  const first = await newCollection(deps)
  await expect(newCollection(deps)).rejects.toMatchObject({ code: 'already_exists', param: 'input.code' })
  const other = await newCollection(deps, 'other')
  await expect(updateCollection(deps, context, { id: other._id, code: 'c' })).rejects.toMatchObject({ code: 'already_exists' })
  expect(world.rooms).toEqual(new Set([first._id, other._id]))
  await deleteCollection(deps, context, first._id)
  await newCollection(deps)
  expect(world.rooms.has(first._id)).toBe(false)
})

it('a collection whose creation got no response retains its room in the index', async () => {
  for (let call = 1; ; call++) {
    const world = newWorld(roomsOnly())
    const life = new Life(call, 'lost answer')
    await newCollection(depsOn(world, life)).catch((error) => expect(error).toBeInstanceOf(Crash))
    const listed = await depsOn(world).store.collections.find({ organizationId, listed: true }, { limit: 10 })
    for (const { _id } of listed) expect(world.rooms.has(_id)).toBe(true)
    if (!life.isDead) break
  }
})

it('reads a file in ranges, and nothing after its end', async () => {
  const deps = depsOn(newWorld(roomsOnly()))
  const file = await newFile(deps)
  const piece = async (offset: number, length: number) =>
    Buffer.from((await readFilePiece(deps, context, { id: file._id, offset, length })).bytes).toString()
  expect([await piece(0, 2), await piece(2, 10), await piece(4, 1)]).toEqual(['te', 'xt', ''])
  await expect(piece(-1, 1)).rejects.toMatchObject({ code: 'integer_below_min_value', param: 'offset' })
  await expect(piece(0, 0)).rejects.toMatchObject({ code: 'integer_below_min_value', param: 'length' })
  await expect(piece(0, 2_000_000)).rejects.toMatchObject({ code: 'integer_above_max_value', param: 'length' })
})
