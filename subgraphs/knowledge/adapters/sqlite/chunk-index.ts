import { makeFolderOf } from '../../../common/adapters/sqlite/database.ts'
import { KisError } from '../../../common/errors.ts'
import type { Log } from '../../../common/log.ts'
import { Unfit } from '../../../common/opening.ts'
import { WorkerClient } from '../../../common/worker-rpc.ts'
import type {
  ChunkCandidate,
  ChunkIndex,
  ChunkQuery,
  IndexedChunk,
  IndexedCollection,
  IndexedDocument,
  IndexedGeneration,
  RebuildStep,
  StoredChunk,
  TermsOf,
} from '../../ports/chunk-index.ts'
import { packed } from './chunk-index-packing.ts'
import { ReaderPool } from './chunk-index-reader-pool.ts'
import { rebuildStep } from './chunk-index-rebuild.ts'
import { reviveRefusal } from './chunk-index-refusal.ts'

/** Threads that read. Two, so that one long search does not hold up the others; each keeps one core busy. */
const READERS = 2
const MAX_CHUNKS_PER_PUT = 256
const MAX_CANDIDATES = 1_000
const MAX_CHUNKS_PER_GET = 1_000
const MAX_LISTED = 1_000

/** The chunk index in one SQLite file: one thread writes, others read, and nothing of it runs on the event loop. @throws {Unfit} */
export async function openSqliteChunkIndex(options: { readonly file: string; readonly log: Log }): Promise<ChunkIndex> {
  const { file, log } = options
  makeFolderOf(file)
  const start = (script: string, name: string) =>
    new WorkerClient(
      new URL(script, import.meta.url),
      name,
      { file },
      { onExit: (error) => log.error({ error }, `${name} ended`), reviveError: reviveRefusal },
    )
  const writer = start('./chunk-index-writer.ts', 'The chunk index writer')
  // The writer makes the file and its tables, which the readers expect.
  await writer.call('opened', []).catch(({ cause, message }: Error) => {
    throw new Unfit([`${file} cannot be opened: ${cause instanceof Error ? cause.message : message}`], { cause })
  })
  const readers = Array.from({ length: READERS }, () => start('./chunk-index-reader.ts', 'The chunk index reader'))
  return new SqliteChunkIndex(writer, new ReaderPool(readers))
}

class SqliteChunkIndex implements ChunkIndex {
  readonly #writer: WorkerClient
  readonly #readers: ReaderPool

  constructor(writer: WorkerClient, readers: ReaderPool) {
    this.#writer = writer
    this.#readers = readers
  }

  async createCollection(collection: { organizationId: string; collectionId: string; dimensions: number }): Promise<void> {
    await this.#writer.call('createCollection', [collection.organizationId, collection.collectionId, collection.dimensions])
  }

  async dropCollection(collectionId: string): Promise<void> {
    await this.#writer.call('dropCollection', [collectionId])
  }

  async hasCollection(collectionId: string): Promise<boolean> {
    return this.#readers.call('hasCollection', [collectionId])
  }

  async put(document: IndexedDocument, chunks: readonly IndexedChunk[]): Promise<void> {
    atMost(chunks.length, MAX_CHUNKS_PER_PUT, 'chunks')
    await this.#writer.call('put', [document, chunks.map(packed)])
  }

  async ordinals(collectionId: string, documentId: string, generation: string): Promise<readonly number[]> {
    return this.#readers.call('ordinals', [collectionId, documentId, generation])
  }

  async deleteDocument(collectionId: string, documentId: string, keepGeneration?: string): Promise<void> {
    await this.#writer.call('deleteDocument', [collectionId, documentId, keepGeneration ?? null])
  }

  async deleteGeneration(collectionId: string, documentId: string, generation: string): Promise<void> {
    await this.#writer.call('deleteGeneration', [collectionId, documentId, generation])
  }

  async listCollections(after: string, limit: number): Promise<readonly IndexedCollection[]> {
    atMost(limit, MAX_LISTED, 'collections')
    return this.#readers.call('listCollections', [after, limit])
  }

  async listGenerations(collectionId: string, after: string, limit: number): Promise<readonly IndexedGeneration[]> {
    atMost(limit, MAX_LISTED, 'generations')
    return this.#readers.call('listGenerations', [collectionId, after, limit])
  }

  async search(query: ChunkQuery, signal: AbortSignal): Promise<readonly ChunkCandidate[]> {
    if (!(query.candidates >= 1 && query.candidates <= MAX_CANDIDATES)) {
      throw new KisError('invalid_request', `A search has 1 to ${MAX_CANDIDATES} candidates, not ${query.candidates}.`)
    }
    return this.#readers.call('search', [query], signal)
  }

  async get(collectionId: string, chunkIds: readonly string[]): Promise<readonly StoredChunk[]> {
    atMost(chunkIds.length, MAX_CHUNKS_PER_GET, 'chunk ids')
    return this.#readers.call('get', [collectionId, chunkIds])
  }

  async rebuild(after: string | null, termsOf: TermsOf, signal: AbortSignal): Promise<RebuildStep> {
    return rebuildStep(this.#writer, this.#readers, after, termsOf, signal)
  }

  async ping(signal: AbortSignal): Promise<void> {
    await this.#readers.call('ping', [], signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#readers[Symbol.asyncDispose]()
    await this.#writer[Symbol.asyncDispose]()
  }
}

function atMost(count: number, max: number, what: string): void {
  if (count > max) throw new KisError('array_above_max_length', `At most ${max} ${what} at once, not ${count}.`)
}
