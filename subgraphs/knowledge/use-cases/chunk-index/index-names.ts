import { indexNamesOf } from '../../domain/index-name.ts'
import type { Deps } from '../deps.ts'

/** The number of times that a read begins again because the collection got another index meanwhile. */
const MAX_TRIES = 3

/** Returns the names of the indices that have chunks of a collection: that of searches first. */
export async function findIndexNames({ store }: Pick<Deps, 'store'>, collectionId: string): Promise<readonly string[]> {
  const collection = await store.collections.findOne({ _id: collectionId })
  return collection ? indexNamesOf(collection) : [collectionId]
}

/** Reads from the index of a collection. Reads again if another index has taken its place meanwhile. */
export async function readIndex<T>(deps: Pick<Deps, 'store'>, collectionId: string, read: (indexName: string) => Promise<T>): Promise<T> {
  const name = async () => (await findIndexNames(deps, collectionId))[0]!
  for (let tries = 1, before = await name(); ; tries++) {
    const found = await read(before)
    const now = await name()
    if (now === before || tries === MAX_TRIES) return found
    before = now
  }
}

/** Deletes a document's chunks from all indices of its collection: all of them, or all but those of one generation. */
export async function deleteFromIndices(
  deps: Pick<Deps, 'store' | 'index'>,
  { collectionId, documentId }: { readonly collectionId: string; readonly documentId: string },
  exceptGeneration?: string,
): Promise<void> {
  for (const name of await findIndexNames(deps, collectionId)) await deps.index.deleteDocument(name, documentId, exceptGeneration)
}
