import { statSync } from 'node:fs'
import { explainHalfImported, findHalfImported } from '../../subgraphs/billing/import-mark.ts'
import { BILLING_KINDS } from '../../subgraphs/billing/migrations.ts'
import { openAccountCollections } from '../../subgraphs/billing/portable.ts'
import { currentVersion, type Kind } from '../../subgraphs/common/adapters/documents/kinds.ts'
import { type OwnDocumentsOptions, openOwnDocuments } from '../../subgraphs/common/adapters/own-documents.ts'
import { findCorruptionAtStart } from '../../subgraphs/common/adapters/sqlite/corruption-at-start.ts'
import { DataFolder, type FolderFile } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import { corrupted, NewerFile, toOpeningFailure } from '../../subgraphs/common/adapters/sqlite/database.ts'
import { readOnlyDocuments } from '../../subgraphs/common/adapters/sqlite/documents/read-only-documents.ts'
import { markOfFile } from '../../subgraphs/common/adapters/sqlite/store-mark.ts'
import { explainMismatch, type Installation } from '../../subgraphs/common/identity/installation.ts'
import { HALF_ROTATED } from '../../subgraphs/common/identity/secret-file.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../subgraphs/common/ports/document-store.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { INFERENCE_KINDS } from '../../subgraphs/inference/migrations.ts'
import { openAgentCollections } from '../../subgraphs/inference/portable.ts'
import { openSqliteBlobStore } from '../../subgraphs/knowledge/adapters/sqlite/blob-store.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { readOnlyBlobs } from '../../subgraphs/knowledge/adapters/sqlite/read-only-blobs.ts'
import { KNOWLEDGE_KINDS } from '../../subgraphs/knowledge/migrations.ts'
import { type BlobStore, type ChunkIndex, knowledgeStore } from '../../subgraphs/knowledge/portable.ts'
import { dataFiles } from '../settings/data-files.ts'
import type { StoreLocations } from '../settings/servers.ts'
import { Snapshot } from './snapshot.ts'

/** Functions that declare the collections of each subgraph. */
const DECLARE = { billing: openAccountCollections, inference: openAgentCollections, knowledge: knowledgeStore } as const
type Subgraph = keyof typeof DECLARE
const KINDS: Readonly<Record<Subgraph, readonly Kind[]>> = {
  billing: BILLING_KINDS,
  inference: INFERENCE_KINDS,
  knowledge: KNOWLEDGE_KINDS,
}
/** Subgraphs in the order of an archive: a record comes after those that it refers to. */
export const SUBGRAPHS = Object.keys(DECLARE) as readonly Subgraph[]

type Declaring = Pick<DocumentStore, 'collection'>
type Documents<Store extends Declaring = Declaring> = Readonly<Record<Subgraph, Store>>

const START_FIRST = 'start the service of this version once, then export.'
/** Limit for opening a store, which may create missing indexes or check a large file. */
const READY_TIMEOUT_MS = 60_000

/** An installation with the secret that its data depends on. */
export interface Marked extends Installation {
  readonly secretFingerprint: string
}

/** The stores of an installation, opened to read. */
export interface ReadStores extends AsyncDisposable {
  readonly installation: Marked
  readonly documents: Documents
  readonly blobs: Pick<BlobStore, 'get' | 'list'>
  /** The moment that all stores show; null: each read shows its own. */
  readonly snapshotAt: Date | null
}

/** The stores of an installation, opened to write. */
export interface WriteStores extends AsyncDisposable {
  readonly documents: Documents<DocumentStore>
  readonly blobs: BlobStore
  readonly index: ChunkIndex
  /** The mark of billing's store: see `OwnMark`. */
  readonly secretFingerprint: string | null
}

/** A collection of documents, and the name of its kind in archives: `billing/wallets`. */
export interface NamedCollection {
  readonly name: string
  readonly collection: DocumentCollection<StoredDocument>
}

/** Returns every kind of document that the program knows, as the subgraphs declare them. */
export function listCollections(documents: Documents): readonly NamedCollection[] {
  return SUBGRAPHS.flatMap((subgraph) => {
    const found = new Map<string, DocumentCollection<StoredDocument>>()
    const declaring: Declaring = {
      collection<T extends StoredDocument>(spec: CollectionSpec) {
        const collection = documents[subgraph].collection<T>(spec)
        // An archive reads only the IDs.
        found.set(spec.name, collection as unknown as DocumentCollection<StoredDocument>)
        return collection
      },
    }
    DECLARE[subgraph](declaring)
    return [...found].map(([name, collection]) => ({ name: `${subgraph}/${name}`, collection }))
  })
}

/** Returns every kind of document with its migrations, by its name in archives. */
export function listKinds(): ReadonlyMap<string, Kind> {
  return new Map(SUBGRAPHS.flatMap((subgraph) => KINDS[subgraph].map((kind) => [`${subgraph}/${kind.name}`, kind] as const)))
}

