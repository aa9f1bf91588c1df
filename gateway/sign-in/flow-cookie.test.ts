import { expect, it } from 'vitest'
import { SealedTexts } from '../../subgraphs/common/identity/sealed-text.ts'
import { type Flow, FlowCookie } from './flow-cookie.ts'

const KEY = new Uint8Array(32).fill(7)
const FLOW: Flow = {
  ...{ state: 's', nonce: 'n', verifier: 'v', returnPath: '/home', invitation: null, organizationId: null, previousSession: null },
}
let now = Date.parse('2026-11-23T08:00:00Z')
const clock = { now: () => new Date(now), sleep: async () => undefined }
const pairOf = (line: string) => line.split(';')[0]!

it('round-trips its content, for ten minutes, and only with the key', () => {
  const cookie = new FlowCookie(new SealedTexts(KEY), clock, true)
  const line = cookie.write(FLOW)
  expect(line).toMatch(/^__Host-kis_sign_in=[\w-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
  const headers = { cookie: `a=b; ${pairOf(line)}; c=d` }
  expect(cookie.read(headers)).toEqual(FLOW)
  expect(new FlowCookie(new SealedTexts(new Uint8Array(32).fill(8)), clock, true).read(headers)).toBeNull()
  // A cookie from http is not accepted over https.
  expect(cookie.read({ cookie: pairOf(new FlowCookie(new SealedTexts(KEY), clock, false).write(FLOW)) })).toBeNull()
  now += 600_000
  expect(cookie.read(headers)).toBeNull()
  now -= 1_200_000
  expect(cookie.read(headers)).toBeNull()
  now += 600_000
})

it.each(['', 'x', 'a'.repeat(5_000), new SealedTexts(KEY).seal('{"until":9e15}', 'another place')])('reads nothing from %j', (text) => {
  expect(new FlowCookie(new SealedTexts(KEY), clock, false).read({ cookie: `kis_sign_in=${text}` })).toBeNull()
  expect(new FlowCookie(new SealedTexts(KEY), clock, false).read({})).toBeNull()
})

it('limits the content to what fits into a cookie', () => {
  const long = { returnPath: `/home?${'a'.repeat(1_900)}`, invitation: 'i'.repeat(100), organizationId: 'o'.repeat(100) }
  const random = { verifier: 'v'.repeat(43), state: 's'.repeat(43), nonce: 'n'.repeat(43), previousSession: 's'.repeat(60) }
  const cookie = new FlowCookie(new SealedTexts(KEY), clock, true)
  const line = cookie.write({ ...random, ...long })
  expect(pairOf(line).length).toBeLessThan(4_096)
  expect(cookie.read({ cookie: pairOf(line) })).toEqual({ ...random, ...long })
})
