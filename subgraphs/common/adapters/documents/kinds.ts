import type { CollectionSpec, DocumentStore, StoredDocument, StoredValue } from '../../ports/document-store.ts'

/** A stored document of any version. */
export type AnyDocument = { readonly _id: string; readonly [field: string]: StoredValue }

/** The step from one version of a kind to the next. */
export interface Migration {
  /**
   * `expand` adds what programs of the earlier version ignore, so on MongoDB it runs while they serve. `contract` takes
   * away what they read, so it waits until none is left. A field gets another name in both: the first adds the new one,
   * and programs write both until the second has removed the old one.
   */
  readonly phase: 'expand' | 'contract'
  /**
   * Makes the new shape from what programs of the earlier version write. A document that has it already stays as it is:
   * on MongoDB a document may be converted more than once.
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

/** Says why this program cannot use a store with documents of a newer version; null: it can. */
export function newerKind(store: string, kind: Kind, version: number): string | null {
  if (version <= currentVersion(kind)) return null
  return `${store} has documents of the kind ${kind.name} in version ${version}; this program knows ${currentVersion(kind)}. Start a newer version of the program.`
}

/** Gives a document of the version `from` in the version `to`, or in the current one of its kind. */
export function migrated(document: AnyDocument, { migrations }: Kind, from: number, to?: number): AnyDocument {
  return migrations.slice(from - 1, to && to - 1).reduce((before, { convert }) => convert(before), document)
}
