import { join } from 'node:path'
import { openMongoDocumentStore } from '../common/adapters/mongodb/document-store.ts'
import { openSqliteDocumentStore } from '../common/adapters/sqlite/document-store.ts'
import { type Billing, type BillingRuntime, billingOn } from './billing.ts'
import type { BillingConfig } from './config.ts'

export type { Billing, BillingRuntime } from './billing.ts'

/** Billing on its own database, which it opens in the background; disposing it closes both. */
export function createBilling(config: BillingConfig, runtime: BillingRuntime): Billing {
  const { dataDir, mongodb } = config
  const { log } = runtime
  const open = () =>
    mongodb ? openMongoDocumentStore({ ...mongodb, log }) : openSqliteDocumentStore({ file: join(dataDir, 'billing.sqlite'), log })
  return billingOn(open, config, runtime)
}
