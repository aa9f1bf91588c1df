/** What an export and an import of an organization need of billing, over an open store. */

export { accountsOf } from './use-cases/portable/export-accounts.ts'
export { type ImportedRules, importAccounts } from './use-cases/portable/import-accounts.ts'
export { type Collections as AccountCollections, openCollections as openAccountCollections } from './use-cases/tables.ts'
