import { openOwnDocuments } from '../common/adapters/own-documents.ts'
import type { DataFolder } from '../common/adapters/sqlite/data-folder.ts'
import { FileChecks } from '../common/adapters/sqlite/full-checks.ts'
import type { BytePaths } from '../common/bytes/byte-paths.ts'
import { openDocuments } from '../common/documents/lazy-document-store.ts'
import { ReadBudget } from '../common/documents/long-records.ts'
import { Egress } from '../common/egress/egress.ts'
import { erasing, erasureQueueOver } from '../common/erasure/erasing.ts'
import { eventLogSource } from '../common/events/event-log.ts'
import { inboxOver, webhookPump } from '../common/events/webhook-events.ts'
import { requireOneSecret } from '../common/identity/earlier-rotation.ts'
import { fingerprintSecret, sealedBy } from '../common/identity/secrets.ts'
import type { Link } from '../common/link/link.ts'
import { type StoringSubgraph, subgraphSchema } from '../common/link/subgraph.ts'
import type { Clock } from '../common/process/clock.ts'
import type { IdSource } from '../common/process/ids.ts'
import type { Log } from '../common/process/log.ts'
import { Opening } from '../common/process/opening.ts'
import { Tasks } from '../common/process/tasks.ts'
import type { QueueWatch } from '../common/server/queue-watch.ts'
import { noTelemetry, type Telemetry } from '../common/telemetry/telemetry.ts'
import { AjvSchemaJudge } from './adapters/ajv/schema-judge.ts'
import { billingOver } from './adapters/billing-link.ts'
import { createTokenDecoder } from './adapters/cl100k/token-decoder.ts'
import { type EmbeddedEngines, openEmbeddedEngines } from './adapters/embedded/engines.ts'
import { knowledgeOver } from './adapters/knowledge-link.ts'
import { mcpClientsOver } from './adapters/mcp/clients.ts'
import { createAudioReader } from './adapters/music-metadata/audio-reader.ts'
import { observedBilling } from './adapters/observed-billing.ts'
import { observedEngine } from './adapters/observed-engine.ts'
import { azureAddresses } from './adapters/openai/azure.ts'
import { createOpenAiEngines } from './adapters/openai/engines.ts'
import { ownedNodesOver } from './adapters/owned-nodes-link.ts'
import { createRerankEngine } from './adapters/rerank/engine.ts'
import { TIMEOUTS, type Timeouts } from './adapters/vendor/limits.ts'
import { operatorAlerts } from './adapters/vendor/operator-alerts.ts'
import { type InferenceConfig, inferenceFiles } from './config.ts'
import type { EngineEntry, EngineKind } from './domain/catalog/engine.ts'
import { buildCatalog } from './domain/catalog.ts'
import { Breaker } from './domain/engines/breaker.ts'
import { RetryBudget } from './domain/engines/retry-budget.ts'
import { INFERENCE_KINDS } from './migrations.ts'
import type { EngineParts } from './ports/engines.ts'
import type { Context } from './resolvers/context.ts'
import { resolvers } from './resolvers/index.ts'
import { AgentRuns } from './use-cases/agents/agent-runs.ts'
import { CallLimits } from './use-cases/calls/call-limits.ts'
import { LoadShedder } from './use-cases/calls/load-shedding.ts'
import { Principals } from './use-cases/calls/principals.ts'
import { OwnRates } from './use-cases/calls/rate-usage.ts'
import { idleRatesSweep, SharedRates } from './use-cases/calls/shared-rates.ts'
import { DefinitionReads } from './use-cases/definition-reads.ts'
import type { Engine, RunDeps, ServedDeps } from './use-cases/deps.ts'
import { eraseFound, findErased } from './use-cases/erasures.ts'
import { keyedCallsSweep } from './use-cases/idempotency/expire-keyed-calls.ts'
import { KeyedCalls } from './use-cases/idempotency/keyed-calls.ts'
import { openResponse } from './use-cases/idempotency/open-response.ts'
import { ZeroUsage } from './use-cases/money/zero-usage.ts'
import { Background } from './use-cases/runs/background.ts'
import { SoleHolder, UNKNOWN_HOLDER } from './use-cases/runs/holder.ts'
import { LiveReplicas } from './use-cases/runs/live-replicas.ts'
import { PoisonGuard } from './use-cases/runs/poison-guard.ts'
import { openRunEnds, toWebhookEvent } from './use-cases/runs/run-ends.ts'
import { ChatStreams } from './use-cases/streams/chat-streams.ts'
import { openCollections } from './use-cases/tables.ts'
import { WorkflowRuns } from './use-cases/workflows/workflow-runs.ts'

