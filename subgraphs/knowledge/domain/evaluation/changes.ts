/** What has changed in a collection: how often each kind of change has happened. */
export interface CollectionChanges {
  /** Documents that searches find for the first time. */
  readonly added: number
  /** New versions of documents. */
  readonly replaced: number
  readonly deleted: number
  /** Changes of a document's name or metadata. */
  readonly updated: number
  /** Changes of the collection's settings that concern its search. */
  readonly settings: number
}

export const NO_CHANGES: CollectionChanges = { added: 0, replaced: 0, deleted: 0, updated: 0, settings: 0 }

export function countChanges({ added, replaced, deleted, updated, settings }: CollectionChanges): number {
  return added + replaced + deleted + updated + settings
}
