import { join } from 'node:path'
import type { MongoDatabase } from '../common/documents/mongodb-url.ts'
import type { Plan } from '../common/identity/principal.ts'

/** What an operator can set of billing. */
export interface BillingSettings {
  /** Folder of the SQLite file. */
  readonly dataDirectory: string
  /** Where the documents are instead, or null. */
  readonly mongodb: MongoDatabase | null
  /** The operator's key on the first start, or null: then one is made. */
  readonly bootstrapApiKey: string | null
  /** Credit of the first organization. */
  readonly bootstrapCreditNanoUsd: bigint
  /** `host:port`s that webhooks may go to although they are not public, or by http. */
  readonly egressAllowed: ReadonlySet<string>
  /** The unit in which webhooks that failed wait. Default 1,000. */
  readonly retryBackoffMs: number
}

/** With what the whole installation shares. */
export interface BillingConfig extends BillingSettings {
  /** Derived from the installation's secret; with another one no key works. */
  readonly pepper: Uint8Array
  /** The catalog's plans; `self-hosted` is among them. */
  readonly plans: readonly Plan[]
}

export const billingFiles = (dataDirectory: string) => ({ documents: join(dataDirectory, 'billing.sqlite') })
