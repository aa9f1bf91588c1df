/** Roles of members, as issuers and the configuration write them, the most powerful first. */
export const ROLES = ['owner', 'admin', 'editor', 'viewer', 'billing'] as const
export type Role = (typeof ROLES)[number]

/** How people sign in by OpenID Connect. */
export interface OidcSettings {
  /** The value of the claim `iss`. */
  readonly issuer: string
  readonly clientId: string
  /** Null: the client is public, and PKCE alone protects the code. */
  readonly clientSecret: string | null
  /** The provider's name on the button of the sign-in page. */
  readonly name: string
  /** The scopes to request from the issuer: `openid` and others. */
  readonly scopes: string
  /** The claim with the organizations of a person; null: the issuer assigns none. */
  readonly organizationClaim: string | null
  /** The claim with the roles of a person; null: members that the issuer assigns are viewers. */
  readonly roleClaim: string | null
  /** Roles by the values of that claim, such as the names of groups. Names of roles stand for themselves. */
  readonly roles: ReadonlyMap<string, Role>
  /** The address at which people reach the service, without a trailing slash. */
  readonly publicUrl: string
}
