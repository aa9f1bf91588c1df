/** Number of changes of a collection, by kind. */
export interface CollectionChanges {
  /** Documents that became searchable for the first time. */
  readonly added: number
  /** New versions of documents. */
  readonly replaced: number
  readonly deleted: number
  /** Changes of documents' names or metadata. */
  readonly updated: number
  /** Changes of collection settings that affect search. */
  readonly settings: number
}

export const NO_CHANGES: CollectionChanges = { added: 0, replaced: 0, deleted: 0, updated: 0, settings: 0 }

/** Returns the total number of changes. */
export function countChanges({ added, replaced, deleted, updated, settings }: CollectionChanges): number {
  return added + replaced + deleted + updated + settings
}
