/** The owner of a store. Each store contains its id, so that no process serves the data of another installation. */
export interface Installation {
  /** `inst_…` */
  readonly id: string
}

/**
 * Returns why a store with this mark cannot be used, in sentences for the operator; null: it belongs to this
 * installation.
 */
export function explainMismatch(store: string, mark: Installation, own: Installation): string | null {
  if (mark.id === own.id) return null
  return `${store} belongs to the installation ${mark.id}, and the other stores to ${own.id}. Restore the one that belongs here, from a backup of the same time.`
}
