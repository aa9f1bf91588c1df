import { mkdirSync } from 'node:fs'
import { openMongoDocumentStore } from '../common/adapters/mongodb/document-store.ts'
import { openSqliteDocumentStore } from '../common/adapters/sqlite/document-store.ts'
import type { Clock } from '../common/clock.ts'
import type { IdSource } from '../common/ids.ts'
import type { Link } from '../common/link.ts'
import type { Log } from '../common/log.ts'
import { type Subgraph, subgraphSchema } from '../common/subgraph.ts'
import { accountsOver } from './adapters/accounts-link.ts'
import { openElasticsearchChunkIndex } from './adapters/elasticsearch/chunk-index.ts'
import { inferenceOver } from './adapters/inference-link.ts'
import { openMongoBlobStore } from './adapters/mongodb/blob-store.ts'
import { openDocumentParser } from './adapters/parser/open-document-parser.ts'
import { openSqliteBlobStore } from './adapters/sqlite/blob-store.ts'
import { openSqliteChunkIndex } from './adapters/sqlite/chunk-index.ts'
import { type KnowledgeConfig, knowledgeFiles } from './config.ts'
import { knowledgeStore } from './ports/knowledge-store.ts'
import { resolvers } from './resolvers/index.ts'
import type { Deps } from './use-cases/deps.ts'
import { documentEvents } from './use-cases/document-events.ts'
import { wakeUp } from './use-cases/wake-up.ts'
import { work } from './use-cases/work.ts'

const PING_TIMEOUT_MS = 2_000
/** The store makes the indexes that are missing by then; on a large collection that takes a while. */
const START_TIMEOUT_MS = 60_000

export interface KnowledgeLinks {
  readonly billing: Link
  readonly inference: Link
}

/** Opens the stores and starts the workers. */
export async function createKnowledge(
  config: KnowledgeConfig,
  links: KnowledgeLinks,
  { clock, ids, log }: { readonly clock: Clock; readonly ids: IdSource; readonly log: Log },
): Promise<Subgraph> {
  mkdirSync(config.dataDirectory, { recursive: true })
  const files = knowledgeFiles(config.dataDirectory)
  await using opened = new AsyncDisposableStack()
  const { mongodb } = config
  const documents = opened.use(
    mongodb ? await openMongoDocumentStore({ ...mongodb, log }) : await openSqliteDocumentStore({ file: files.documents, log }),
  )
  const blobs = opened.use(mongodb ? await openMongoBlobStore(mongodb) : await openSqliteBlobStore({ file: files.blobs, log }))
  const index = opened.use(
    config.elasticsearch
      ? await openElasticsearchChunkIndex({ ...config.elasticsearch, log })
      : await openSqliteChunkIndex({ file: files.index, log }),
  )
  const parser = opened.use(await openDocumentParser({ log }))
  const workers = wakeUp()
  const deps: Deps = {
    store: knowledgeStore(documents),
    blobs,
    index,
    parser,
    inference: inferenceOver(links.inference),
    accounts: accountsOver(links.billing),
    events: documentEvents(),
    clock,
    ids,
    log,
    wake: workers.wake,
  }
  // The collections are declared now: a store that has something against their indexes ends the start.
  await documents.ping(AbortSignal.timeout(START_TIMEOUT_MS))
  const stopping = new AbortController()
  const working = work(deps, workers, { exclusive: mongodb === null, backoffMs: config.retryBackoffMs }, stopping.signal)
  const stores = opened.move()

  return {
    name: 'knowledge',
    schema: subgraphSchema('knowledge', resolvers),
    contextOf: (context) => ({ deps, ...context }),
    async problems() {
      const signal = AbortSignal.timeout(PING_TIMEOUT_MS)
      const parts = { 'document store': documents.ping(signal), 'chunk index': index.ping(signal) }
      const found = await Promise.all(
        Object.entries(parts).map(([name, ping]) =>
          ping.then(
            () => [],
            () => [name],
          ),
        ),
      )
      return found.flat()
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the service stops'))
      await working
      await stores[Symbol.asyncDispose]()
    },
  }
}
