import { openDocuments } from '../common/documents/late-documents.ts'
import { SiftBudget } from '../common/documents/list-sifted.ts'
import { Egress } from '../common/egress/egress.ts'
import { fingerprintsOf } from '../common/identity/accepted-secrets.ts'
import { type StoringSubgraph, subgraphSchema } from '../common/link/subgraph.ts'
import type { DocumentStore } from '../common/ports/document-store.ts'
import type { StoreFiles } from '../common/ports/store-files.ts'
import type { Clock } from '../common/process/clock.ts'
import type { IdSource } from '../common/process/ids.ts'
import type { Log } from '../common/process/log.ts'
import { Opening } from '../common/process/opening.ts'
import { Tasks } from '../common/process/tasks.ts'
import type { SecretMark } from '../common/rotation/secret-mark.ts'
import { SecretRotation } from '../common/rotation/secret-rotation.ts'
import { noTelemetry, type Telemetry } from '../common/telemetry/telemetry.ts'
import { keyReads } from './accounts/use-cases/api-keys.ts'
import { bootstrap } from './accounts/use-cases/bootstrap.ts'
import { DEFAULT_PLAN } from './accounts/use-cases/create-organization.ts'
import type { BillingConfig } from './config.ts'
import { watchHolds } from './ledger/holds/hold-metrics.ts'
import { OutboxPump } from './ledger/use-cases/outbox-pump.ts'
import { WalletWriter } from './ledger/use-cases/wallet-writer.ts'
import type { Context } from './resolvers/context.ts'
import { resolvers } from './resolvers/index.ts'
import { secretDependents } from './secret-dependents.ts'
import type { BillingDeps } from './use-cases/deps.ts'
import { openCollections } from './use-cases/tables.ts'
import { WebhookSender } from './webhooks/use-cases/webhook-sender.ts'
import { work } from './work.ts'

/** The billing subgraph. */
export interface Billing extends StoringSubgraph {
  /** The operator's key, to print on standard output; null: it was used already, or the operator brought it. */
  readonly bootstrapKey: Promise<string | null>
}

export interface BillingRuntime {
  /** The installation that the store belongs to. The other subgraphs ask for it. */
  readonly installationId: () => Promise<string>
  /** The secret in the mark of the store. */
  readonly secretMark: SecretMark
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
  /** Default: nothing is told. */
  readonly telemetry?: Telemetry
}

/** Below the 2 s in which `problems()` must answer. */
const PING_TIMEOUT_MS = 1_500

/**
 * Billing on any document store, which it closes at its end. `isExclusive`: no other process uses the store, whose
 * files are `files`. Background work begins when the store is open.
 */
export function billingOn(
  open: () => Promise<DocumentStore>,
  config: Omit<BillingConfig, 'dataDirectory' | 'mongodb'>,
  {
    installationId,
    secretMark,
    clock,
    ids,
    log,
    telemetry = noTelemetry,
    isExclusive = false,
    files,
  }: BillingRuntime & { readonly isExclusive?: boolean; readonly files: StoreFiles & AsyncDisposable },
): Billing {
  if (!config.plans.some((plan) => plan.code === DEFAULT_PLAN)) throw new Error(`The catalog has no plan \`${DEFAULT_PLAN}\`.`)
  const stopping = new AbortController()
  const { signal } = stopping
  const { store, collections } = openDocuments(openCollections, { open, observer: { subgraph: 'billing', telemetry }, clock, signal })
  const pump = new OutboxPump(collections, log)
  const gauges = new DisposableStack()
  gauges.use(watchHolds(telemetry.metrics, collections))
  gauges.use(telemetry.metrics.gauge('kis_outbox_wallets', () => [[pump.waiting.wallets]]))
  gauges.use(telemetry.metrics.gauge('kis_outbox_lag_seconds', () => [[pump.waiting.oldestMs / 1_000]]))
  const { peppers, sealed } = config
  const rotation = new SecretRotation({
    dependents: secretDependents({ collections, peppers, sealed, secretMark, clock }),
    fingerprints: fingerprintsOf(peppers),
    mark: secretMark,
    clock,
    log,
  })
  const deps: BillingDeps = {
    collections,
    isExclusive,
    files,
    pump,
    writer: new WalletWriter(collections, pump),
    plans: config.plans,
    peppers,
    sealed,
    secretMark,
    rotation,
    egress: new Egress({ allowed: config.egressAllowed }),
    publicUrl: config.publicUrl,
    retryBackoffMs: config.retryBackoffMs,
    webhooksDue: () => sender.wake(),
    installationId,
    clock,
    ids,
    log,
  }
  const sender = new WebhookSender(deps)
  const tasks = new Tasks({ part: 'billing', leases: collections.taskLeases, isExclusive, clock, log, metrics: telemetry.metrics })
  const settings = { apiKey: config.bootstrapApiKey, creditNanoUsd: config.bootstrapCreditNanoUsd }
  const begin = async () => {
    await rotation.requireAccepted()
    return bootstrap(deps, settings)
  }
  const first = new Opening({ part: 'document store', open: begin, after: store.opened, clock, signal })
  const background = first.opened.then(
    () => Promise.all([work(deps, sender, tasks, signal), tasks.run(rotation.tasks, signal)]),
    () => undefined,
  )
  const problems = async () => {
    const soon = AbortSignal.timeout(PING_TIMEOUT_MS)
    return (await Promise.all([store.problems(soon), first.problems(soon)])).flat()
  }
  return {
    name: 'billing',
    schema: subgraphSchema('billing', resolvers),
    opened: first.opened,
    bootstrapKey: first.opened,
    secretMoved: rotation.moved,
    toResolverContext: (context): Context => ({ ...context, deps, keys: keyReads(deps), sifting: new SiftBudget(), problems }),
    problems,
    async [Symbol.asyncDispose]() {
      stopping.abort()
      gauges.dispose()
      await background
      await pump[Symbol.asyncDispose]()
      await files[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}
