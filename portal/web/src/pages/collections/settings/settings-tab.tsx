import type { CollectionFacts } from '../collections.ts'

export function SettingsTab({ collection }: { readonly collection: CollectionFacts }) {
  return <p>{collection.name}</p>
}
