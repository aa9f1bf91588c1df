import { type OidcSettings, ROLES, type Role } from './oidc-settings.ts'

/** Organizations of one person that are read from a claim. */
const MAX_ORGANIZATIONS = 20
/** Values of a claim of roles: the most groups of one person that count. */
const MAX_VALUES = 1_000
/** Characters of a value. No ID of an organization, name of a role or group is longer. */
const MAX_CHARACTERS = 200

/** The claims of an ID token, or of the issuer's user info. */
export type Claims = Readonly<Record<string, unknown>>

/** What the claims state about a person. */
export interface ClaimedPerson {
  readonly verifiedEmail: string | null
  readonly name: string | null
  readonly assigned: readonly string[]
  readonly assignedRole: Role
}

/** Reads the claims that the settings name. */
export function readClaims(claims: Claims, { organizationClaim, roleClaim, roles }: OidcSettings): ClaimedPerson {
  const { email, email_verified: isVerified, name } = claims
  return {
    // Some issuers write the boolean as text.
    verifiedEmail: typeof email === 'string' && (isVerified === true || isVerified === 'true') ? email : null,
    name: typeof name === 'string' ? name : null,
    assigned: organizationClaim === null ? [] : readTexts(claims, organizationClaim).slice(0, MAX_ORGANIZATIONS),
    assignedRole: roleClaim === null ? 'viewer' : readRole(readTexts(claims, roleClaim), roles),
  }
}

/** Returns the most powerful of the roles. If no value stands for a role, returns `viewer`, the least powerful. */
function readRole(values: readonly string[], roles: ReadonlyMap<string, Role>): Role {
  const named = values.map((value) => roles.get(value) ?? value)
  return ROLES.find((role) => named.includes(role)) ?? 'viewer'
}

/**
 * Reads a claim with one text or a list of texts. `realm_access.roles` is a nested claim, unless a claim has that very
 * name.
 */
function readTexts(claims: Claims, path: string): readonly string[] {
  const value = Object.hasOwn(claims, path) ? claims[path] : path.split('.').reduce<unknown>(readField, claims)
  const values: readonly unknown[] = Array.isArray(value) ? value.slice(0, MAX_VALUES) : [value]
  return values.filter((each): each is string => typeof each === 'string' && each !== '' && each.length <= MAX_CHARACTERS)
}

function readField(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Claims)[name] : undefined
}

/** Whether the ID token has all claims that are needed, so that no further request to the issuer is necessary. */
export function isWhole(claims: Claims, { organizationClaim, roleClaim }: OidcSettings): boolean {
  const wanted = [organizationClaim, roleClaim].filter((claim) => claim !== null)
  return claims.email !== undefined && claims.name !== undefined && wanted.every((claim) => readTexts(claims, claim).length > 0)
}
