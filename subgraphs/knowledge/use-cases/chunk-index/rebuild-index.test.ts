import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import {
  base64,
  depsOn,
  errorCode,
  FakeInference,
  ManualClock,
  MemoryBlobStore,
  makeContext,
  plainParser,
  principal,
} from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { claimJob } from '../../../common/documents/jobs.ts'
import { silentLog } from '../../../common/process/log.ts'
import { openSqliteChunkIndex } from '../../adapters/sqlite/chunk-index.ts'
import type { DocumentParser, ParsedDocument } from '../../ports/document-parser.ts'
import { createCollection } from '../documents/collections.ts'
import { createDocument } from '../documents/documents.ts'
import { ingestDocument } from '../documents/ingest-document.ts'
import { uploadFile } from '../files/files.ts'
import { searchCollection } from '../search/search-collection.ts'
import { rebuildIndex } from './rebuild-index.ts'

const folder = mkdtempSync(join(tmpdir(), 'kis-rebuild-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const context = makeContext()
const operator = makeContext({ ...principal, scopes: ['operator'] })

/** A heading, and a row below the header row of a table: words that are found though they are not in the passage. */
const tableParser: DocumentParser = {
  ...plainParser,
  async parse(): Promise<ParsedDocument> {
    const text = `Lighthouses\n\n${'tower '.repeat(400)}\n\n${'granite '.repeat(400)}`
    const second = text.indexOf('granite')
    return {
      mediaType: 'text/plain',
      text,
      blocks: [
        { kind: 'heading', level: 1, charStart: 0, charEnd: 11 },
        { kind: 'paragraph', charStart: 13, charEnd: second - 2 },
        { kind: 'table_row', tableHeader: 'Material', charStart: second, charEnd: text.length },
      ],
      pageCount: null,
      warnings: [],
      unread: [],
      hasFiles: false,
    }
  },
}

it('gives passages the terms that ingestion gave them, and embeds nothing', async () => {
  await using index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
  const inference = new FakeInference()
  const deps = depsOn({
    documents: new MemoryDocumentStore(),
    blobs: new MemoryBlobStore(),
    index,
    inference,
    clock: new ManualClock(),
    parser: tableParser,
  })
  const { _id: collectionId } = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const file = await uploadFile(deps, context, { name: 'a.txt', contentBase64: base64('any') })
  const { document } = await createDocument(deps, context, { collectionId, fileId: file._id })
  await ingestDocument(deps, (await claimJob(deps.store.documents, deps.clock, document._id))!, context.signal)
  const search = async (query: string) =>
    (await searchCollection(deps, context, { collectionId, query, limit: 50, mode: 'lexical', filter: null })).hits
  const before = await Promise.all(['material', 'lighthouses', 'granite'].map(search))
  expect(before.map((hits) => hits.length > 0)).toEqual([true, true, true])

  const paid = inference.batches
  let chunks = 0
  let after: string | null = null
  do {
    const step = await rebuildIndex(deps, operator, after)
    chunks += step.chunks
    after = step.next
  } while (after !== null)
  expect(chunks).toBe((await index.listCollections('', 1))[0]?.chunks)
  expect(await Promise.all(['material', 'lighthouses', 'granite'].map(search))).toEqual(before)
  expect(inference.batches).toBe(paid)
  expect(await rebuildIndex(deps, makeContext({ ...principal, scopes: ['admin'] }), null).then(() => 'none', errorCode)).toBe(
    'permission_denied',
  )
})
