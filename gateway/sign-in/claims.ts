import { type OidcSettings, ROLES, type Role } from './oidc-settings.ts'

/** Organizations of one person that are read from a claim. */
const MAX_ORGANIZATIONS = 20
/** Values of a claim of roles: a person is in so many groups at most that count. */
const MAX_VALUES = 1_000
/** Longer ones are no id of an organization, no name of a role and no group. */
const MAX_CHARACTERS = 200

export type Claims = Readonly<Record<string, unknown>>

/** What the claims of a person say. */
export interface ClaimedPerson {
  readonly verifiedEmail: string | null
  readonly name: string | null
  readonly assigned: readonly string[]
  readonly assignedRole: Role
}

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

/** The role of several that may do most. Values that stand for no role make a viewer, who may do least. */
function readRole(values: readonly string[], roles: ReadonlyMap<string, Role>): Role {
  const named = values.map((value) => roles.get(value) ?? value)
  return ROLES.find((role) => named.includes(role)) ?? 'viewer'
}

/** A claim with one text or a list of them. `realm_access.roles` is one inside of another, unless it is a name itself. */
function readTexts(claims: Claims, path: string): readonly string[] {
  const value = Object.hasOwn(claims, path) ? claims[path] : path.split('.').reduce<unknown>(readField, claims)
  const values: readonly unknown[] = Array.isArray(value) ? value.slice(0, MAX_VALUES) : [value]
  return values.filter((each): each is string => typeof each === 'string' && each !== '' && each.length <= MAX_CHARACTERS)
}

function readField(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Claims)[name] : undefined
}

/** Whether the id token has all that is looked for, so that the issuer need not be asked for more. */
export function isWhole(claims: Claims, { organizationClaim, roleClaim }: OidcSettings): boolean {
  const wanted = [organizationClaim, roleClaim].filter((claim) => claim !== null)
  return claims.email !== undefined && claims.name !== undefined && wanted.every((claim) => readTexts(claims, claim).length > 0)
}
