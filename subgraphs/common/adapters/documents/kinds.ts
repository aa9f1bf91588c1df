import type { CollectionSpec, DocumentStore, StoredDocument, StoredValue } from '../../ports/document-store.ts'

/** A stored document of any version. */
export type AnyDocument = { readonly _id: string; readonly [field: string]: StoredValue }

/** Converts documents of a kind from one version to the next. */
export interface Migration {
  /**
   * True: programs of the earlier version can read converted documents, and programs of the later version can read what
   * earlier ones write. On MongoDB both may then run during and after the migration. False: the later program waits
   * until the earlier ones have ended.
   */
  readonly isAdditive: boolean
  /**
   * Converts a document to the new shape. A document that already has this shape stays as it is: an interrupted
   * migration starts again.
   */
  convert(document: AnyDocument): AnyDocument
}

/** The documents of one collection. Their version is 1 plus the number of migrations. */
export interface Kind {
  readonly name: string
  readonly migrations: readonly Migration[]
}

/**
 * Returns the kinds of the collections that `declare` declares.
 * @throws {TypeError} there are migrations of an undeclared collection
 */
export function collectKinds(
  declare: (store: Pick<DocumentStore, 'collection'>) => unknown,
  migrations: Readonly<Record<string, readonly Migration[]>> = {},
): readonly Kind[] {
  const names = new Set<string>()
  declare({
    collection<T extends StoredDocument>({ name }: CollectionSpec) {
      names.add(name)
      // A declaration only passes the collection on; no code here uses it.
      return undefined as unknown as ReturnType<typeof this.collection<T>>
    },
  })
  const unknown = Object.keys(migrations).find((name) => !names.has(name))
  if (unknown !== undefined) throw new TypeError(`there are migrations of ${unknown}, which no store declares`)
  return [...names].map((name) => ({ name, migrations: migrations[name] ?? [] }))
}

/** Returns the version of a kind that this program writes. */
export function currentVersion({ migrations }: Kind): number {
  return 1 + migrations.length
}

/** Converts a document from version `from` to the current version of its kind. */
export function migrated(document: AnyDocument, { migrations }: Kind, from: number): AnyDocument {
  return migrations.slice(from - 1).reduce((before, { convert }) => convert(before), document)
}
