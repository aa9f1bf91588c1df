import { expect, it } from 'vitest'
import { isWhole, readClaims } from './claims.ts'
import type { OidcSettings, Role } from './oidc-settings.ts'

const SETTINGS: OidcSettings = {
  ...{
    issuer: 'https://id.example',
    clientId: 'kis',
    clientSecret: null,
    name: 'Example',
    scopes: 'openid',
    publicUrl: 'https://kis.example',
  },
  organizationClaim: 'kis_organization',
  roleClaim: 'realm_access.roles',
  roles: new Map<string, Role>([['staff', 'editor']]),
}

it.each([
  [true, 'ann@example.org'],
  ['true', 'ann@example.org'],
  [false, null],
  ['yes', null],
  [1, null],
  [undefined, null],
])('an address whose email_verified is %j counts as %j', (email_verified, verifiedEmail) => {
  expect(readClaims({ email: 'ann@example.org', email_verified }, SETTINGS)).toMatchObject({ verifiedEmail })
})

it.each([
  [['staff'], 'editor'],
  [['everybody', 'billing', 'staff'], 'editor'],
  [['staff', 'owner'], 'owner'],
  [['everybody'], 'viewer'],
  [['operator'], 'viewer'],
  [[7, null, { owner: true }], 'viewer'],
  ['admin', 'admin'],
  [undefined, 'viewer'],
])('the groups %j result in a %s', (roles, assignedRole) => {
  expect(readClaims({ realm_access: { roles } }, SETTINGS)).toMatchObject({ assignedRole })
})

it('reads one organization or several, up to 20, and no built-in property of objects', () => {
  const assigned = (value: unknown, settings = SETTINGS) => readClaims({ kis_organization: value }, settings).assigned
  expect(assigned('org_1')).toEqual(['org_1'])
  expect(assigned(['org_1', '', 5, 'x'.repeat(300), 'org_2'])).toEqual(['org_1', 'org_2'])
  expect(assigned(Array.from({ length: 50 }, (_, i) => `org_${i}`))).toHaveLength(20)
  expect(assigned('org_1', { ...SETTINGS, organizationClaim: null })).toEqual([])
  expect(assigned('org_1', { ...SETTINGS, organizationClaim: 'constructor.name' })).toEqual([])
})

it('a claim whose name has dots is first read by its full name', () => {
  const settings = { ...SETTINGS, roleClaim: 'https://kis.example/roles' }
  expect(readClaims({ 'https://kis.example/roles': ['admin'] }, settings)).toMatchObject({ assignedRole: 'admin' })
})

it('detects when claims require the user info endpoint', () => {
  const whole = { email: 'ann@example.org', name: 'Ann', kis_organization: 'org_1', realm_access: { roles: ['staff'] } }
  expect(isWhole(whole, SETTINGS)).toBe(true)
  for (const name of Object.keys(whole)) expect(isWhole({ ...whole, [name]: undefined }, SETTINGS)).toBe(false)
})
