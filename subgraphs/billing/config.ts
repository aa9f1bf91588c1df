import { join } from 'node:path'
import { type MongoDatabase, mongoDatabaseOf } from '../common/documents/mongodb-url.ts'
import { parseEgressAllow } from '../common/egress/egress-address.ts'
import type { Plan } from '../common/identity/principal.ts'
import { ConfigError } from '../common/process/config-error.ts'
import { parseUsd } from '../common/usd.ts'
import { isApiKey } from './accounts/domain/api-key.ts'
import { MAX_NANO_USD } from './ledger/domain/money.ts'

/** What billing reads from the environment. */
export interface BillingSettings {
  /** Folder of the SQLite file. */
  readonly dataDir: string
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

/** @throws {ConfigError} names every variable that is wrong. */
export function readBillingConfig(env: Readonly<Record<string, string | undefined>>): BillingSettings {
  const problems: string[] = []
  const bootstrapApiKey = env.KIS_BOOTSTRAP_API_KEY || null
  if (bootstrapApiKey !== null && !isApiKey(bootstrapApiKey))
    problems.push('KIS_BOOTSTRAP_API_KEY is not a key: `kis_live_` and 36 letters or digits, of which the last six are a checksum')
  const credit = creditOf(env.KIS_BOOTSTRAP_CREDIT_USD || '100')
  if (credit === undefined) problems.push('KIS_BOOTSTRAP_CREDIT_USD is not an amount: 0 to 9000000 with at most 9 decimal places')
  const mongodb = mongoDatabaseOf(env.KIS_MONGODB_URL, 'billing', problems)
  const egressAllowed = parseEgressAllow(env.KIS_EGRESS_ALLOW, problems)
  const retryBackoffMs = Number(env.KIS_RETRY_BACKOFF_MS ?? 1_000)
  if (!Number.isSafeInteger(retryBackoffMs) || retryBackoffMs < 1)
    problems.push('KIS_RETRY_BACKOFF_MS must be a whole number of milliseconds from 1')
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    dataDir: env.KIS_DATA_DIR || './data',
    mongodb,
    bootstrapApiKey,
    bootstrapCreditNanoUsd: credit!,
    egressAllowed,
    retryBackoffMs,
  }
}

export const billingFiles = (dataDir: string) => ({ documents: join(dataDir, 'billing.sqlite') })

function creditOf(text: string): bigint | undefined {
  try {
    const amount = parseUsd(text)
    return amount >= 0n && amount <= MAX_NANO_USD ? amount : undefined
  } catch {
    return undefined
  }
}
