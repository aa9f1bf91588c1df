import { openOwnDocuments } from '../common/adapters/own-documents.ts'
import type { DataFolder } from '../common/adapters/sqlite/data-folder.ts'
import { FileChecks } from '../common/adapters/sqlite/full-checks.ts'
import type { BytePaths } from '../common/bytes/byte-paths.ts'
import { openDocuments } from '../common/documents/lazy-document-store.ts'
import { SiftBudget } from '../common/documents/lists.ts'
import { Egress } from '../common/egress/egress.ts'
import { erasing, erasureQueueOver } from '../common/erasure/erasing.ts'
import { EventLog, eventLogSource, type Telling } from '../common/events/event-log.ts'
import { inboxOver, webhookPump } from '../common/events/webhook-events.ts'
import type { Link } from '../common/link/link.ts'
import { type StoringSubgraph, subgraphSchema } from '../common/link/subgraph.ts'
import type { Clock } from '../common/process/clock.ts'
import type { IdSource } from '../common/process/ids.ts'
import type { Log } from '../common/process/log.ts'
import { Opening } from '../common/process/opening.ts'
import { type Task, Tasks } from '../common/process/tasks.ts'
import { wakeUp } from '../common/process/wake-up.ts'
import { observedPort } from '../common/telemetry/observed-port.ts'
import { noTelemetry, type Telemetry } from '../common/telemetry/telemetry.ts'
import { accountsOver } from './adapters/accounts-link.ts'
import { inferenceOver } from './adapters/inference-link.ts'
import { pageBillingOver } from './adapters/page-billing-link.ts'
import { openDocumentParser } from './adapters/parser/open-document-parser.ts'
import { openPageRecogniser } from './adapters/parser/open-page-recogniser.ts'
import { openSqliteBlobStore } from './adapters/sqlite/blob-store.ts'
import { openSqliteChunkIndex } from './adapters/sqlite/chunk-index.ts'
import { type KnowledgeConfig, knowledgeFiles } from './config.ts'
import { KNOWLEDGE_KINDS } from './migrations.ts'
import type { BlobStore } from './ports/blob-store.ts'
import type { ChunkIndex } from './ports/chunk-index.ts'
import { knowledgeStore } from './ports/knowledge-store.ts'
import type { Context } from './resolvers/context.ts'
import { resolvers } from './resolvers/index.ts'
import { checkTerms } from './use-cases/chunk-index/index-mark.ts'
import { CollectionDigests } from './use-cases/collection-digests.ts'
import type { Deps } from './use-cases/deps.ts'
import { eraseFound, findErased } from './use-cases/erasure/erasures.ts'
import { watching } from './use-cases/evaluation/run-watches.ts'
import { toKnowledgeEvent } from './use-cases/events/knowledge-events.ts'
import { openDownload } from './use-cases/files/download.ts'
import { watchQueue } from './use-cases/jobs/queue-metrics.ts'
import { sweeps, work } from './use-cases/jobs/work.ts'
import { RecordReads } from './use-cases/record-reads.ts'
import { RecordRoom } from './use-cases/record-room.ts'
import { refreshing } from './use-cases/web/refresh-source.ts'

/** How long deleted text may stay in the files of Elasticsearch. Expunging rewrites large parts of them, so it is rare. */
const EXPUNGE_MS = 24 * 3_600_000
/** Below the 2 s in which `problems()` must answer. */
const PING_TIMEOUT_MS = 1_500

export interface KnowledgeLinks {
  readonly billing: Link
  readonly inference: Link
}

export interface KnowledgeRuntime {
  readonly folder: Pick<DataFolder, 'inspect'>
  readonly bytePaths: BytePaths
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
  /** Default: nothing is told. */
  readonly telemetry?: Telemetry
  /** The workers wait for it. */
  readonly after?: Promise<unknown>
}