export interface InferenceRuntime {
  readonly billing: Link
  readonly knowledge: Link
  readonly folder: Pick<DataFolder, 'inspect'>
  readonly bytePaths: BytePaths
  /** The installation's, under which what callers trust the service with is sealed. */
  readonly secret: Uint8Array
  readonly queue: Pick<QueueWatch, 'wait'>
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
  /** Default: nothing is told. */
  readonly telemetry?: Telemetry
  /** Work waits for it. */
  readonly after?: Promise<unknown>
}

/** `problems()` promises an answer within 2 s. */
const PING_TIMEOUT_MS = 1_500

/**
 * Starts inference: opens the engines that are on, and its store in the background. A call needs the store only for
 * what is kept of it, so that the others go on while the store is lost. Disposing it finishes the charges under way,
 * then closes store and engines.
 */
export async function createInference(config: InferenceConfig, runtime: InferenceRuntime): Promise<StoringSubgraph> {
  const { billing, knowledge, folder, bytePaths, secret, queue, clock, ids, log, telemetry = noTelemetry, after } = runtime
  await using stack = new AsyncDisposableStack()
  const engines = new Map<string, Engine>()
  let embedded: EmbeddedEngines | undefined
  const open = async (entry: EngineEntry): Promise<EngineParts> => {
    if (entry.kind !== 'embedded') return stack.use(await openVendor(entry.kind, entry, clock, log))
    embedded ??= stack.use(await openEmbeddedEngines({ modelDirectory: config.modelDirectory, log, clock }))
    return embedded
  }
  for (const entry of config.catalog.engines.filter(({ on }) => on)) {
    engines.set(entry.name, { ...observedEngine(await open(entry), entry.name, entry.kind, telemetry), ...createHealth(entry) })
  }
  const now = () => clock.now().getTime()
  const readBreakers = () => [...engines].map(([name, { breaker }]) => [breaker.isOpen(now()) ? 1 : 0, name] as const)
  stack.use(telemetry.metrics.gauge('kis_engine_breaker_open', readBreakers))
  const stopping = new AbortController()
  const { signal } = stopping
  let working: Promise<unknown> | undefined
  const { dataDirectory, mongodb } = config
  const file = inferenceFiles(dataDirectory).documents
  const { store, collections } = openDocuments(openCollections, {
    async open() {
      const own = async () => (await folder.inspect()).installation
      return (await openOwnDocuments({ mongodb, file, own, kinds: INFERENCE_KINDS, isOfService: true, log })).store
    },
    observer: { subgraph: 'inference', telemetry },
    clock,
    signal,
  })
  stack.use(store)
  const check = () => requireOneSecret([collections.agents, collections.agentVersions], fingerprintSecret(secret))
  const checked = new Opening({ part: 'document store', open: check, after: Promise.all([store.opened, after]), clock, signal })
  // A data folder belongs to one process.
  const isExclusive = mongodb === null
  const replicas = isExclusive ? null : stack.use(new LiveReplicas(collections.replicas, clock))
  stack.defer(async () => void (await working))
  stack.defer(() => stopping.abort())
  const tasks = new Tasks({ part: 'inference', leases: collections.taskLeases, isExclusive, clock, log, metrics: telemetry.metrics })
  const sharedRates = replicas && new SharedRates(collections.keyRates, () => replicas.count, clock, log)
  const rates = sharedRates ?? new OwnRates(clock)
  const money = observedBilling(billingOver(billing, clock), telemetry)
  const sole = mongodb ? null : new SoleHolder({ collections, billing: money, clock, log })
  const catalog = buildCatalog(config.catalog)
  const base = {
    catalog,
    engines,
    collections,
    files: stack.use(new FileChecks(mongodb ? [] : [file])),
    audio: createAudioReader(),
    tokens: createTokenDecoder(),
    billing: money,
    principals: new Principals(money, clock),
    knowledge: knowledgeOver(knowledge),
    egress: new Egress({ allowed: config.egressAllowed }),
    // Of its own, so that servers that keep agents waiting take no place of an image.
    mcp: mcpClientsOver(new Egress({ allowed: config.egressAllowed }), config.localMcpServers),
    schemas: stack.use(new AjvSchemaJudge()),
    secrets: sealedBy(secret, 'secrets of callers'),
    bytePaths,
    background: stack.use(new Background()),
    holder: sole ?? UNKNOWN_HOLDER,
    limits: new CallLimits(rates, () => replicas?.count ?? 1),
    load: stack.use(new LoadShedder()),
    queue,
    zeroUsage: new ZeroUsage(catalog, clock, log, telemetry.metrics),
    clock,
    ids,
    log,
  }
  const runEnds = stack.use(openRunEnds(collections, log))
  const deps: RunDeps = { ...base, keyedCalls: stack.use(new KeyedCalls(base, isExclusive)), runEnds }
  const ofRuns = { opened: checked.opened, isExclusive, poisonGuard: new PoisonGuard(clock), tasks }
  const runs = stack.use(new AgentRuns(deps, ofRuns))
  const workflowRuns = stack.use(new WorkflowRuns(deps, ofRuns))
  const chatStreams = stack.use(new ChatStreams(deps))
  const served: ServedDeps = { ...deps, runs, workflowRuns, chatStreams }
  working = checked.opened.then(
    () =>
      Promise.all([
        sole?.succeed(deps.keyedCalls, signal),
        tasks.run(
          [
            ...(replicas ? [replicas.task] : []),
            ...(sharedRates ? [idleRatesSweep(sharedRates)] : []),
            keyedCallsSweep(deps),
            erasing({
              ...{ clock, log, queue: erasureQueueOver(billing, 'inference') },
              find: (task) => findErased(served, task),
              erase: (task, ended) => eraseFound(served, task, ended),
            }),
            webhookPump(eventLogSource(runEnds, toWebhookEvent), inboxOver(billing, 'inference')),
          ],
          signal,
        ),
      ]),
    () => undefined,
  )
  const problems = async () => {
    const found = await Promise.all([store.problems(AbortSignal.timeout(PING_TIMEOUT_MS)), embedded?.problems() ?? []])
    return found.flat()
  }
  const parts = stack.move()
  return {
    name: 'inference',
    schema: subgraphSchema('inference', resolvers),
    opened: checked.opened,
    toResolverContext: ({ caller, requestId, signal, isCut }): Context => ({
      deps: served,
      caller,
      requestId,
      signal,
      isCut,
      budget: new ReadBudget(),
      definitions: new DefinitionReads(served.collections),
      nodes: ownedNodesOver({ billing, knowledge }, { caller, requestId, signal }),
      problems,
    }),
    openBytes: (request, context) => openResponse(served, context, request),
    problems,
    async [Symbol.asyncDispose]() {
      // Before all else: what waits for a store that has not opened waits no longer.
      stopping.abort()
      await parts.disposeAsync()
    },
  }
}

