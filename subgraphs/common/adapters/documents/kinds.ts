import type { CollectionSpec, DocumentStore, StoredDocument, StoredValue } from '../../ports/document-store.ts'

/** A document as it is stored, of whatever version. */
export type AnyDocument = { readonly _id: string; readonly [field: string]: StoredValue }

/**
 * Brings a document from one version of its kind to the next. It leaves one that has the new shape already as it is: on MongoDB a migration that
 * was interrupted begins anew.
 */
export type Migration = (document: AnyDocument) => AnyDocument

/** Documents of one collection. Their version is 1, and one more for each migration. */
export interface Kind {
  readonly name: string
  readonly migrations: readonly Migration[]
}

/** The kinds of a store, by what `declare` declares. @throws {TypeError} there are migrations of a collection that is not declared. */
export function kindsOf(
  declare: (store: Pick<DocumentStore, 'collection'>) => unknown,
  migrations: Readonly<Record<string, readonly Migration[]>> = {},
): readonly Kind[] {
  const names = new Set<string>()
  declare({
    collection<T extends StoredDocument>({ name }: CollectionSpec) {
      names.add(name)
      // A declaration only passes the collection on; nothing here uses it.
      return undefined as unknown as ReturnType<typeof this.collection<T>>
    },
  })
  const unknown = Object.keys(migrations).find((name) => !names.has(name))
  if (unknown !== undefined) throw new TypeError(`there are migrations of ${unknown}, which no store declares`)
  return [...names].map((name) => ({ name, migrations: migrations[name] ?? [] }))
}

export function versionOf({ migrations }: Kind): number {
  return 1 + migrations.length
}

/** What keeps this program from a store that has documents of a newer version; null: nothing. */
export function newerKind(store: string, kind: Kind, version: number): string | null {
  if (version <= versionOf(kind)) return null
  return `${store} has documents of the kind ${kind.name} in version ${version}; this program knows ${versionOf(kind)}. Start a newer version of the program.`
}

/** The document in the present version of its kind. */
export function migrated(document: AnyDocument, { migrations }: Kind, from: number): AnyDocument {
  return migrations.slice(from - 1).reduce((before, migrate) => migrate(before), document)
}
