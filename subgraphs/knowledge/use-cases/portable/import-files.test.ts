import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { MemoryBlobStore } from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { knowledgeStore } from '../../ports/knowledge-store.ts'
import { fileTakers } from './import-files.ts'
import type { KnowledgeImport } from './import-knowledge.ts'
import type { PortableBytes } from './kinds.ts'

const ORGANIZATION = `org_${'1'.repeat(32)}`
const FILE = `file_${'2'.repeat(32)}`
const text = Buffer.from('abc')
const BYTES: PortableBytes = { sha256: createHash('sha256').update(text).digest('hex'), sizeBytes: 3, files: [FILE] }

function importing() {
  const store = knowledgeStore(new MemoryDocumentStore())
  const blobs = new MemoryBlobStore()
  const { records, bytes, requireAll } = fileTakers({ store, blobs, organizationId: ORGANIZATION } as unknown as KnowledgeImport)
  const [files, ofBytes] = records
  return { store, blobs, bytes, requireAll, files: files!, ofBytes: ofBytes! }
}

async function* once() {
  yield text
}

it('imported bytes have the length in the archive, and follow their record', async () => {
  const check = (taker: ReturnType<typeof importing>, ...records: readonly PortableBytes[]) => taker.ofBytes.check!(records as never[])
  const corruptedMessage = /The archive is corrupted/
  {
    const taker = importing()
    await check(taker, BYTES)
    expect(() => taker.requireAll()).toThrow(corruptedMessage)
    await expect(check(taker, BYTES)).rejects.toThrow(corruptedMessage)
    taker.bytes.check(BYTES.sha256, 3)
    taker.requireAll()
    expect(() => taker.bytes.check(BYTES.sha256, 3)).toThrow(corruptedMessage)
  }
  await expect(check(importing(), BYTES, BYTES)).rejects.toThrow(corruptedMessage)
  // A list of pieces for this size would use all memory.
  const taker = importing()
  await check(taker, { ...BYTES, sizeBytes: 2 ** 52 })
  expect(() => taker.bytes.check(BYTES.sha256, 3)).toThrow(corruptedMessage)
})

it('bytes are imported once, however often the import is repeated', async () => {
  const { store, blobs, files, ofBytes, bytes } = importing()
  const file = {
    _id: FILE,
    name: 'a.txt',
    mediaType: 'text/plain',
    sha256: BYTES.sha256,
    sizeBytes: 3,
    attachments: {},
    createdAt: new Date(0),
  }
  for (let repeat = 0; repeat < 2; repeat++) {
    await files.write([file] as never[])
    await ofBytes.write([BYTES] as never[])
    bytes.check(BYTES.sha256, 3)
    await bytes.write(BYTES.sha256, 3, once())
  }
  const [blob, ...others] = await store.blobs.find({}, { limit: 10 })
  expect(others).toEqual([])
  expect(blob).toMatchObject({ organizationId: ORGANIZATION, sizeBytes: 3, references: { [FILE]: 0 }, referenceCount: 1 })
  expect(Buffer.from((await blobs.get(blob!.bytesKey))!)).toEqual(text)
})
