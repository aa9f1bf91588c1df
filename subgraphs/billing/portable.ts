import type { ArchiveSink, ArchiveTakers } from '../common/portable/organization-archive.ts'
import type { Clock } from '../common/process/clock.ts'
import type { IdSource } from '../common/process/ids.ts'
import { decideFirst } from './accounts/use-cases/bootstrap.ts'
import {
  beginRotation,
  endRotation,
  openPepper,
  type PepperDeps,
  requireRotatable,
  requireSecret,
} from './accounts/use-cases/key-pepper.ts'
import { exportAccounts, findExported } from './use-cases/portable/export-accounts.ts'
import {
  accountTakers,
  findImportState,
  finishImport,
  type ImportDeps,
  type ImportedAs,
  type ImportedRules,
  type ImportState,
} from './use-cases/portable/import-accounts.ts'
import { type Collections, type Organization, openCollections } from './use-cases/tables.ts'
import { resealEndpoints } from './webhooks/use-cases/endpoint-secrets.ts'

/** What commands need of billing, over an open store. */

export {
  beginRotation,
  type Collections as AccountCollections,
  endRotation,
  type ImportedRules,
  openCollections as openAccountCollections,
  requireRotatable,
  requireSecret,
  resealEndpoints,
}

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

/**
 * Finds the organization that is to be exported; `write` writes its accounts.
 * @throws {Error} it cannot be exported
 */
export async function accountsOf(
  collections: Collections,
  id: string,
): Promise<{ readonly organization: Organization; write(sink: ArchiveSink): Promise<void> }> {
  const organization = await findExported(collections, id)
  return { organization, write: (sink) => exportAccounts(collections, organization, sink) }
}

/** One import, as billing sees it. */
export interface AccountImport {
  readonly takers: ArchiveTakers
  state(): Promise<ImportState>
  finish(pepper: Uint8Array): Promise<string | null>
}

export function importAccounts(deps: ImportDeps, as: ImportedAs): AccountImport {
  return {
    takers: accountTakers(deps, as),
    state: () => findImportState(deps, as),
    finish: (pepper) => finishImport({ ...deps, pepper }, as),
  }
}
