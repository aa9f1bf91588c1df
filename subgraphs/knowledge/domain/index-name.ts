import type { CollectionRecord } from './records.ts'

/**
 * A collection of the chunk index has the knowledge collection's ID as its name. After a change of the embedding model,
 * a tag follows the ID. Only the collection's record says which name searches use.
 */

/** Returns the name of the index that serves searches of a collection. */
export function indexNameOf({ _id, indexName }: Pick<CollectionRecord, '_id' | 'indexName'>): string {
  return indexName ?? _id
}

/**
 * Returns the names of all indices with the collection's chunks: the one that serves searches, and one that is being
 * filled.
 */
export function indexNamesOf(collection: Pick<CollectionRecord, '_id' | 'indexName' | 'reembedding'>): readonly string[] {
  const { reembedding } = collection
  return [indexNameOf(collection), ...(reembedding ? [reembedding.indexName] : [])]
}

/** Returns the name of the index that a re-embedding of a collection fills. */
export function newIndexName(collectionId: string, reembeddingId: string): string {
  return `${collectionId}_${reembeddingId.split('_')[1]}`
}

/** Returns the ID of the collection to which an index belongs. */
export function collectionIdOf(indexName: string): string {
  return indexName.split('_').slice(0, 2).join('_')
}

/** Returns the part of the name after the collection's ID. Empty: the first index of the collection. */
export function indexTagOf(indexName: string): string {
  return indexName.split('_')[2] ?? ''
}
