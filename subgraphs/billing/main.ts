import { type OwnMark, openOwnDocuments } from '../common/adapters/own-documents.ts'
import type { DataFolder } from '../common/adapters/sqlite/data-folder.ts'
import { FileChecks } from '../common/adapters/sqlite/full-checks.ts'
import { ServiceUnavailable } from '../common/errors.ts'
import type { SharedClock } from '../common/link/shared-clock.ts'
import { Unfit } from '../common/process/opening.ts'
import { requireSecret } from './accounts/use-cases/key-pepper.ts'
import { type Billing, type BillingRuntime, billingOn } from './billing.ts'
import { type BillingConfig, billingFiles } from './config.ts'
import { explainHalfImported } from './import-mark.ts'
import { BILLING_KINDS } from './migrations.ts'

export type { Billing, BillingRuntime } from './billing.ts'

const PING_TIMEOUT_MS = 2_000

export interface BillingStart extends Omit<BillingRuntime, 'mark'> {
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
  let opened: OwnMark | undefined
  const open = async () => {
    const own = async () => (await folder.inspect()).installation
    const inspect = requireSecret(config.secret)
    const claim = { id: null, newId: () => ids('inst') } as const
    const { store, ...mark } = await openOwnDocuments({ mongodb, file, own, claim, kinds: BILLING_KINDS, inspect, isOfService: true, log })
    const problem = await explainHalfImported(store)
    if (problem) throw mongodb ? new Unfit([problem]) : new Error(problem)
    opened = mark
    if (mongodb) await clock.follow(() => store.ping(AbortSignal.timeout(PING_TIMEOUT_MS)))
    return store
  }
  const mark = () => {
    if (!opened) throw new ServiceUnavailable('The store of billing')
    return opened
  }
  // A data folder belongs to one process.
  return billingOn(open, config, {
    ...runtime,
    mark,
    isExclusive: mongodb === null,
    files: new FileChecks(mongodb ? [] : [file]),
  })
}