/** Returns the version of each kind of document. */
export function kindVersions(): Readonly<Record<string, number>> {
  return Object.fromEntries([...listKinds()].map(([name, kind]) => [name, currentVersion(kind)]))
}

/**
 * Opens the stores beside a running service, or without one.
 * @throws {Error} a file is missing, corrupted or of another installation; a server cannot be reached, or an import has
 * not ended
 */
export async function openToRead(locations: StoreLocations): Promise<ReadStores> {
  await using opening = new AsyncDisposableStack()
  const { mongodb } = locations
  const found = mongodb ? await readServers(mongodb, opening) : await readFolder(locations.dataDirectory, opening)
  const problem = await explainHalfImported(found.documents.billing).catch((error) => {
    if (!/no such table/.test(error.message)) throw error
    return `${locations.dataDirectory} is of an earlier version: ${START_FIRST}`
  })
  if (problem) throw new Error(problem)
  const first = await openAccountCollections(found.documents.billing).bootstrap.findOne({ _id: 'operator' })
  if (!first?.secretFingerprint)
    throw new Error(`${locations.mongodb ? 'The data' : locations.dataDirectory} is of an earlier version: ${START_FIRST}`)
  if (first.rotatingTo !== undefined) throw new Error(HALF_ROTATED)
  const closing = opening.move()
  return {
    ...found,
    installation: { ...found.installation, secretFingerprint: first.secretFingerprint },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** @throws {Error} the data folder has no data, although its stores are files */
export function requireData({ mongodb, dataDirectory }: StoreLocations): void {
  if (mongodb) return
  const { billing, inference, knowledge, blobs } = dataFiles(dataDirectory)
  inspectFiles(dataDirectory, [billing, inference, knowledge, blobs])
}

async function readServers(mongodb: NonNullable<StoreLocations['mongodb']>, opening: AsyncDisposableStack) {
  const [{ blobsAt, openMongoBlobStore }, { connectMongo }, { documentsAt, documentsOf }, { startSnapshot }, { readMark }] =
    await Promise.all([
      import('../../subgraphs/knowledge/adapters/mongodb/blob-store.ts'),
      import('../../subgraphs/common/adapters/mongodb/connection.ts'),
      import('../../subgraphs/common/adapters/mongodb/document-store.ts'),
      import('../../subgraphs/common/adapters/mongodb/snapshot.ts'),
      import('./read-mark.ts'),
    ])
  let installation: Installation | undefined
  for (const database of Object.values(mongodb)) {
    const name = `The database ${database.database} in MongoDB`
    const mark = await readMark(database)
    if (!mark) throw new Error(`${name} has no data of the service. KIS_MONGODB_URL names the databases.`)
    installation ??= mark
    requireSameInstallation(name, mark, installation)
  }
  const client = opening.use(await connectMongo(mongodb.billing))
  const documents = await openEach(async (subgraph) => documentsOf(client, mongodb[subgraph].database))
  // Missing collections are created before the moment: MongoDB cannot read at that moment what was created after it.
  await prepare(documents)
  const snapshot = await startSnapshot(client, mongodb.billing.database)
  if (!snapshot) {
    const blobs = opening.use(await openMongoBlobStore(mongodb.knowledge))
    return { installation: installation!, documents, blobs, snapshotAt: null }
  }
  return {
    installation: installation!,
    documents: await openEach(async (subgraph) => documentsAt(snapshot, mongodb[subgraph].database)),
    blobs: blobsAt(snapshot, mongodb.knowledge.database),
    snapshotAt: snapshot.createdAt,
  }
}

/** Creates missing collections and indexes. */
async function prepare(documents: Documents<DocumentStore>): Promise<void> {
  for (const subgraph of SUBGRAPHS) {
    DECLARE[subgraph](documents[subgraph])
    if (subgraph === 'billing') await findHalfImported(documents.billing)
    await documents[subgraph].ping(AbortSignal.timeout(READY_TIMEOUT_MS))
  }
}

async function readFolder(dataDirectory: string, opening: AsyncDisposableStack) {
  const files = dataFiles(dataDirectory)
  const own = [files.billing, files.inference, files.knowledge, files.blobs]
  const installation = inspectFiles(dataDirectory, own)
  const snapshot = opening.use(await Snapshot.take(own.map(({ path }) => path)))
  for (const { path } of own) {
    const corruption = findCorruptionAtStart(snapshot.get(path), path)
    if (corruption !== null) throw corrupted(path, corruption)
  }
  const documents = await openEach(async (subgraph) => readOnlyDocuments(snapshot.get(files[subgraph].path)))
  return { installation, documents, blobs: readOnlyBlobs(snapshot.get(files.blobs.path)), snapshotAt: snapshot.createdAt }
}

/**
 * Inspects the files, which must belong together.
 * @throws {Error} a file is missing, of another installation, or of a newer version
 */
function inspectFiles(dataDirectory: string, files: readonly FolderFile[]): Installation {
  const missing = files.filter(({ path }) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0)
  if (missing.length === files.length) throw new Error(`${dataDirectory} has no data of the service. KIS_DATA_DIR names the data folder.`)
  if (missing.length > 0) throw new Error(`${missing[0]!.path} is missing, so the data is incomplete and cannot be exported.`)
  let installation: Installation | undefined
  for (const { path, schemaVersion } of files) {
    const { mark, version } = opened(path)
    if (version > schemaVersion) throw new NewerFile(path, version, schemaVersion)
    if (!mark) continue
    installation ??= { id: mark.id }
    requireSameInstallation(path, mark, installation)
  }
  if (!installation) throw new Error(`${dataDirectory} has files of version 0.1.0: start the service once, then export.`)
  return installation
}

function opened(path: string): ReturnType<typeof markOfFile> {
  try {
    return markOfFile(path)
  } catch (error) {
    throw toOpeningFailure(path, error)
  }
}

function requireSameInstallation(name: string, mark: Installation, installation: Installation): void {
  const problem = explainMismatch(name, mark, installation)
  if (problem) throw new Error(problem)
}

interface Writing {
  /** The expected installation; null: the one that the stores name, or a new one. */
  readonly installation: Installation | null
  /** As in `OwnDocumentsOptions`, for billing's documents. */
  readonly inspect?: OwnDocumentsOptions['inspect']
  readonly log: Log
}

/**
 * Opens the stores as the service does. The files of a data folder belong to one process, so the service must be
 * stopped if there are any; with servers it may run.
 * @throws {Error} a file is in use, missing, corrupted or of another installation; or a server cannot be reached
 */
export async function openToWrite(locations: StoreLocations, { installation: expected, inspect, log }: Writing): Promise<WriteStores> {
  const { mongodb, elasticsearch } = locations
  const files = dataFiles(locations.dataDirectory)
  const newId = () => idSource(systemClock)('inst')
  await using opening = new AsyncDisposableStack()
  let installation = expected
  let secretFingerprint: string | null = null
  const folder = new DataFolder({
    files: [...(mongodb ? [] : [files.billing, files.knowledge, files.blobs, files.inference]), ...(elasticsearch ? [] : [files.index])],
    readInstallationId: () => (installation ? Promise.resolve(installation.id) : null),
    newId,
  })
  const own = async () => installation ?? (await folder.inspect()).installation
  const open = async (subgraph: Subgraph): Promise<DocumentStore> => {
    const database = mongodb ? mongodb[subgraph] : null
    const claim = installation ?? ({ id: null, newId } as const)
    const opened = await openOwnDocuments({
      mongodb: database,
      file: files[subgraph].path,
      own,
      claim,
      kinds: KINDS[subgraph],
      inspect: subgraph === 'billing' ? inspect : undefined,
      log,
    })
    if (mongodb) installation ??= opened.installation
    if (subgraph === 'billing') secretFingerprint = opened.secretFingerprint
    return opened.store
  }
  // Inspected before a file of another installation is opened, or a missing one is created.
  if (!mongodb) await folder.inspect()
  const documents = await openEach(async (subgraph) => opening.use(await open(subgraph)))
  await prepare(documents)
  const blobs = opening.use(await openBlobs(mongodb, files.blobs.path, own, log))
  const { path } = files.index
  const isLost = async () => (await folder.inspect()).lost.includes(path)
  const index = opening.use(await openIndex(elasticsearch, { path, isLost }, own, log))
  await index.ping(AbortSignal.timeout(READY_TIMEOUT_MS))
  folder.noteSiblings()
  const closing = opening.move()
  return { documents, blobs, index, secretFingerprint, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

async function openBlobs(mongodb: StoreLocations['mongodb'], file: string, own: () => Promise<Installation>, log: Log) {
  if (!mongodb) return openSqliteBlobStore({ file, installation: await own(), log })
  const { openMongoBlobStore } = await import('../../subgraphs/knowledge/adapters/mongodb/blob-store.ts')
  return openMongoBlobStore(mongodb.knowledge)
}

async function openIndex(
  elasticsearch: StoreLocations['elasticsearch'],
  { path, isLost }: { readonly path: string; readonly isLost: () => Promise<boolean> },
  own: () => Promise<Installation>,
  log: Log,
): Promise<ChunkIndex & AsyncDisposable> {
  if (!elasticsearch)
    return openSqliteChunkIndex({ file: path, installation: await own(), isLost: await isLost(), rebuildFirst: true, log })
  const { openElasticsearchChunkIndex } = await import('../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts')
  return openElasticsearchChunkIndex({ ...elasticsearch, installation: own, log })
}

async function openEach<Store extends Declaring>(open: (subgraph: Subgraph) => Promise<Store>): Promise<Documents<Store>> {
  return { billing: await open('billing'), inference: await open('inference'), knowledge: await open('knowledge') }
}
