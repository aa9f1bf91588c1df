import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { base64, depsOn, FakeInference, ManualClock, MemoryBlobStore, makeContext, principal } from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { claimJob } from '../../../common/documents/jobs.ts'
import { silentLog } from '../../../common/process/log.ts'
import { openSqliteChunkIndex } from '../../adapters/sqlite/chunk-index.ts'
import { createCollection } from '../documents/collections.ts'
import { createDocument } from '../documents/documents.ts'
import { ingestDocument } from '../documents/ingest-document.ts'
import { uploadFile } from '../files/files.ts'
import { checkTerms, hasOldTerms } from './index-mark.ts'
import { rebuildIndex } from './rebuild-index.ts'

const folder = mkdtempSync(join(tmpdir(), 'kis-mark-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const context = makeContext()
const operator = makeContext({ ...principal, scopes: ['operator'] })

it('warns at the start until an index of an earlier version is rebuilt, and never of a new one', async () => {
  await using index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
  const parts = { blobs: new MemoryBlobStore(), index, inference: new FakeInference(), clock: new ManualClock() }
  const deps = depsOn({ ...parts, documents: new MemoryDocumentStore() })
  const warnings: string[] = []
  const log = Object.assign(Object.create(silentLog), { warn: (_fields: unknown, message: string) => void warnings.push(message) })
  const start = () => checkTerms({ ...deps, log })
  await start()
  expect(await hasOldTerms(deps)).toBe(false)

  const { _id: collectionId } = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const file = await uploadFile(deps, context, { name: 'a.txt', contentBase64: base64('The harbour of Sur.') })
  const { document } = await createDocument(deps, context, { collectionId, fileId: file._id })
  await ingestDocument(deps, (await claimJob(deps.store.documents, deps.clock, document._id))!, context.signal)
  await start()
  expect(warnings).toEqual([])

  // An earlier version has left no mark.
  await deps.store.indexMarks.findOneAndDelete({ _id: 'terms' })
  await start()
  await start()
  expect(warnings).toEqual([expect.stringContaining('kis reindex'), expect.stringContaining('kis reindex')])
  expect(await hasOldTerms(deps)).toBe(true)
  let after: string | null = null
  do after = (await rebuildIndex(deps, operator, after)).next
  while (after !== null)
  expect(await hasOldTerms(deps)).toBe(false)
  await deps.store.indexMarks.findOneAndUpdate({ _id: 'terms' }, { $set: { version: 0 } })
  expect(await hasOldTerms(deps)).toBe(true)
})
