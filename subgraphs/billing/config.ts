import { join } from 'node:path'
import type { MongoDatabase } from '../common/documents/mongodb-url.ts'
import type { Plan } from '../common/identity/principal.ts'

/** Settings of billing that an operator can change. */
export interface BillingSettings {
  /** Folder of the SQLite file. */
  readonly dataDirectory: string
  /** The MongoDB database with the documents; null: they are in the SQLite file. */
  readonly mongodb: MongoDatabase | null
  /** The operator's key at the first start; null: the service generates one. */
  readonly bootstrapApiKey: string | null
  /** Credit of the first organization, in nano-USD. */
  readonly bootstrapCreditNanoUsd: bigint
  /** Entries `host:port` to which webhooks may go even if they are not public, or by http. */
  readonly egressAllowed: ReadonlySet<string>
  /** The URL at which people reach the service, for links of invitations; null: no links can be created. */
  readonly publicUrl: string | null
  /** The unit of the waits after failed webhooks, in milliseconds. Default: 1,000. */
  readonly retryBackoffMs: number
}

/** The settings of billing, with those that the whole installation shares. */
export interface BillingConfig extends BillingSettings {
  /** The installation's secret. With another one, no key works. */
  readonly secret: Uint8Array
  /** The catalog's plans, which include `self-hosted`. */
  readonly plans: readonly Plan[]
}

export const billingFiles = (dataDirectory: string) => ({ documents: join(dataDirectory, 'billing.sqlite') })
