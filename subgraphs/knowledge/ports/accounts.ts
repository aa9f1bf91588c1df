import type { Principal } from '../../common/identity/principal.ts'

/** Finds the owner of accepted work. A GraphQL client of billing implements it. */
export interface Accounts {
  /** Gives the key's current principal, even if the key was revoked; null when the organization no longer exists. */
  findPrincipal(organizationId: string, apiKeyId: string, signal: AbortSignal): Promise<Principal | null>
}
