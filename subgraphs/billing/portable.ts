import type { ArchiveSink, ArchiveTakers } from '../common/portable/organization-archive.ts'
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

/** What an export and an import of an organization need of billing, over an open store. */

export { type Collections as AccountCollections, type ImportedRules, openCollections as openAccountCollections }

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
  finish(): Promise<string | null>
}

export function importAccounts(deps: ImportDeps, as: ImportedAs): AccountImport {
  return {
    takers: accountTakers(deps, as),
    state: () => findImportState(deps, as),
    finish: () => finishImport(deps, as),
  }
}
