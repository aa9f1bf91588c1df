import { join } from 'node:path'
import { openMongoDocumentStore } from '../common/adapters/mongodb/document-store.ts'
import { openSqliteDocumentStore } from '../common/adapters/sqlite/document-store.ts'
import { type Billing, type BillingRuntime, billingOn } from './billing.ts'
import type { BillingConfig } from './config.ts'

export type { Billing, BillingRuntime } from './billing.ts'

/** Starts billing on its own database; disposing it closes both. */
export async function createBilling(config: BillingConfig, runtime: BillingRuntime): Promise<Billing> {
  const { dataDir, mongodb } = config
  const { log } = runtime
  const store = mongodb
    ? await openMongoDocumentStore({ ...mongodb, log })
    : await openSqliteDocumentStore({ file: join(dataDir, 'billing.sqlite'), log })
  try {
    return await billingOn(store, config, runtime)
  } catch (error) {
    await store[Symbol.asyncDispose]()
    throw error
  }
}
