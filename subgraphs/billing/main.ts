import { collectKinds } from '../common/adapters/documents/kinds.ts'
import type { DataFolder } from '../common/adapters/sqlite/data-folder.ts'
import { openSqliteDocumentStore } from '../common/adapters/sqlite/documents/document-store.ts'
import { FileChecks } from '../common/adapters/sqlite/full-checks.ts'
import { ServiceUnavailable } from '../common/errors.ts'
import type { Installation } from '../common/identity/installation.ts'
import type { SharedClock } from '../common/link/shared-clock.ts'
import { type Billing, type BillingRuntime, billingOn } from './billing.ts'
import { type BillingConfig, billingFiles } from './config.ts'
import { openCollections } from './use-cases/tables.ts'

export type { Billing, BillingRuntime } from './billing.ts'

const PING_TIMEOUT_MS = 2_000

export interface BillingStart extends Omit<BillingRuntime, 'installationId'> {
  readonly clock: SharedClock
  readonly folder: DataFolder
  readonly secretFingerprint: string
}

/**
 * Billing on its own database, which it opens in the background. Disposing it closes both. With MongoDB it follows that
 * server's clock.
 */
export function createBilling(config: BillingConfig, { folder, secretFingerprint, ...runtime }: BillingStart): Billing {
  const { dataDirectory, mongodb } = config
  const { clock, ids, log } = runtime
  const file = billingFiles(dataDirectory).documents
  const kinds = collectKinds(openCollections)
  let installation: Installation | undefined
  const open = async () => {
    if (!mongodb) {
      const { installation: own } = await folder.look()
      const store = await openSqliteDocumentStore({ file, installation: own, kinds, log })
      installation = own
      return store
    }
    const claim = { id: null, newId: () => ids('inst'), secretFingerprint } as const
    const { openClaimedMongoStore } = await import('../common/adapters/mongodb/claimed/claimed-store.ts')
    const { store, installation: own } = await openClaimedMongoStore(mongodb, async () => claim, { kinds, log })
    installation = own
    await clock.follow(() => store.ping(AbortSignal.timeout(PING_TIMEOUT_MS)))
    return store
  }
  const installationId = async () => {
    if (!installation) throw new ServiceUnavailable('The store of billing')
    return installation.id
  }
  // A data folder belongs to one process.
  return billingOn(open, config, {
    ...runtime,
    installationId,
    isExclusive: mongodb === null,
    files: new FileChecks(mongodb ? [] : [file]),
  })
}
