import { openOwnDocuments } from '../common/adapters/own-documents.ts'
import type { DataFolder } from '../common/adapters/sqlite/data-folder.ts'
import { FileChecks } from '../common/adapters/sqlite/full-checks.ts'
import { explainHalfImported } from '../common/documents/import-mark.ts'
import { ServiceUnavailable } from '../common/errors.ts'
import { fingerprintsOf } from '../common/identity/accepted-secrets.ts'
import { type Installation, ownInstallation } from '../common/identity/installation.ts'
import type { SharedClock } from '../common/link/shared-clock.ts'
import { Unfit } from '../common/process/opening.ts'
import { LateMark } from '../common/rotation/secret-mark.ts'
import { type Billing, type BillingRuntime, billingOn } from './billing.ts'
import { type BillingConfig, billingFiles } from './config.ts'
import { BILLING_KINDS } from './migrations.ts'

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
  const fingerprints = fingerprintsOf(config.peppers)
  let installation: Installation | undefined
  const secretMark = new LateMark()
  const open = async () => {
    const own = async () => (await folder.look()).installation
    const claim = { ...ownInstallation('', fingerprints), id: null, newId: () => ids('inst') } as const
    const { store, ...opened } = await openOwnDocuments({ mongodb, file, own, claim, kinds: BILLING_KINDS, isOfService: true, log })
    const problem = await explainHalfImported(store)
    if (problem) throw mongodb ? new Unfit([problem]) : new Error(problem)
    secretMark.set(opened.secretMark)
    installation = opened.installation
    if (mongodb) await clock.follow(() => store.ping(AbortSignal.timeout(PING_TIMEOUT_MS)))
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
