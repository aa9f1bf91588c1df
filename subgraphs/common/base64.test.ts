import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readBase64 } from './base64.ts'

describe('Base64', () => {
  const bytes = randomBytes(100)
  const text = bytes.toString('base64')

  it.each([
    ['on one line', text],
    ['on lines as in mail', text.replace(/.{76}/g, '$&\r\n')],
    ['on lines as in PEM', `${text.replace(/.{64}/g, '$&\n')}\n`],
    ['without padding', text.replace(/=+$/, '')],
    ['in the alphabet of URLs', bytes.toString('base64url')],
    ['in the alphabet of URLs, with padding', text.replaceAll('+', '-').replaceAll('/', '_')],
  ])('is decoded %s', (_name, input) => {
    expect(readBase64(input).sizeBytes).toBe(100)
    expect(readBase64(input).decode()?.equals(bytes)).toBe(true)
  })

  it.each([
    ['has other characters', 'd2F2*'],
    ['ends within a byte', 'd2F2I'],
    ['is padded too much', 'd2F2===='],
    ['is padded in the middle', 'd2F=2A=='],
  ])('is refused if it %s', (_name, input) => expect(readBase64(input).decode()).toBeNull())

  it('round-trips any bytes, with line breaks anywhere', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.array(fc.nat(40)), fc.boolean(), (input, breaks, forUrls) => {
        let wrapped = Buffer.from(input).toString(forUrls ? 'base64url' : 'base64')
        for (const at of breaks) wrapped = `${wrapped.slice(0, at)}\r\n${wrapped.slice(at)}`
        const { sizeBytes, decode } = readBase64(wrapped)
        expect(sizeBytes).toBe(input.length)
        expect(Buffer.from(input).equals(decode()!)).toBe(true)
      }),
    )
  })
})
