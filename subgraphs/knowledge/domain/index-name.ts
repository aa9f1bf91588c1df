import type { CollectionRecord } from './records.ts'

/**
 * The chunk index has a collection under a name: the collection's id and, since it got another embedding model, a tag
 * after it. Only the collection's record says which name searches use.
 */

/** Returns the name of the index that searches of a collection ask. */
export function indexNameOf({ _id, indexName }: Pick<CollectionRecord, '_id' | 'indexName'>): string {
  return indexName ?? _id
}

/** Returns the names of all indices that have the collection's chunks: that of searches, and one that is being filled. */
export function indexNamesOf(collection: Pick<CollectionRecord, '_id' | 'indexName' | 'reembedding'>): readonly string[] {
  const { reembedding } = collection
  return [indexNameOf(collection), ...(reembedding ? [reembedding.indexName] : [])]
}

/** Returns the name of the index that a re-embedding of a collection fills. */
export function newIndexName(collectionId: string, reembeddingId: string): string {
  return `${collectionId}_${reembeddingId.split('_')[1]}`
}

/** Returns the id of the collection to which an index belongs. */
export function collectionIdOf(indexName: string): string {
  return indexName.split('_').slice(0, 2).join('_')
}

/** Returns what the name has after the id of the collection. Empty: the first index of the collection. */
export function indexTagOf(indexName: string): string {
  return indexName.split('_')[2] ?? ''
}
