import { billingCollections } from '../../subgraphs/billing/stored.ts'
import { collectKinds, type Kind } from '../../subgraphs/common/adapters/documents/kinds.ts'
import { openSqliteDocumentStore } from '../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import type { MongoDatabase } from '../../subgraphs/common/documents/mongodb-url.ts'
import type { Installation } from '../../subgraphs/common/identity/installation.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../subgraphs/common/ports/document-store.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { inferenceCollections } from '../../subgraphs/inference/stored.ts'
import { type KnowledgeParts, knowledgeStore, openInFolder, openOnServers } from '../../subgraphs/knowledge/stored.ts'
import { dataFiles } from '../backup/data-files.ts'
import type { Servers } from '../settings/servers.ts'

type Declaring = Pick<DocumentStore, 'collection'>

/** What each subgraph declares. */
const DECLARE = { knowledge: knowledgeStore, inference: inferenceCollections, billing: billingCollections } as const

export type Subgraph = keyof typeof DECLARE
export const SUBGRAPHS = Object.keys(DECLARE) as readonly Subgraph[]

/** All stores of an installation, open, while nothing serves them. */
export interface Stores extends AsyncDisposable {
  readonly documents: Readonly<Record<Subgraph, DocumentStore>>
  readonly knowledge: KnowledgeParts
}

/** A collection of documents by its name. */
export interface Named {
  readonly subgraph: Subgraph
  readonly name: string
  readonly collection: DocumentCollection<StoredDocument>
}

interface Opening {
  readonly installation: Installation
  readonly log: Log
}

/**
 * Opens all stores of a data folder.
 * @throws {Error} a file is in use, damaged or another installation's
 */
export async function openFolder(
  dataDirectory: string,
  { installation, log, isIndexLost }: Opening & { isIndexLost: boolean },
): Promise<Stores> {
  await using stack = new AsyncDisposableStack()
  const files = dataFiles(dataDirectory)
  const documents = await openEach(async (subgraph) => {
    const options = { file: files[subgraph].path, installation, kinds: kindsOf(subgraph), log }
    return stack.use(await openSqliteDocumentStore(options))
  })
  const parts = await openInFolder(dataDirectory, { installation, isIndexLost, log, stack })
  return opened(documents, parts, stack)
}

/**
 * Opens all stores on servers: as a source, or to fill them.
 * @throws {Error} a store is another installation's
 * @throws {Unfit} a server cannot serve
 */
export async function openServers(servers: Servers, { installation, log, isSource }: Opening & { isSource: boolean }): Promise<Stores> {
  await using stack = new AsyncDisposableStack()
  const [{ openMongoDocumentStore }, { openOwnMongoStore }] = await Promise.all([
    import('../../subgraphs/common/adapters/mongodb/document-store.ts'),
    import('../../subgraphs/common/adapters/mongodb/own-store.ts'),
  ])
  const open = async (subgraph: Subgraph, database: MongoDatabase) => {
    // Without a sign of life: the next try would wait for a process that was killed.
    if (isSource) return openMongoDocumentStore({ ...database, log })
    const options = { kinds: kindsOf(subgraph), log, isCopy: true }
    return (await openOwnMongoStore(database, async () => installation, options)).store
  }
  const documents = await openEach(async (subgraph) => stack.use(await open(subgraph, servers.mongodb[subgraph])))
  const parts = await openOnServers(
    { mongodb: servers.mongodb.knowledge, elasticsearch: servers.elasticsearch },
    { installation, log, stack },
  )
  return opened(documents, parts, stack)
}

/** The kinds of documents of a subgraph. */
export function kindsOf(subgraph: Subgraph): readonly Kind[] {
  return collectKinds(DECLARE[subgraph])
}

async function openEach(open: (subgraph: Subgraph) => Promise<DocumentStore>): Promise<Stores['documents']> {
  return { knowledge: await open('knowledge'), inference: await open('inference'), billing: await open('billing') }
}

function opened(documents: Stores['documents'], parts: Omit<KnowledgeParts, 'documents'>, stack: AsyncDisposableStack): Stores {
  const closing = stack.move()
  return {
    documents,
    knowledge: { ...parts, documents: documents.knowledge },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Every collection of documents that the program knows. */
export function listCollections({ documents }: Pick<Stores, 'documents'>): readonly Named[] {
  return SUBGRAPHS.flatMap((subgraph) => {
    const found = new Map<string, DocumentCollection<StoredDocument>>()
    const declaring: Declaring = {
      collection<T extends StoredDocument>(spec: CollectionSpec) {
        const collection = documents[subgraph].collection<T>(spec)
        // A copy looks at nothing but the ids.
        found.set(spec.name, collection as unknown as DocumentCollection<StoredDocument>)
        return collection
      },
    }
    DECLARE[subgraph](declaring)
    return [...found].map(([name, collection]) => ({ subgraph, name, collection }))
  })
}
