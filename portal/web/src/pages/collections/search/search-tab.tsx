import type { CollectionFacts } from '../collections.ts'

export function SearchTab({ collection }: { readonly collection: CollectionFacts }) {
  return <p>{collection.name}</p>
}
