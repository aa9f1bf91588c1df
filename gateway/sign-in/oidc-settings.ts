/** Roles of members, as issuers and the configuration write them. The ones that may do most come first. */
export const ROLES = ['owner', 'admin', 'editor', 'viewer', 'billing'] as const
export type Role = (typeof ROLES)[number]

/** How people sign in by OpenID Connect. */
export interface OidcSettings {
  /** As in the claim `iss`. */
  readonly issuer: string
  readonly clientId: string
  /** Null: the client is public, and PKCE alone protects the code. */
  readonly clientSecret: string | null
  /** What the button of the sign-in page calls it. */
  readonly name: string
  /** What to ask the issuer for: `openid` and others. */
  readonly scopes: string
  /** The claim with the organizations that the issuer puts people into; null: it puts them into none. */
  readonly organizationClaim: string | null
  /** The claim with the roles of people; null: those whom the issuer puts into an organization are viewers. */
  readonly roleClaim: string | null
  /** The roles that values of that claim stand for, such as the names of groups. Names of roles stand for themselves. */
  readonly roles: ReadonlyMap<string, Role>
  /** Where people reach the service, without a slash at its end. */
  readonly publicUrl: string
}
