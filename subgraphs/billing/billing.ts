import type { Clock } from '../common/clock.ts'
import { isAbort } from '../common/errors.ts'
import type { IdSource } from '../common/ids.ts'
import type { Log } from '../common/log.ts'
import type { DocumentStore } from '../common/ports/document-store.ts'
import { type Subgraph, subgraphSchema } from '../common/subgraph.ts'
import type { BillingConfig } from './config.ts'
import { entities } from './resolvers/entities.ts'
import { enums } from './resolvers/enums.ts'
import { Mutation } from './resolvers/mutation.ts'
import { Query } from './resolvers/query.ts'
import { bootstrap } from './use-cases/bootstrap.ts'
import { openCollections } from './use-cases/collections.ts'
import { DEFAULT_PLAN } from './use-cases/create-organization.ts'
import type { BillingDeps } from './use-cases/deps.ts'
import { OutboxPump } from './use-cases/outbox-pump.ts'
import { reapHolds } from './use-cases/reap-holds.ts'
import { WalletWriter } from './use-cases/wallet-writer.ts'

/** The billing subgraph. */
export interface Billing extends Subgraph {
  /** The operator's key, to be shown on standard output, or null: it was used already, or the operator brought it. */
  readonly bootstrapKey: string | null
}

export interface BillingRuntime {
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}

/** How long after its expiry a hold may still reserve money. */
const REAP_INTERVAL_MS = 5_000
/** `problems()` promises an answer within 2 s. */
const PING_TIMEOUT_MS = 1_500

/** Billing on any document store, which it closes at its end. */
export async function billingOn(
  store: DocumentStore,
  config: Omit<BillingConfig, 'dataDir' | 'mongodb'>,
  { clock, ids, log }: BillingRuntime,
): Promise<Billing> {
  if (!config.plans.some((plan) => plan.code === DEFAULT_PLAN)) throw new Error(`The catalog has no plan \`${DEFAULT_PLAN}\`.`)
  const collections = openCollections(store)
  const pump = new OutboxPump(collections, log)
  const deps: BillingDeps = {
    collections,
    pump,
    writer: new WalletWriter(collections, pump),
    plans: config.plans,
    pepper: config.pepper,
    clock,
    ids,
    log,
  }
  const bootstrapKey = await bootstrap(deps, { apiKey: config.bootstrapApiKey, creditNanoUsd: config.bootstrapCreditNanoUsd })

  const stopping = new AbortController()
  const background = [
    pump.resume(stopping.signal).catch((error) => log.warn({ err: error }, 'outboxes of an earlier run wait for their next write')),
    keepReaping(deps, stopping.signal),
  ]
  return {
    name: 'billing',
    schema: subgraphSchema<BillingDeps>('billing', { ...enums, ...entities, Query, Mutation }),
    bootstrapKey,
    contextOf: (context) => ({ ...context, deps }),
    problems: () =>
      store.ping(AbortSignal.timeout(PING_TIMEOUT_MS)).then(
        () => [],
        () => ['document store'],
      ),
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await Promise.all(background)
      await pump[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

async function keepReaping(deps: BillingDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await reapHolds(deps, signal)
      await deps.clock.sleep(REAP_INTERVAL_MS, signal)
    } catch (error) {
      if (isAbort(error)) return
      deps.log.warn({ err: error }, 'expired holds could not be resolved')
      await deps.clock.sleep(REAP_INTERVAL_MS, signal).catch(() => undefined)
    }
  }
}