/** Opens its stores in the background, and starts the workers once all are open and `after` has resolved. */
export async function createKnowledge(
  config: KnowledgeConfig,
  links: KnowledgeLinks,
  { folder, bytePaths, clock, ids, log, telemetry = noTelemetry, after }: KnowledgeRuntime,
): Promise<StoringSubgraph> {
  const files = knowledgeFiles(config.dataDirectory)
  const { mongodb, elasticsearch } = config
  const parser = await openDocumentParser({ log })
  const recogniser = await openPageRecogniser({ log })
  const stopping = new AbortController()
  const { signal } = stopping
  const own = async () => (await folder.inspect()).installation
  const { store: documents, collections } = openDocuments(knowledgeStore, {
    async open() {
      return (await openOwnDocuments({ mongodb, file: files.documents, own, kinds: KNOWLEDGE_KINDS, isOfService: true, log })).store
    },
    observer: { subgraph: 'knowledge', telemetry },
    clock,
    signal,
  })
  const blobs = new Opening<BlobStore>({
    part: 'blob store',
    async open() {
      if (!mongodb) return openSqliteBlobStore({ file: files.blobs, installation: await own(), log })
      const { openMongoBlobStore } = await import('./adapters/mongodb/blob-store.ts')
      return openMongoBlobStore(mongodb)
    },
    clock,
    signal,
  })
  const index = new Opening<ChunkIndex>({
    part: 'chunk index',
    async open() {
      if (elasticsearch) {
        const { openElasticsearchChunkIndex } = await import('./adapters/elasticsearch/chunk-index.ts')
        return openElasticsearchChunkIndex({ ...elasticsearch, installation: own, log })
      }
      const { lost } = await folder.inspect()
      return openSqliteChunkIndex({ file: files.index, installation: await own(), isLost: lost.includes(files.index), log })
    },
    clock,
    signal,
  })
  const stores = [documents, blobs, index]
  const ownFiles = new FileChecks([...(mongodb ? [] : [files.documents, files.blobs]), ...(elasticsearch ? [] : [files.index])])
  const opened = Promise.all(stores.map((store) => store.opened))
  const workers = wakeUp()
  const events = new EventLog<Telling>([collections.documents, collections.evaluations, collections.reembeddings], collections, log)
  const deps: Deps = {
    store: collections,
    blobs: observedPort(
      blobs.late((it) => it),
      { metric: 'kis_blob_store_seconds', labels: [], what: 'files', attributes: {} },
      telemetry,
    ),
    index: observedPort(
      index.late((it) => it),
      { metric: 'kis_index_seconds', labels: [], what: 'chunk index', attributes: {} },
      telemetry,
    ),
    files: ownFiles,
    parser,
    recogniser,
    inference: inferenceOver(links.inference),
    egress: new Egress({ allowed: config.egressAllowed }),
    accounts: accountsOver(links.billing),
    pageBilling: pageBillingOver(links.billing, ids),
    bytePaths,
    digests: new CollectionDigests(collections, clock),
    room: new RecordRoom(collections, clock),
    events,
    clock,
    ids,
    log,
    ingestionWeights: config.ingestionWeights,
    wake: workers.wake,
  }
  const queue = watchQueue(telemetry.metrics, deps)
  const termsFailed = (error: unknown) => log.warn({ err: error }, 'the terms of the chunk index could not be checked')
  const isExclusive = mongodb === null
  const table: readonly Task[] = [
    ...sweeps(deps),
    refreshing(deps),
    watching(deps),
    ...(elasticsearch
      ? [{ name: 'expunge_deleted_text', everyMs: EXPUNGE_MS, isShared: true, run: (ended: AbortSignal) => deps.index.expunge(ended) }]
      : []),
    erasing({
      ...{ clock, log, queue: erasureQueueOver(links.billing, 'knowledge') },
      find: (task) => findErased(deps, task),
      erase: (task, ended) => eraseFound(deps, task, ended),
    }),
    webhookPump(eventLogSource(events, toKnowledgeEvent), inboxOver(links.billing, 'knowledge')),
  ]
  const working = Promise.all([opened, after]).then(
    async () => {
      await checkTerms(deps).catch(termsFailed)
      await Promise.all([
        work(deps, workers, { exclusive: isExclusive, backoffMs: config.retryBackoffMs }, signal),
        new Tasks({ part: 'knowledge', leases: collections.taskLeases, isExclusive, clock, log, metrics: telemetry.metrics }).run(
          table,
          signal,
        ),
      ])
    },
    () => undefined,
  )

  const problems = async () => {
    const soon = AbortSignal.timeout(PING_TIMEOUT_MS)
    return (await Promise.all(stores.map((store) => store.problems(soon)))).flat()
  }
  return {
    name: 'knowledge',
    schema: subgraphSchema('knowledge', resolvers),
    opened,
    toResolverContext: (context): Context => ({
      deps,
      ...context,
      records: new RecordReads(deps.store),
      sifting: new SiftBudget(),
      problems,
    }),
    openBytes: (request, context) => openDownload(deps, context, request),
    problems,
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the service stops'))
      queue[Symbol.dispose]()
      await working
      await events[Symbol.asyncDispose]()
      await Promise.all([...stores, parser, recogniser, ownFiles].map((each) => each[Symbol.asyncDispose]()))
    },
  }
}
