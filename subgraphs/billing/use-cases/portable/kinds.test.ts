import { expect, it } from 'vitest'
import { API_KEY, ORGANIZATION } from './kinds.ts'

const AT = '2026-01-01T00:00:00.000Z'
const MOST = 2 ** 31 - 1

it('exported limits are numbers that the API can express', () => {
  const organization = { name: 'A', residencyPolicy: 'unrestricted', plan: 'self-hosted', createdAt: AT }
  const ofCalls = ['requestsPerMinute', 'tokensPerMinute', 'concurrency']
  for (const limit of [...ofCalls, 'vectors', 'maxFileBytes']) {
    expect(ORGANIZATION.parse({ ...organization, limits: { [limit]: MOST } })).toMatchObject({ limits: { [limit]: MOST } })
    expect(() => ORGANIZATION.parse({ ...organization, limits: { [limit]: MOST + 1 } })).toThrow(limit)
  }
  expect(ORGANIZATION.parse({ ...organization, limits: { storageBytes: 2 ** 40 } })).toMatchObject({ limits: { storageBytes: 2 ** 40 } })
  for (const limit of ofCalls) expect(() => ORGANIZATION.parse({ ...organization, limits: { [limit]: 0 } })).toThrow(limit)
  const key = { ...{ _id: `key_${'1'.repeat(32)}`, name: 'k', scopes: ['admin'], modelAllowlist: null }, expiresAt: null, revokedAt: null }
  for (const limit of ['requestsPerMinute', 'tokensPerMinute']) {
    expect(API_KEY.parse({ ...key, createdAt: AT, [limit]: MOST })).toMatchObject({ [limit]: MOST })
    expect(() => API_KEY.parse({ ...key, createdAt: AT, [limit]: MOST + 1 })).toThrow(limit)
  }
})
