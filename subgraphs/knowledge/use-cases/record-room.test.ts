import { expect, it } from 'vitest'
import { newWorld } from '../../../test/support/data/knowledge-library.ts'
import { createContext, depsOn, ManualClock, principal } from '../../../test/support/knowledge.ts'
import { createDocument, deleteDocument } from './documents/documents.ts'
import { uploadFile } from './files/files.ts'
import { RecordRoom } from './record-room.ts'

function createWorld() {
  const clock = new ManualClock()
  const inference = { embeddingModel: async (id: string) => ({ id, dimensions: 3 }) } as never
  const index = { dropCollection: async () => {}, deleteDocument: async () => {} } as never
  const deps = depsOn(newWorld({ index, inference, clock }))
  return { clock, deps }
}
const FULL = { code: 'storage_quota_exceeded', message: expect.stringMatching(/^An organization has at most 3 (files|documents)\. Delete/) }

it('refuses files above the limit of an organization before it stores a byte, of any size, and no others', async () => {
  const { deps } = createWorld()
  const limited = { ...deps, room: new RecordRoom(deps.store, deps.clock, { files: 3, documents: 3 }) }
  const upload = (organizationId: string, text: string) =>
    uploadFile(limited, createContext({ ...principal, organizationId }), {
      name: 'a.txt',
      contentBase64: Buffer.from(text).toString('base64'),
    })
  for (const text of ['a', 'b', 'c']) await upload('org_1', text)
  await expect(upload('org_1', 'd')).rejects.toMatchObject(FULL)
  expect(await deps.store.files.countDocuments({ organizationId: 'org_1' })).toBe(3)
  await upload('org_2', 'd')
})

it('counts existing documents over all collections, not attempts', async () => {
  const { clock, deps } = createWorld()
  const limited = { ...deps, room: new RecordRoom(deps.store, clock, { files: 100, documents: 3 }) }
  const context = createContext(principal)
  const { organizationId } = principal
  for (const _id of ['col_1', 'col_2'])
    await deps.store.collections.insertOne({
      _id,
      organizationId,
      code: _id,
      name: _id,
      description: null,
      embeddingModel: 'm',
      dimensions: 3,
      listed: true,
      createdAt: clock.now(),
    })
  const attach = async (collectionId: string, text: string) => {
    const file = await uploadFile(limited, context, { name: `${text}.txt`, contentBase64: Buffer.from(text).toString('base64') })
    return (await createDocument(limited, context, { collectionId, fileId: file._id })).document
  }
  const first = await attach('col_1', 'a')
  await attach('col_1', 'b')
  await attach('col_2', 'a')
  await expect(attach('col_2', 'b')).rejects.toMatchObject(FULL)
  await deleteDocument(limited, context, first._id)
  // A deletion takes effect at the next count.
  await expect(attach('col_2', 'b')).rejects.toMatchObject(FULL)
  clock.ms += 5_000
  await attach('col_2', 'b')
  await expect(attach('col_2', 'c')).rejects.toMatchObject(FULL)
})
