import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { ingest } from '../../../../test/support/data/knowledge-library.ts'
import {
  base64,
  createContext,
  depsOn,
  FakeInference,
  ManualClock,
  MemoryBlobStore,
  principal,
} from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { silentLog } from '../../../common/process/log.ts'
import { openSqliteBlobStore } from '../../adapters/sqlite/blob-store.ts'
import { openSqliteChunkIndex } from '../../adapters/sqlite/chunk-index.ts'
import type { BlobStore } from '../../ports/blob-store.ts'
import { textKey } from '../chunk-index/stored-chunks.ts'
import { createCollection } from '../documents/collections.ts'
import { createDocument } from '../documents/documents.ts'
import { uploadFile } from '../files/files.ts'
import { type BlobFinding, verifyBlobs } from './verify-blobs.ts'

const OPERATOR: Principal = { ...principal, organizationId: 'org_operator', scopes: ['operator'] }
const folder = mkdtempSync(join(tmpdir(), 'kis-blobs-'))
const index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
afterAll(async () => {
  await index[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

function worldOn(blobs: BlobStore) {
  const deps = depsOn({ documents: new MemoryDocumentStore(), blobs, index, inference: new FakeInference(), clock: new ManualClock() })
  const upload = async (text: string) => (await uploadFile(deps, createContext(), { name: 'a.txt', contentBase64: base64(text) }))._id
  const verify = async () => {
    const counts = { blobs: 0, texts: 0 }
    const findings: BlobFinding[] = []
    for (let after: string | null = null; ; ) {
      const page = await verifyBlobs(deps, OPERATOR, after)
      counts.blobs += page.blobs
      counts.texts += page.texts
      findings.push(...page.findings)
      if (page.next === null) return { ...counts, findings }
      after = page.next
    }
  }
  const findKey = async (fileId: string) => {
    const { sha256 } = (await deps.store.files.findOne({ _id: fileId }))!
    return (await deps.store.blobs.findOne({ _id: `${principal.organizationId}_${sha256}` }))!.bytesKey
  }
  const ingested = async (text: string) => {
    const { _id: collectionId } = await createCollection(deps, createContext(), { code: 'c', name: 'C', embeddingModel: 'embed' })
    const { document } = await createDocument(deps, createContext(), { collectionId, fileId: await upload(text) })
    await ingest(deps, document._id)
    return document._id
  }
  return { deps, upload, verify, keyOf: findKey, ingested }
}

describe('Blob verification', () => {
  it('finds contents of files that are missing, truncated or changed', async () => {
    const blobs = new MemoryBlobStore()
    const { upload, verify, keyOf } = worldOn(blobs)
    const files = [await upload('one'), await upload('two'), await upload('three'), await upload('four')]
    expect(await verify()).toEqual({ blobs: 4, texts: 0, findings: [] })
    const again = await upload('one')
    blobs.keys.delete(await keyOf(files[0]!))
    blobs.keys.set(await keyOf(files[1]!), Buffer.from('tw'))
    blobs.keys.set(await keyOf(files[2]!), Buffer.from('There'))
    const { findings } = await verify()
    const found = findings.map(({ kind, fileIds, detail }) => [kind, [...fileIds].sort(), detail])
    expect(found).toHaveLength(3)
    expect(found).toEqual(
      expect.arrayContaining([
        ['missing', [files[0], again].sort(), 'the bytes are missing'],
        ['damaged', [files[1]], '2 of 3 bytes are stored'],
        ['damaged', [files[2]], 'the SHA-256 of the bytes differs'],
      ]),
    )
  })

  it('finds missing or changed texts of ready documents, and only missing ones of an earlier version', async () => {
    const blobs = new MemoryBlobStore()
    const { deps, verify, ingested } = worldOn(blobs)
    const documentId = await ingested('The harbour is closed in winter.')
    const key = textKey(documentId, 'g1')
    expect(await verify()).toEqual({ blobs: 1, texts: 1, findings: [] })
    blobs.keys.set(key, Buffer.from('Another text.'))
    const finding = { organizationId: principal.organizationId, fileIds: [], documentId }
    expect((await verify()).findings).toEqual([{ ...finding, kind: 'damaged', detail: 'the SHA-256 of the bytes differs' }])
    await deps.store.documents.findOneAndUpdate({ _id: documentId }, { $unset: { textSha256: '' } })
    expect((await verify()).findings).toEqual([])
    blobs.keys.delete(key)
    expect((await verify()).findings).toEqual([{ ...finding, kind: 'missing', detail: 'the bytes are missing' }])
  })

  it('ignores what is being uploaded, deleted or ingested', async () => {
    const blobs = new MemoryBlobStore()
    const { deps, upload, verify, ingested } = worldOn(blobs)
    const documentId = await ingested('The harbour is closed in winter.')
    await upload('one')
    blobs.keys.clear()
    await deps.store.documents.findOneAndUpdate({ _id: documentId }, { $set: { status: 'queued' } })
    for (const { _id, references } of await deps.store.blobs.find({}, { limit: 10 }))
      for (const fileId of Object.keys(references))
        await deps.store.blobs.findOneAndUpdate({ _id }, { $set: { [`references.${fileId}`]: 1 } })
    expect(await verify()).toEqual({ blobs: 0, texts: 0, findings: [] })
  })

  it('finds an overwritten and a missing part in a SQLite file, and no reader gets zeros for it', async () => {
    const file = join(folder, 'blobs.sqlite')
    let store = await openSqliteBlobStore({ file, log: silentLog })
    const world = worldOn({
      put: (key, bytes) => store.put(key, bytes),
      get: (key, range) => store.get(key, range),
      delete: (key) => store.delete(key),
      deleteAll: (prefix) => store.deleteAll(prefix),
      list: (after, limit) => store.list(after, limit),
      ping: (signal) => store.ping(signal),
    })
    const [other, lost] = [await world.upload('x'.repeat(400_000)), await world.upload('y'.repeat(400_000))]
    const keys = [await world.keyOf(other), await world.keyOf(lost)]
    expect((await world.verify()).findings).toEqual([])
    await store[Symbol.asyncDispose]()
    const database = new DatabaseSync(file)
    database
      .prepare(`UPDATE piece SET bytes = zeroblob(length(bytes)) WHERE position = 1 AND blob = (SELECT number FROM blob WHERE key = ?)`)
      .run(keys[0]!)
    database.prepare(`DELETE FROM piece WHERE position = 1 AND blob = (SELECT number FROM blob WHERE key = ?)`).run(keys[1]!)
    database.close()
    store = await openSqliteBlobStore({ file, log: silentLog })
    const { findings } = await world.verify()
    expect(findings.map(({ fileIds, kind, detail }) => [fileIds[0], kind, detail])).toEqual(
      expect.arrayContaining([
        [other, 'damaged', 'the SHA-256 of the bytes differs'],
        [lost, 'damaged', 'parts of the bytes cannot be read'],
      ]),
    )
    await expect(store.get(keys[1]!)).rejects.toThrow('lacks pieces')
    await store[Symbol.asyncDispose]()
  })

  it('is for the operator only, continues page by page, and accepts only its own cursors', async () => {
    const { deps, upload, verify } = worldOn(new MemoryBlobStore())
    for (let i = 0; i < 101; i++) await upload(`file ${i}`)
    expect(await verify()).toEqual({ blobs: 101, texts: 0, findings: [] })
    await expect(verifyBlobs(deps, principal, null)).rejects.toMatchObject({ code: 'permission_denied' })
    await expect(verifyBlobs(deps, OPERATOR, 'x')).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
