import type { Principal } from '../../common/identity/principal.ts'

/** Who accepted work belongs to: a GraphQL client of billing stands behind it. */
export interface Accounts {
  /** The key's principal as it is now, also when the key was revoked since; null when the organization is gone. */
  principalOf(organizationId: string, apiKeyId: string, signal: AbortSignal): Promise<Principal | null>
}
