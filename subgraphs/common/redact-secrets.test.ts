import { describe, expect, it } from 'vitest'
import { redactorOf } from './redact-secrets.ts'

const SECRET = 'Key/of+the"operator?1'
const redact = redactorOf([SECRET, 'vendor.test:443', 'short'])

describe('secrets in a text of somebody else', () => {
  it.each([
    ['as they are', SECRET],
    ['in other letters', SECRET.toUpperCase()],
    ['encoded for a URL', encodeURIComponent(SECRET)],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['in base64', Buffer.from(SECRET).toString('base64').replace(/=+$/, '')],
    ['in base64url', Buffer.from(SECRET).toString('base64url')],
  ])('are removed %s', (_how, secret) => expect(redact(`before ${secret} after`)).toBe('before … after'))

  it('leave other texts as they are', () => {
    expect(redact('a short text of the operator')).toBe('a short text of the operator')
    expect(redactorOf([])('text')).toBe('text')
  })
})
