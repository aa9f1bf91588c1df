import { join } from 'node:path'
import { openMongoDocumentStore } from '../common/adapters/mongodb/document-store.ts'
import { openSqliteDocumentStore } from '../common/adapters/sqlite/document-store.ts'
import type { SharedClock } from '../common/shared-clock.ts'
import { type Billing, type BillingRuntime, billingOn } from './billing.ts'
import type { BillingConfig } from './config.ts'

export type { Billing, BillingRuntime } from './billing.ts'

const PING_TIMEOUT_MS = 2_000

/** Billing on its own database, which it opens in the background; disposing it closes both. MongoDB's clock is its clock. */
export function createBilling(config: BillingConfig, runtime: BillingRuntime & { readonly clock: SharedClock }): Billing {
  const { dataDir, mongodb } = config
  const { clock, log } = runtime
  const open = async () => {
    if (!mongodb) return openSqliteDocumentStore({ file: join(dataDir, 'billing.sqlite'), log })
    const store = await openMongoDocumentStore({ ...mongodb, log })
    await clock.follow(() => store.ping(AbortSignal.timeout(PING_TIMEOUT_MS)))
    return store
  }
  // A data folder belongs to one process.
  return billingOn(open, config, { ...runtime, isExclusive: mongodb === null })
}
