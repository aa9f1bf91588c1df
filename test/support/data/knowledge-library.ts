import { join } from 'node:path'
import { afterAll } from 'vitest'
import { claimJob } from '../../../subgraphs/common/documents/jobs.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { wakeUp } from '../../../subgraphs/common/process/wake-up.ts'
import { openSqliteChunkIndex } from '../../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import type { ChunkIndex } from '../../../subgraphs/knowledge/ports/chunk-index.ts'
import type { Deps } from '../../../subgraphs/knowledge/use-cases/deps.ts'
import { createCollection } from '../../../subgraphs/knowledge/use-cases/documents/collections.ts'
import { createDocument, type DocumentInput } from '../../../subgraphs/knowledge/use-cases/documents/documents.ts'
import { ingestDocument } from '../../../subgraphs/knowledge/use-cases/documents/ingest-document.ts'
import { uploadFile } from '../../../subgraphs/knowledge/use-cases/files/files.ts'
import { work } from '../../../subgraphs/knowledge/use-cases/jobs/work.ts'
import { base64, createContext, FakeInference, ManualClock, MemoryBlobStore, type World } from '../knowledge.ts'
import { MemoryDocumentStore } from '../memory-document-store.ts'
import { temporaryFolder } from './temporary-folder.ts'

const context = createContext()

/** Opens an embedded index. It is closed when the tests of the file have ended. */
export async function openTestIndex(): Promise<ChunkIndex> {
  const index = await openSqliteChunkIndex({ file: join(temporaryFolder(), 'index.sqlite'), log: silentLog })
  afterAll(() => index[Symbol.asyncDispose]())
  return index
}

/** Returns what outlives a knowledge process, in memory but for the index. */
export function newWorld<Parts extends Partial<World> & Pick<World, 'index'>>(parts: Parts) {
  const world = {
    documents: new MemoryDocumentStore(),
    blobs: new MemoryBlobStore(),
    inference: new FakeInference(),
    clock: new ManualClock(),
  }
  return { ...world, ...parts }
}

export async function newCollection(deps: Deps): Promise<string> {
  return (await createCollection(deps, context, { code: deps.ids('col'), name: 'C', embeddingModel: 'embed' }))._id
}

/** Uploads a text and attaches it to a collection. */
export async function attach(deps: Deps, collectionId: string, name: string, text: string, more: Partial<DocumentInput> = {}) {
  const file = await uploadFile(deps, context, { name, contentBase64: base64(text) })
  const { document, ...rest } = await createDocument(deps, context, { collectionId, fileId: file._id, ...more })
  return { id: document._id, fileId: file._id, document, ...rest }
}

/** Works on a document once, if its job is due. */
export async function ingest(deps: Deps, id: string): Promise<void> {
  const leased = await claimJob(deps.store.documents, deps.clock, id)
  if (leased) await ingestDocument(deps, leased, context.signal)
}

export async function addReady(deps: Deps, ...input: Parameters<typeof attach> extends [Deps, ...infer Rest] ? Rest : never) {
  const { id } = await attach(deps, ...input)
  await ingest(deps, id)
  return id
}

/** The workers of one process, which look often, because nobody wakes them for retries. Disposal stops them. */
export function startWork(deps: Deps, exclusive = false) {
  const waking = wakeUp()
  const stopping = new AbortController()
  const working = work(deps, waking, { exclusive, backoffMs: 1 }, stopping.signal)
  const impatience = setInterval(waking.wake, 5)
  return {
    stopping,
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the service stops'))
      await working
      clearInterval(impatience)
    },
  }
}
