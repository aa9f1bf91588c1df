import type { CollectionFacts } from '../collections.ts'

export function EvaluationTab({ collection }: { readonly collection: CollectionFacts }) {
  return <p>{collection.name}</p>
}
