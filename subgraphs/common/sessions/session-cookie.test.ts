import { describe, expect, it } from 'vitest'
import { sessionCookie, sessionOf, sessionOfSocket } from './session-cookie.ts'

const TOKEN = `kis_session_${'t'.repeat(43)}`
const HTTP = { host: 'a.example', 'sec-fetch-site': 'same-origin', origin: 'http://a.example' }
const HTTPS = { ...HTTP, origin: 'https://a.example', 'x-forwarded-proto': 'https' }

describe('Session cookie', () => {
  it.each([
    [`kis_session=${TOKEN}`, HTTP, TOKEN],
    [`a=b; kis_session=${TOKEN};c=d`, HTTP, TOKEN],
    [`__Host-kis_session=${TOKEN}`, HTTPS, TOKEN],
    // A sibling host, or an attacker on plain http, may have set these.
    [`kis_session=${TOKEN}`, HTTPS, null],
    [`__Host-kis_session=${TOKEN}`, HTTP, null],
    [`xkis_session=${TOKEN}`, HTTP, null],
    [`KIS_SESSION=${TOKEN}`, HTTP, null],
    [`kis_session="${TOKEN}"`, HTTP, null],
    [`kis_session=${TOKEN}x`, HTTP, null],
    ['kis_session=', HTTP, null],
    [`kis_session=kis_live_${'k'.repeat(36)}`, HTTP, null],
    [`kis_session=x; kis_session=${TOKEN}`, HTTP, null],
  ])('accepts only a valid token under the name for the protocol: %s', (cookie, headers, expected) => {
    expect(sessionOf({ ...headers, cookie })).toBe(expected)
    expect(sessionOfSocket({ ...headers, cookie })).toBe(expected)
  })

  it('is ignored beside a key', () => {
    const cookie = `kis_session=${TOKEN}`
    for (const authorization of ['Bearer x', 'x', 'Basic x', 'Bearer Bearer'])
      expect(sessionOf({ ...HTTP, cookie, authorization })).toBeNull()
    for (const authorization of ['Bearer', 'bearer ']) expect(sessionOf({ ...HTTP, cookie, authorization })).toBe(TOKEN)
  })

  it('is what the next request sends', () => {
    for (const headers of [HTTP, HTTPS]) {
      const [cookie] = sessionCookie(headers, TOKEN, new Date(0)).split(';')
      expect(sessionOf({ ...headers, cookie: cookie! })).toBe(TOKEN)
    }
  })
})
