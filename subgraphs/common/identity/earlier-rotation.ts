import type { DocumentCollection, IndexSpec } from '../ports/document-store.ts'
import { HALF_ROTATED_EARLIER } from './secret-file.ts'

/** Version 0.2 labelled records with the fingerprint of the secret that they depend on. */
export const LABELS: IndexSpec = { fields: ['secretFingerprint'], sparse: true }

/** @throws {Error} version 0.2 was rotating the secret: a record is labelled with another one */
export async function requireOneSecret(
  collections: readonly Pick<DocumentCollection<never>, 'countDocuments'>[],
  secretFingerprint: string,
): Promise<void> {
  for (const collection of collections)
    for (const another of [{ $lt: secretFingerprint }, { $gt: secretFingerprint }])
      if ((await collection.countDocuments({ secretFingerprint: another }, { limit: 1 })) > 0) throw new Error(HALF_ROTATED_EARLIER)
}
