import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SealedTexts } from './sealed-text.ts'

const texts = new SealedTexts(randomBytes(32))

it('round-trips a text, and never seals it twice alike', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, context) => {
      const sealed = texts.seal(text, context)
      expect(texts.open(sealed, context)).toBe(text)
      expect(texts.seal(text, context)).not.toBe(sealed)
    }),
  )
})

it('reseals what the previous key has sealed, and leaves its own', () => {
  const after = new SealedTexts(randomBytes(32))
  const sealed = texts.seal('a text', 'a place')
  const resealed = after.reseal(sealed, 'a place', texts)
  expect(after.open(resealed, 'a place')).toBe('a text')
  expect(after.reseal(resealed, 'a place', texts)).toBe(resealed)
  expect(() => after.reseal(sealed, 'another place', texts)).toThrow()
  expect(() => texts.open(resealed, 'a place')).toThrow()
})

it('opens nothing sealed for another purpose, by another key, or changed since', () => {
  const sealed = texts.seal('Bearer of a secret', 'org_a https://one.test/')
  expect(sealed).not.toContain(Buffer.from('secret').toString('base64').slice(0, 6))
  expect(() => texts.open(sealed, 'org_b https://one.test/')).toThrow()
  expect(() => new SealedTexts(randomBytes(32)).open(sealed, 'org_a https://one.test/')).toThrow()
  const bytes = Buffer.from(sealed, 'base64')
  for (const at of [0, 15, bytes.length - 1]) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    expect(() => texts.open(changed.toString('base64'), 'org_a https://one.test/')).toThrow()
  }
  for (const short of ['', 'AAAA']) expect(() => texts.open(short, '')).toThrow()
})
