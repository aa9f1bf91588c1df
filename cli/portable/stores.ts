import { type AccountCollections, openAccountCollections } from '../../subgraphs/billing/portable.ts'
import { collectKinds } from '../../subgraphs/common/adapters/documents/kinds.ts'
import { openOwnDocuments } from '../../subgraphs/common/adapters/own-documents.ts'
import { DataFolder, type FolderFile } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import { readOnlyDocuments } from '../../subgraphs/common/adapters/sqlite/documents/read-only-documents.ts'
import type { MongoDatabase } from '../../subgraphs/common/documents/mongodb-url.ts'
import { deriveKeys, fingerprintsOf } from '../../subgraphs/common/identity/accepted-secrets.ts'
import { type Installation, ownInstallation } from '../../subgraphs/common/identity/installation.ts'
import type { DocumentStore } from '../../subgraphs/common/ports/document-store.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { type AgentCollections, openAgentCollections } from '../../subgraphs/inference/portable.ts'
import { openSqliteBlobStore } from '../../subgraphs/knowledge/adapters/sqlite/blob-store.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { readOnlyBlobs } from '../../subgraphs/knowledge/adapters/sqlite/read-only-blobs.ts'
import { type BlobStore, type ChunkIndex, type KnowledgeStore, knowledgeStore } from '../../subgraphs/knowledge/portable.ts'
import { lookAt } from '../backup/back-up.ts'
import { dataFiles } from '../backup/data-files.ts'
import { Snapshot } from '../backup/snapshot.ts'
import type { Config } from '../settings/config.ts'

/** A store creates missing indexes within this time. */
const INDEXES_TIMEOUT_MS = 60_000

interface Collections {
  readonly accounts: AccountCollections
  readonly agents: AgentCollections
  readonly knowledge: KnowledgeStore
}

/** The stores of an installation, to read. */
export interface ReadStores extends Collections, AsyncDisposable {
  readonly blobs: Pick<BlobStore, 'get'>
  /** The moment that all stores show; null: each read shows its own. */
  readonly madeAt: Date | null
}

/** The stores of an installation, to write. */
export interface WriteStores extends Collections, AsyncDisposable {
  readonly blobs: BlobStore
  readonly index: ChunkIndex
}

interface Opening {
  readonly config: Config
  readonly ids: IdSource
  readonly log: Log
}

/**
 * Opens the stores beside a running service, or without one.
 * @throws {Error} a file is missing, damaged or of another installation; a server cannot be reached, or a copy into it has
 * not ended
 */