/** What is known of an engine beside what it does. */
function createHealth({ firstByteMs }: EngineEntry): Pick<Engine, 'breaker' | 'retries' | 'firstByteMs'> {
  return { breaker: new Breaker(), retries: new RetryBudget(), firstByteMs: firstByteMs ?? TIMEOUTS.streamHeadersMs }
}

/** The engine of an entry that is on, and so has what its kind needs. */
async function openVendor(kind: Exclude<EngineKind, 'embedded'>, entry: EngineEntry, clock: Clock, log: Log) {
  const { maxBatch, connectMs, firstByteMs, idleMs, ...settings } = entry
  const timeouts: Timeouts = {
    ...TIMEOUTS,
    ...(connectMs && { connectMs }),
    ...(firstByteMs && { streamHeadersMs: firstByteMs }),
    ...(idleMs && { bodyIdleMs: idleMs }),
  }
  const options = { ...settings, clock, timeouts, onOperatorFault: operatorAlerts(entry.name, clock, log), ...(maxBatch && { maxBatch }) }
  if (kind === 'openai') return createOpenAiEngines({ ...options, baseUrl: entry.baseUrl! })
  if (kind === 'rerank') return createRerankEngine({ ...options, baseUrl: entry.baseUrl!, protocol: entry.protocol! })
  if (kind !== 'azure') {
    // Here, because the code for these vendors takes 80 ms of a start.
    const { openAiSdkEngines } = await import('./adapters/ai-sdk/engines.ts')
    return openAiSdkEngines({ ...options, kind })
  }
  const azure = azureAddresses(entry.baseUrl ?? `https://${entry.resource}.openai.azure.com`, entry.apiVersion)
  return createOpenAiEngines({ ...options, baseUrl: azure.baseUrl, azure })
}
