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

export interface OwnDocumentsOptions {
  /** Null: the documents are in `file`. */
  readonly mongodb: MongoDatabase | null
  readonly file: string
  /** The installation. A server is checked before it is asked for, so that its problems come first. */
  own(): Promise<Installation>
  /** Default: as `own`. For the database that names the installation. */
  readonly claim?: Claim | undefined
  readonly kinds: readonly Kind[]
  /** Looks at the documents before they are migrated, and may refuse them. `madeWith`: as in `OwnMark`. */
  readonly inspect?: ((documents: Pick<DocumentStore, 'collection'>, madeWith: string | null) => Promise<void>) | undefined
  /** The log says where documents are, and warns of a MongoDB server that is alone. Default: it does not. */
  readonly isOfService?: boolean | undefined
  readonly log: Log
}

/** What the mark of a store says. */
export interface OwnMark {
  readonly installation: Installation
  /** The fingerprint of the secret with which version 0.2 made the store; null: a later one did, or 0.1. */
  readonly madeWith: string | null
}

/** The documents of an installation. */
export type OwnDocuments = OwnMark & { readonly store: DocumentStore }

/**
 * Opens the documents of this installation, and migrates them.
 * @throws {Error} they are of another installation, damaged, or of a newer version
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
  return { store, installation, madeWith: markOfFile(file).mark?.madeWith ?? null }
}

async function inspectFile(file: string, inspect: NonNullable<OwnDocumentsOptions['inspect']>): Promise<void> {
  if (!statSync(file, { throwIfNoEntry: false })?.size) return
  try {
    using database = new DatabaseSync(file, { readOnly: true })
    await inspect(readOnlyDocuments(database), markOfFile(file).mark?.madeWith ?? null)
  } catch (error) {
    // Before the first write of a first start.
    if (!(error instanceof Error && /no such table/.test(error.message))) throw toOpeningFailure(file, error)
  }
}
