import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { apiKeyFrom, digestKey, isApiKey } from './api-key.ts'

describe('API keys', () => {
  it('has the form that secret scanners recognize', () => {
    expect(apiKeyFrom(randomBytes(32))).toMatch(/^kis_live_[0-9A-Za-z]{36}$/)
  })

  it('depends only on its random bytes', () => {
    const bytes = randomBytes(32)
    expect(apiKeyFrom(bytes)).toBe(apiKeyFrom(bytes))
    expect(apiKeyFrom(bytes)).not.toBe(apiKeyFrom(randomBytes(32)))
    expect(apiKeyFrom(new Uint8Array(32))).toBe(`kis_live_${'0'.repeat(30)}2C8GjS`)
  })

  it('passes its own checksum', () => {
    for (let i = 0; i < 200; i++) expect(isApiKey(apiKeyFrom(randomBytes(32)))).toBe(true)
  })

  const key = apiKeyFrom(Uint8Array.from({ length: 32 }, (_, i) => i))
  for (const { name, text } of [
    { name: 'nothing', text: '' },
    { name: 'another prefix', text: key.replace('live', 'test') },
    { name: 'one character changed', text: key.replace(/.$/, (last) => (last === 'x' ? 'y' : 'x')) },
    { name: 'two characters exchanged', text: key.replace(/(.)(.)(?=.{6}$)/, '$2$1') },
    { name: 'one character missing', text: key.slice(0, -1) },
    { name: 'one extra character', text: `${key}0` },
    { name: 'a trailing line break', text: `${key}\n` },
    { name: 'a character outside base62', text: key.replace(/.$/, '-') },
  ])
    it(`refuses ${name}`, () => expect(isApiKey(text)).toBe(false))

  it('is stored as a digest that depends on the pepper', () => {
    const [pepper, other] = [randomBytes(32), randomBytes(32)]
    expect(digestKey(key, pepper)).toMatch(/^[0-9a-f]{64}$/)
    expect(digestKey(key, pepper)).toBe(digestKey(key, pepper))
    expect(digestKey(key, pepper)).not.toBe(digestKey(key, other))
    expect(digestKey(key, pepper)).not.toContain(key.slice(9, 20))
  })
})
