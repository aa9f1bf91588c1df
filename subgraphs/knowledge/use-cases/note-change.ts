import type { CollectionChanges } from '../domain/evaluation/changes.ts'
import type { Deps } from './deps.ts'

/** Counts a change that publishes no event, for the collection's watch, if it has one. */
export async function noteChange(
  { store }: Pick<Deps, 'store'>,
  collectionId: string,
  change: keyof Pick<CollectionChanges, 'updated' | 'settings'>,
): Promise<void> {
  await store.evaluationWatches.findOneAndUpdate({ _id: collectionId }, { $inc: { [`changes.${change}`]: 1 } })
}
