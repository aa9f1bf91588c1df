import type { OwnMark } from '../common/adapters/own-documents.ts'
import { openDocuments } from '../common/documents/lazy-document-store.ts'
import { SiftBudget } from '../common/documents/lists.ts'
import type { StoreFiles } from '../common/documents/verify-files.ts'
import { Egress } from '../common/egress/egress.ts'
import { ServiceUnavailable } from '../common/errors.ts'
import { sealedBy } from '../common/identity/secrets.ts'
import { type StoringSubgraph, subgraphSchema } from '../common/link/subgraph.ts'
import type { DocumentStore } from '../common/ports/document-store.ts'
import type { Clock } from '../common/process/clock.ts'
import type { IdSource } from '../common/process/ids.ts'
import type { Log } from '../common/process/log.ts'
import { Opening } from '../common/process/opening.ts'
import { Tasks } from '../common/process/tasks.ts'
import { noTelemetry, type Telemetry } from '../common/telemetry/telemetry.ts'
import { keyReads } from './accounts/use-cases/api-keys.ts'
import { bootstrap, decideFirst } from './accounts/use-cases/bootstrap.ts'
import { DEFAULT_PLAN } from './accounts/use-cases/create-organization.ts'
import { openPepper } from './accounts/use-cases/key-pepper.ts'
import type { BillingConfig } from './config.ts'
import { watchHolds } from './ledger/holds/hold-metrics.ts'
import { OutboxPump } from './ledger/use-cases/outbox-pump.ts'
import { WalletWriter } from './ledger/use-cases/wallet-writer.ts'
import type { Context } from './resolvers/context.ts'
import { resolvers } from './resolvers/index.ts'
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
  /** What the mark of the store says. @throws {ServiceUnavailable} the store is not open yet */
  readonly mark: () => OwnMark
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
    mark,
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
  let opened: Uint8Array | undefined
  const pepper = () => {
    if (!opened) throw new ServiceUnavailable('The store of billing')
    return opened
  }
  const deps: BillingDeps = {
    collections,
    isExclusive,
    files,
    pump,
    writer: new WalletWriter(collections, pump),
    plans: config.plans,
    pepper,
    sealed: sealedBy(config.secret, 'webhook secrets'),
    egress: new Egress({ allowed: config.egressAllowed }),
    publicUrl: config.publicUrl,
    retryBackoffMs: config.retryBackoffMs,
    webhooksDue: () => sender.wake(),
    // Who asks opens a store, which the right secret alone may do.
    installationId: async () => pepper() && mark().installation.id,
    clock,
    ids,
    log,
  }
  const sender = new WebhookSender(deps)
  const tasks = new Tasks({ part: 'billing', leases: collections.taskLeases, isExclusive, clock, log, metrics: telemetry.metrics })
  const settings = { apiKey: config.bootstrapApiKey, creditNanoUsd: config.bootstrapCreditNanoUsd }
  const openFirst = async () => {
    const parts = { ...deps, secret: config.secret, madeWith: mark().madeWith }
    const first = await decideFirst(parts, settings)
    opened = await openPepper(parts, first)
    return bootstrap(deps, settings, first)
  }
  const first = new Opening({ part: 'document store', open: openFirst, after: store.opened, clock, signal })
  const background = first.opened.then(
    () => work(deps, sender, tasks, signal),
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
