import { describe, expect, it } from 'vitest'
import { redactorOf } from './redact-secrets.ts'

const SECRET = 'Key/of+the"operator?1'
const redact = redactorOf([SECRET, 'vendor.test:443', 'short'])

describe('Secrets in untrusted text', () => {
  it.each([
    ['as they are', SECRET],
    ['in other letter case', SECRET.toUpperCase()],
    ['encoded for a URL', encodeURIComponent(SECRET)],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['in base64', Buffer.from(SECRET).toString('base64').replace(/=+$/, '')],
    ['in base64url', Buffer.from(SECRET).toString('base64url')],
  ])('are removed %s', (_how, secret) => expect(redact(`before ${secret} after`)).toBe('before … after'))

  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const hex = (text: string) => Buffer.from(text).toString('hex')
  const byBytes = (before: string) => (text: string) => hex(text).replace(/../g, `${before}$&`)
  const byUnits = (before: string, after: string) => (text: string) =>
    text.replace(/./g, (char) => before + char.charCodeAt(0).toString(16).padStart(4, '0') + after)

  it.each<[string, (secret: string) => string]>([
    ['with entities of HTML', (secret) => secret.replaceAll('/', '&sol;').replaceAll('"', '&quot;').replaceAll('+', '&#43;')],
    ['with hexadecimal entities', byUnits('&#x', ';')],
    ['with entities in entities', (secret) => secret.replaceAll('"', '&amp;quot;')],
    ['in hexadecimal digits', hex],
    ['in hexadecimal digits after another', (secret) => `a${hex(secret).toUpperCase()}`],
    ['in JSON that escapes slashes', (secret) => JSON.stringify(secret).replaceAll('/', '\\/')],
    ['in JSON of JSON', (secret) => JSON.stringify(JSON.stringify(secret))],
    ['with escapes of JavaScript', byBytes('\\x')],
    ['with escapes of JSON', byUnits('\\u', '')],
    ['encoded twice for a URL', (secret) => encodeURIComponent(encodeURIComponent(secret))],
    ['encoded for a URL, letter by letter', byBytes('%')],
    ['as the password of Basic authentication', (secret) => `Basic ${base64(`user:${secret}`)}`],
    ['in base64 after one more character', (secret) => base64(`u:${secret}:x`)],
    ['in base64 after letters', (secret) => `xyz${base64(`user:${secret}`)}`],
    ['in base64 of lines', (secret) => base64(`user:${secret}`).replace(/.{10}/g, '$&\n')],
    ['in base64 for a URL', (secret) => encodeURIComponent(base64(`u:${secret}`))],
    ['with invisible characters', (secret) => [...secret].join('\u200b')],
    ['with spaces', (secret) => [...secret].join(' ')],
  ])('suppress the whole text, unless they can be removed, %s', (_how, encode) => {
    for (const secret of [SECRET, 'ключ/of+the"operator', 'sk-abcdefghij0123456789'])
      expect(redactorOf([secret])(`before ${encode(secret)} after`) ?? 'before … after').toMatch(/^before [\\"]*…[\\"]* after$/)
  })

  it('are searched in linear time, and not in an overlong text', () => {
    for (const piece of ['a', '%25', '&amp;', '\\', '&#x26;', 'a ', '%', '&#', '=='])
      expect(redact(piece.repeat(64_000 / piece.length))).not.toBeNull()
    expect(redact('a'.repeat(64 * 1024 + 1))).toBeNull()
  })

  it('leave other texts unchanged', () => {
    for (const text of ['100 % of 5&6 at C:\\new, ZGVhZGJlZWY= and deadbeefdeadbeefdeadbeef &nope; &#9999999;', ''])
      expect(redact(text)).toBe(text)
    expect(redact('a short text of the operator')).toBe('a short text of the operator')
    expect(redactorOf([])('text')).toBe('text')
  })
})
