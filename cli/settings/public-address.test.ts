import { expect, it } from 'vitest'
import { isSameOrigin } from '../../subgraphs/common/sessions/own-origin.ts'
import { sessionCookie } from '../../subgraphs/common/sessions/session-cookie.ts'
import { httpsAt } from './public-address.ts'

const cookieAt = (publicUrl: string | null, headers: Record<string, string>) => {
  httpsAt(publicUrl)({ headers })
  return { cookie: sessionCookie(headers, 'token'), isSameOrigin: isSameOrigin(headers) }
}

it('sets the session cookie for https at the public address, whatever the proxy reports', () => {
  for (const proxy of [{}, { 'x-forwarded-proto': 'http' }, { 'x-forwarded-proto': '' }]) {
    const cookie = cookieAt('https://kis.example', { host: 'kis.example', origin: 'https://kis.example', ...proxy })
    expect(cookie.cookie).toMatch(/^__Host-kis_session=token;.*; Secure$/)
    expect(cookie.isSameOrigin).toBe(true)
  }
})

it('leaves other hosts, and http addresses, unchanged', () => {
  for (const [publicUrl, host] of [
    ['https://kis.example', '127.0.0.1:4000'],
    ['https://kis.example', 'kis.example:8080'],
    ['http://kis.example', 'kis.example'],
    [null, 'kis.example'],
  ] as const)
    expect(cookieAt(publicUrl, { host }).cookie).toMatch(/^kis_session=token;.*SameSite=Strict$/)
})
