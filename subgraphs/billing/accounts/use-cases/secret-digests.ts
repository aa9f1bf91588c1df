import type { DerivedKey, DerivedKeys } from '../../../common/identity/accepted-secrets.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import { digestKey } from '../domain/api-key.ts'

/** The digests of a text with each accepted pepper. */
export type Digests = readonly string[]

/**
 * In the order of looking them up. The current one is the usual one. Others move records from the previous one to the
 * current one, so the current one comes again: a record that moved in between would be missed.
 */
export function digestsOf(text: string, { current, next, previous }: DerivedKeys): Digests {
  const digest = ({ key }: DerivedKey) => digestKey(text, key)
  return [digest(current), ...(previous ? [digest(previous), digest(current)] : []), ...(next ? [digest(next)] : [])]
}

/** The record with one of the digests. */
export async function findByDigests<T extends { readonly _id: string; readonly digest: string }>(
  collection: DocumentCollection<T>,
  digests: Digests,
): Promise<T | null> {
  for (const digest of digests) {
    const found = await collection.findOne({ digest })
    if (found) return found
  }
  return null
}

/** Gives a key whose text is known a digest of the current secret. Whatever keeps it from that, the key still works. */
export async function moveDigest(
  { collections, peppers }: Pick<BillingDeps, 'collections' | 'peppers'>,
  key: ApiKey,
  text: string,
): Promise<void> {
  const { current, previous } = peppers
  if (!previous || key.digest !== digestKey(text, previous.key)) return
  const { secretFingerprint } = current
  const moved = { digest: digestKey(text, current.key), secretFingerprint }
  await collections.apiKeys.findOneAndUpdate({ _id: key._id, digest: key.digest }, { $set: moved }).catch(() => undefined)
}
