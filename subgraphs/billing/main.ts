import { collectKinds } from '../common/adapters/documents/kinds.ts'
import type { DataFolder } from '../common/adapters/sqlite/data-folder.ts'
import { openSqliteDocumentStore } from '../common/adapters/sqlite/documents/document-store.ts'
import { FileChecks } from '../common/adapters/sqlite/full-checks.ts'
import { secretMarkOf } from '../common/adapters/sqlite/store-mark.ts'
import { explainHalfImported } from '../common/documents/import-mark.ts'
import { ServiceUnavailable } from '../common/errors.ts'
import { fingerprintsOf } from '../common/identity/accepted-secrets.ts'
import { type Installation, ownInstallation } from '../common/identity/installation.ts'
import type { SharedClock } from '../common/link/shared-clock.ts'
import { Unfit } from '../common/process/opening.ts'
import { LateMark } from '../common/rotation/secret-mark.ts'
import { type Billing, type BillingRuntime, billingOn } from './billing.ts'
import { type BillingConfig, billingFiles } from './config.ts'
import { openCollections } from './use-cases/tables.ts'

export type { Billing, BillingRuntime } from './billing.ts'

const PING_TIMEOUT_MS = 2_000

export interface BillingStart extends Omit<BillingRuntime, 'installationId' | 'secretMark'> {
  readonly clock: SharedClock
  readonly folder: DataFolder
}

/**
 * Billing on its own database, which it opens in the background. Disposing it closes both. With MongoDB it follows that
 * server's clock.
 */
export function createBilling(config: BillingConfig, { folder, ...runtime }: BillingStart): Billing {
  const { dataDirectory, mongodb } = config
  const { clock, ids, log } = runtime
  const file = billingFiles(dataDirectory).documents
  const kinds = collectKinds(openCollections)
  const fingerprints = fingerprintsOf(config.peppers)
  let installation: Installation | undefined
  const secretMark = new LateMark()
  const open = async () => {
    if (!mongodb) {
      const { installation: own } = await folder.look()
      const store = await openSqliteDocumentStore({ file, installation: own, kinds, log })
      const problem = await explainHalfImported(store)
      if (problem) throw new Error(problem)
      secretMark.set(secretMarkOf(file, own))
      installation = own
      return store
    }
    const claim = { ...ownInstallation('', fingerprints), id: null, newId: () => ids('inst') } as const
    const { openClaimedMongoStore } = await import('../common/adapters/mongodb/claimed/claimed-store.ts')
    const claimed = await openClaimedMongoStore(mongodb, async () => claim, { kinds, log })
    const { store } = claimed
    const problem = await explainHalfImported(store)
    if (problem) throw new Unfit([problem])
    secretMark.set(claimed.secretMark(ownInstallation(claimed.installation.id, fingerprints)))
    installation = claimed.installation
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
    secretMark,
    isExclusive: mongodb === null,
    files: new FileChecks(mongodb ? [] : [file]),
  })
}
