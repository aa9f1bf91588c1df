import type { CollectionSpec, DocumentStore, StoredDocument, StoredValue } from '../../ports/document-store.ts'

/** A stored document of any version. */
export type AnyDocument = { readonly _id: string; readonly [field: string]: StoredValue }

/** The step from one version of a kind to the next. */
export interface Migration {
  /**
   * True: programs of the earlier version can read what it makes, and those of the later one can read what the earlier
   * ones write. So on MongoDB both run during the migration and after it. Otherwise the later one waits until the
   * earlier ones have ended.
   */
  readonly isAdditive: boolean
  /**
   * Makes the new shape from the earlier one. A document that has it already stays as it is: a migration may be
   * interrupted, and begin again.
   */
  convert(document: AnyDocument): AnyDocument
}

/** The documents of one collection. Their version is 1 plus the number of migrations. */
export interface Kind {
  readonly name: string
  readonly migrations: readonly Migration[]
}

/**
 * Gives the kinds of the collections that `declare` declares.
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
      // A declaration only passes the collection on; nothing here uses it.
      return undefined as unknown as ReturnType<typeof this.collection<T>>
    },
  })
  const unknown = Object.keys(migrations).find((name) => !names.has(name))
  if (unknown !== undefined) throw new TypeError(`there are migrations of ${unknown}, which no store declares`)
  return [...names].map((name) => ({ name, migrations: migrations[name] ?? [] }))
}

export function currentVersion({ migrations }: Kind): number {
  return 1 + migrations.length
}

/** Gives a document of the version `from` in the current one of its kind. */
export function migrated(document: AnyDocument, { migrations }: Kind, from: number): AnyDocument {
  return migrations.slice(from - 1).reduce((before, { convert }) => convert(before), document)
}
