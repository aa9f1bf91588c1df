import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkIdempotencyKey, requestDigest } from './idempotency-key.ts'

/** Returns the same value with the fields of every object in reverse order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, turned(inner)]),
  )
}

describe('Idempotency key', () => {
  it.each(['k', 'k'.repeat(255), '8e03978e-40d5-43e8-bc93-6894a57f9324', '"quoted"', '!~'])('accepts %j', (key) => {
    expect(checkIdempotencyKey(key)).toBe(key)
  })

  it.each([
    ['', 'invalid_request'],
    ['a b', 'invalid_request'],
    ['a\n', 'invalid_request'],
    ['é', 'invalid_request'],
    ['k'.repeat(256), 'string_above_max_length'],
    [5, 'invalid_type'],
  ])('refuses %j', (key, code) => {
    expect(() => checkIdempotencyKey(key)).toThrow(expect.objectContaining({ code, param: 'idempotencyKey' }))
  })
})

describe('Request digest', () => {
  it('is the same for any order of fields, and differs for another value', () => {
    const value = fc.jsonValue({ maxDepth: 4 })
    fc.assert(fc.property(value, (request) => requestDigest('chat', turned(request)) === requestDigest('chat', request)))
    const digestRequest = (request: unknown) => requestDigest('chat', request)
    fc.assert(fc.property(value, value, (one, other) => (digestRequest(one) === digestRequest(other)) === isDeepStrictEqual(one, other)))
  })

  it('distinguishes operations, absent fields from null ones, and lists from objects', () => {
    const digests = [
      requestDigest('a', {}),
      requestDigest('b', {}),
      requestDigest('a', []),
      requestDigest('a', { x: null }),
      requestDigest('a', { x: [1, 2] }),
      requestDigest('a', { x: [2, 1] }),
      requestDigest('a', { x: '1' }),
    ]
    expect(new Set(digests).size).toBe(digests.length)
    expect(requestDigest('a', { x: undefined })).toBe(requestDigest('a', {}))
  })

  it('refuses a request that is nested too deep', () => {
    const deep = JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`)
    expect(() => requestDigest('a', deep)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })
})
