import type { CollectionSpec, DocumentStore, StoredDocument } from '../common/ports/document-store.ts'

/** In billing's store while an import of all data fills the stores: no role serves without billing. */
const IMPORTS: CollectionSpec = { name: 'imports', indexes: [] }
const ID = 'installation'

interface ImportMark extends StoredDocument {
  /** The id of the archive. */
  readonly archive: string
}

type Documents = Pick<DocumentStore, 'collection'>

/** The archive whose import has not ended; null: there is none. */
export async function findHalfImported(billing: Documents): Promise<string | null> {
  return (await billing.collection<ImportMark>(IMPORTS).findOne({ _id: ID }))?.archive ?? null
}

/** Says why nothing may use the stores; null: an import into them has ended, or there was none. */
export async function explainHalfImported(billing: Documents): Promise<string | null> {
  if ((await findHalfImported(billing)) === null) return null
  return 'An import into these stores has not ended. Run the same `kis import` again: it continues. To give up, delete the data folder, or the databases and indices.'
}

/** Marks the stores. Repeatable. */
export async function startImport(billing: Documents, archive: string): Promise<void> {
  await billing.collection<ImportMark>(IMPORTS).insertMissing([{ _id: ID, archive }])
}

/** Lets the service start on the stores. */
export async function endImport(billing: Documents): Promise<void> {
  await billing.collection<ImportMark>(IMPORTS).findOneAndDelete({ _id: ID })
}
