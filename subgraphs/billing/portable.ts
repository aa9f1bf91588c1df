import type { Clock } from '../common/process/clock.ts'
import type { IdSource } from '../common/process/ids.ts'
import { decideFirst } from './accounts/use-cases/bootstrap.ts'
import { openPepper, type PepperDeps } from './accounts/use-cases/key-pepper.ts'
import type { Collections } from './use-cases/tables.ts'

/** What commands need of billing, over an open store. */

export { endRotation, requireRotatable, requireSecret, startRotation } from './accounts/use-cases/key-pepper.ts'
export { accountsOf } from './use-cases/portable/export-accounts.ts'
export { type ImportedRules, importAccounts } from './use-cases/portable/import-accounts.ts'
export { type Collections as AccountCollections, openCollections as openAccountCollections } from './use-cases/tables.ts'
export { resealEndpoints } from './webhooks/use-cases/endpoint-secrets.ts'

/**
 * Gives the key pepper of the installation, which may begin with this. Null: it has not begun, and nothing may be
 * written.
 * @throws {Error} as `openPepper`
 */
export async function pepperOf(
  deps: PepperDeps & { readonly collections: Collections; readonly clock: Clock; readonly ids: IdSource },
  creditNanoUsd: bigint,
  writesNothing: boolean,
): Promise<Uint8Array | null> {
  const first = writesNothing ? await deps.collections.bootstrap.findOne({ _id: 'operator' }) : await decideFirst(deps, { creditNanoUsd })
  return first && openPepper(deps, first)
}
