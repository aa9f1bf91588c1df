import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { MongoDatabase } from '../documents/mongodb-url.ts'
import type { Installation } from '../identity/installation.ts'
import type { DocumentStore } from '../ports/document-store.ts'
import type { Log } from '../process/log.ts'
import type { Kind } from './documents/kinds.ts'
import type { Claim } from './mongodb/store-mark.ts'
import { toOpeningFailure } from './sqlite/database.ts'
import { openSqliteDocumentStore } from './sqlite/documents/document-store.ts'
import { readOnlyDocuments } from './sqlite/documents/read-only-documents.ts'
import { markOfFile } from './sqlite/store-mark.ts'

/** The store of an installation, and the checks of its first use. */
export interface OwnDocumentsOptions {
  /** Null: the documents are in `file`. */
  readonly mongodb: MongoDatabase | null
  readonly file: string
  /** Returns the installation. A server is checked before this call, so that its problems are reported first. */
  own(): Promise<Installation>
  /** Claims the database that names the installation. Default: as `own`. */
  readonly claim?: Claim | undefined
  readonly kinds: readonly Kind[]
  /** Inspects the documents before they are migrated, and may refuse them. `secretFingerprint`: as in `OwnMark`. */
  readonly inspect?: ((documents: Pick<DocumentStore, 'collection'>, secretFingerprint: string | null) => Promise<void>) | undefined
  /** True: the log reports where documents are stored, and warns of a standalone MongoDB server. Default: false. */
  readonly isOfService?: boolean | undefined
  readonly log: Log
}

/** The mark of a store. */
export interface OwnMark {
  readonly installation: Installation
  /** The fingerprint of the secret with which version 0.2 created the store; null: another version did. */
  readonly secretFingerprint: string | null
}

/** The documents of an installation. */
export type OwnDocuments = OwnMark & { readonly store: DocumentStore }

/**
 * Opens the documents of this installation, and migrates them.
 * @throws {Error} they are of another installation, corrupted, or of a newer version
 * @throws {Unfit} the storage fails or the server cannot serve, or other processes must finish first
 */
export async function openOwnDocuments({
  mongodb,
  file,
  own,
  claim,
  kinds,
  inspect,
  isOfService,
  log,
}: OwnDocumentsOptions): Promise<OwnDocuments> {
  if (mongodb) {
    const { openOwnMongoStore } = await import('./mongodb/own-store.ts')
    return openOwnMongoStore(mongodb, async () => claim ?? own(), { kinds, inspect, isOfService, log })
  }
  const installation = await own()
  if (inspect) await inspectFile(file, inspect)
  const store = await openSqliteDocumentStore({ file, installation, kinds, log })
  return { store, installation, secretFingerprint: markOfFile(file).mark?.secretFingerprint ?? null }
}

async function inspectFile(file: string, inspect: NonNullable<OwnDocumentsOptions['inspect']>): Promise<void> {
  if (!statSync(file, { throwIfNoEntry: false })?.size) return
  try {
    using database = new DatabaseSync(file, { readOnly: true })
    await inspect(readOnlyDocuments(database), markOfFile(file).mark?.secretFingerprint ?? null)
  } catch (error) {
    // Before the first write of a first start, the table does not exist.
    if (!(error instanceof Error && /no such table/.test(error.message))) throw toOpeningFailure(file, error)
  }
}
