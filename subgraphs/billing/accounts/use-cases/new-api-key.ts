import { randomBytes } from 'node:crypto'
import type { Grants } from '../../ledger/domain/grants.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import { apiKeyFrom, digestKey } from '../domain/api-key.ts'

/** A key with its secret, which is never shown again. */
export interface ApiKeyWithSecret {
  readonly apiKey: ApiKey
  readonly key: string
}

interface NewApiKey extends Grants {
  readonly organizationId: string
  readonly name: string
  readonly ancestors?: readonly string[]
}

/** Creates the record. The caller stores it. */
export function newApiKey({ ids, clock, pepper }: BillingDeps, { scopes, modelAllowlist, ...rest }: NewApiKey): ApiKeyWithSecret {
  const { key, ...secret } = newSecret(pepper())
  return { key, apiKey: { _id: ids('key'), ...rest, scopes, modelAllowlist, ...secret, revokedAt: null, createdAt: clock.now() } }
}

/** Creates a secret, and the digest to store. */
export function newSecret(pepper: Uint8Array, bytes: Uint8Array = randomBytes(32)) {
  const key = apiKeyFrom(bytes)
  return { key, ...toStoredKey(key, pepper) }
}

/** Returns what is stored of a key: its digest, and its last four characters. */
export function toStoredKey(key: string, pepper: Uint8Array) {
  return { digest: digestKey(key, pepper), last4: key.slice(-4) }
}
