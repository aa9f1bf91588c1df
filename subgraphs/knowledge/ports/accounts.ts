import type { Principal } from '../../common/identity/principal.ts'

/** Finds the owner of accepted work. A GraphQL client of the billing service implements it. */
export interface Accounts {
  /**
   * Returns the key's current principal, even if the key is revoked. Returns null if the organization no longer exists.
   */
  findPrincipal(organizationId: string, apiKeyId: string, signal: AbortSignal): Promise<Principal | null>
}
