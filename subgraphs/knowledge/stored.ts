// What `kis copy` needs of knowledge's stores while nothing serves them.

import type { MongoDatabase } from '../common/documents/mongodb-url.ts'
import type { Installation } from '../common/identity/installation.ts'
import type { DocumentStore } from '../common/ports/document-store.ts'
import type { Log } from '../common/process/log.ts'
import { openSqliteBlobStore } from './adapters/sqlite/blob-store.ts'
import { openSqliteChunkIndex } from './adapters/sqlite/chunk-index.ts'
import { type ElasticsearchConfig, knowledgeFiles } from './config.ts'
import type { BlobStore } from './ports/blob-store.ts'
import type { ChunkIndex } from './ports/chunk-index.ts'
import { knowledgeStore } from './ports/knowledge-store.ts'
import { markTerms } from './use-cases/chunk-index/index-mark.ts'
import { compareIndices, copyIndex as copyPassages, type IndexSums, refuseUnkept } from './use-cases/copy/copy-index.ts'
import type { StillKnowledge } from './use-cases/copy/indexed-generations.ts'

export type { BlobStore } from './ports/blob-store.ts'
export type { ChunkIndex } from './ports/chunk-index.ts'
export { knowledgeStore } from './ports/knowledge-store.ts'
export { copyBlobs, sumBlobs } from './use-cases/copy/copy-blobs.ts'
export { emptyIndex } from './use-cases/copy/copy-index.ts'

/** A first look at a large file takes seconds. */
const PING_TIMEOUT_MS = 60_000

/** The stores of knowledge beside its documents. */
export interface BlobsAndIndex {
  readonly blobs: BlobStore & AsyncDisposable
  readonly index: ChunkIndex
}

/** With the documents. */
export interface KnowledgeParts extends BlobsAndIndex {
  readonly documents: Pick<DocumentStore, 'collection'>
}

export interface KnowledgeServers {
  readonly mongodb: MongoDatabase
  readonly elasticsearch: ElasticsearchConfig
}

/**
 * Opens blobs and index in a data folder. `stack` closes them.
 * @throws {Error} a file is in use, damaged or another installation's
 */
export async function openInFolder(
  dataDirectory: string,
  { installation, isIndexLost, log, stack }: { installation: Installation; isIndexLost: boolean; log: Log; stack: AsyncDisposableStack },
): Promise<BlobsAndIndex> {
  const files = knowledgeFiles(dataDirectory)
  const blobs = stack.use(await openSqliteBlobStore({ file: files.blobs, installation, log }))
  const index = stack.use(await openSqliteChunkIndex({ file: files.index, installation, isLost: isIndexLost, rebuildFirst: true, log }))
  await index.ping(AbortSignal.timeout(PING_TIMEOUT_MS))
  return { blobs, index }
}

/**
 * Opens blobs and index on MongoDB and Elasticsearch. `stack` closes them.
 * @throws {Error} the index is another installation's
 * @throws {Unfit} a server cannot serve
 */
export async function openOnServers(
  { mongodb, elasticsearch }: KnowledgeServers,
  { installation, log, stack }: { installation: Installation; log: Log; stack: AsyncDisposableStack },
): Promise<BlobsAndIndex> {
  const [{ openMongoBlobStore }, { openElasticsearchChunkIndex }] = await Promise.all([
    import('./adapters/mongodb/blob-store.ts'),
    import('./adapters/elasticsearch/chunk-index.ts'),
  ])
  const blobs = stack.use(await openMongoBlobStore(mongodb))
  const index = stack.use(await openElasticsearchChunkIndex({ ...elasticsearch, installation: async () => installation, log }))
  return { blobs, index }
}

/** Whether an Elasticsearch has no passages under the prefix. Claims nothing. */
export async function isIndexEmpty(elasticsearch: ElasticsearchConfig, log: Log): Promise<boolean> {
  const { openElasticsearchChunkIndex } = await import('./adapters/elasticsearch/chunk-index.ts')
  await using index = await openElasticsearchChunkIndex({ ...elasticsearch, log })
  return (await index.listCollections('', 1)).length === 0
}

/** @throws {Error} the source has documents whose vectors could not be copied, because they are in its index only */
export function refuseLostVectors(from: KnowledgeParts): Promise<void> {
  return refuseUnkept(still(from))
}

/** Fills an index with the passages of the source. Embeds nothing. */
export function copyIndex(from: KnowledgeParts, to: Pick<BlobsAndIndex, 'index'>, moved: (passages: number) => void): Promise<void> {
  return copyPassages(still(from), to.index, moved)
}

/** Compares what the source keeps of passages with a filled index. */
export function compareIndex(
  from: KnowledgeParts,
  to: Pick<BlobsAndIndex, 'index'>,
  moved: (passages: number) => void,
): Promise<IndexSums> {
  return compareIndices(still(from), to.index, moved)
}

/** Notes in the documents that the index has the terms of this version. */
export function markNewTerms(documents: Pick<DocumentStore, 'collection'>): Promise<void> {
  return markTerms({ store: knowledgeStore(documents) })
}

function still({ documents, blobs, index }: KnowledgeParts): StillKnowledge {
  return { store: knowledgeStore(documents), blobs, index }
}