export async function openToRead({ config, log }: Pick<Opening, 'config' | 'log'>): Promise<ReadStores> {
  const { billing, inference, knowledge } = config.settings
  await using opening = new AsyncDisposableStack()
  if (billing.mongodb && inference.mongodb && knowledge.mongodb) {
    const { openMongoBlobStore } = await import('../../subgraphs/knowledge/adapters/mongodb/blob-store.ts')
    const { openMongoDocumentStore } = await import('../../subgraphs/common/adapters/mongodb/document-store.ts')
    const { lookAtDatabase } = await import('../../subgraphs/common/adapters/mongodb/claimed/copy-mark.ts')
    if ((await lookAtDatabase(billing.mongodb, [])).isCopying)
      throw new Error(`The database ${billing.mongodb.database} in MongoDB is the target of a copy that has not ended.`)
    const open = async (database: MongoDatabase) => opening.use(await openMongoDocumentStore({ ...database, log }))
    const accounts = openAccountCollections(await open(billing.mongodb))
    const agents = openAgentCollections(await open(inference.mongodb))
    const records = knowledgeStore(await open(knowledge.mongodb))
    const blobs = opening.use(await openMongoBlobStore(knowledge.mongodb))
    const closing = opening.move()
    return { accounts, agents, knowledge: records, blobs, madeAt: null, [Symbol.asyncDispose]: () => closing.disposeAsync() }
  }
  lookAt(config.dataDirectory)
  const files = dataFiles(config.dataDirectory)
  const own = [files.billing, files.inference, files.knowledge, files.blobs].map(({ path }) => path)
  const snapshot = opening.use(await Snapshot.take(own))
  const [accounts, agents, records, blobs] = own.map((path) => snapshot.get(path))
  const closing = opening.move()
  return {
    accounts: openAccountCollections(readOnlyDocuments(accounts!)),
    agents: openAgentCollections(readOnlyDocuments(agents!)),
    knowledge: knowledgeStore(readOnlyDocuments(records!)),
    blobs: readOnlyBlobs(blobs!),
    madeAt: snapshot.madeAt,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/**
 * Opens the stores as the service does. The files of a data folder belong to one process, so the service must be stopped
 * if there are any; with servers it may run.
 * @throws {Error} a file is in use, missing, damaged or of another installation; or a server cannot be reached
 */
export async function openToWrite({ config, ids, log }: Opening): Promise<WriteStores> {
  const { billing, inference, knowledge } = config.settings
  const files = dataFiles(config.dataDirectory)
  const fingerprints = fingerprintsOf(deriveKeys(config.secrets, 'fingerprint'))
  const newId = () => ids('inst')
  await using opening = new AsyncDisposableStack()
  let installation: Installation | undefined
  const folder = new DataFolder({
    files: filesOf(config),
    fingerprints: () => fingerprints,
    ask: () => (installation ? Promise.resolve(installation.id) : null),
    newId,
  })
  const own = async () => installation ?? (await folder.look()).installation
  const open = async <C>(
    mongodb: MongoDatabase | null,
    file: FolderFile,
    declare: (store: Pick<DocumentStore, 'collection'>) => C,
  ): Promise<C> => {
    const kinds = collectKinds(declare)
    const claim = installation ?? ({ ...ownInstallation('', fingerprints), id: null, newId } as const)
    const opened = await openOwnDocuments({ mongodb, file: file.path, own, claim, kinds, log })
    if (mongodb) installation ??= opened.installation
    return declared(opening.use(opened.store), declare)
  }
  const accounts = await open(billing.mongodb, files.billing, openAccountCollections)
  const agents = await open(inference.mongodb, files.inference, openAgentCollections)
  const records = await open(knowledge.mongodb, files.knowledge, knowledgeStore)
  const blobs = opening.use(await openBlobs(config, files.blobs, own, log))
  const index = opening.use(await openIndex(config, files.index, folder, own, log))
  folder.noteSiblings()
  const closing = opening.move()
  return { accounts, agents, knowledge: records, blobs, index, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

async function openBlobs({ settings }: Config, { path }: FolderFile, own: () => Promise<Installation>, log: Log) {
  const { mongodb } = settings.knowledge
  if (!mongodb) return openSqliteBlobStore({ file: path, installation: await own(), log })
  const { openMongoBlobStore } = await import('../../subgraphs/knowledge/adapters/mongodb/blob-store.ts')
  return openMongoBlobStore(mongodb)
}

async function openIndex(
  { settings }: Config,
  { path }: FolderFile,
  folder: DataFolder,
  own: () => Promise<Installation>,
  log: Log,
): Promise<ChunkIndex> {
  const { elasticsearch } = settings.knowledge
  if (elasticsearch) {
    const { openElasticsearchChunkIndex } = await import('../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts')
    return openElasticsearchChunkIndex({ ...elasticsearch, installation: own, log })
  }
  const { installation, lost } = await folder.look()
  return openSqliteChunkIndex({ file: path, installation, isLost: lost.includes(path), rebuildFirst: true, log })
}

/** The files that this configuration has data in. */
function filesOf({ settings, dataDirectory }: Config): readonly FolderFile[] {
  const files = dataFiles(dataDirectory)
  return [
    ...(settings.billing.mongodb ? [] : [files.billing]),
    ...(settings.knowledge.mongodb ? [] : [files.knowledge, files.blobs]),
    ...(settings.knowledge.elasticsearch ? [] : [files.index]),
    ...(settings.inference.mongodb ? [] : [files.inference]),
  ]
}

/** Resolves when all collections and indexes exist. */
async function declared<C>(store: DocumentStore, declare: (store: Pick<DocumentStore, 'collection'>) => C): Promise<C> {
  const collections = declare(store)
  await store.ping(AbortSignal.timeout(INDEXES_TIMEOUT_MS))
  return collections
}
