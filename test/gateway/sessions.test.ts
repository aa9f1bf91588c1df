import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { SessionStore } from '../../gateway/sessions/session-store.ts'
import { InvalidApiKey, OrganizationSuspended, SessionEnded } from '../../subgraphs/common/errors.ts'
import { isSessionToken } from '../../subgraphs/common/identity/credentials.ts'
import { eventually } from '../support/eventually.ts'
import { handClock } from './support/clock.ts'
import { createPrincipal, KEY, OTHER_KEY, startGateway, UNKNOWN_KEY } from './support/start.ts'

const TOKEN = `kis_session_${'a'.repeat(43)}`
const COOKIE = `kis_session=${TOKEN}`
const EXPIRES = new Date('2030-01-01T12:00:00.000Z')
const OWN = { 'sec-fetch-site': 'same-origin' }
/** Longer than a gateway trusts an answer. */
const LATER_MS = 4_000

/** A gateway whose billing knows one key, one suspended key and the sessions that were opened with them. */
async function startPortal(clock = handClock()) {
  const opened = new Map<string, string | null>([[TOKEN, null]])
  const sessions: SessionStore = {
    async open(apiKey, userAgent) {
      if (apiKey === OTHER_KEY) throw new OrganizationSuspended()
      if (apiKey !== KEY) throw new InvalidApiKey()
      const token = `kis_session_${String(opened.size).padStart(43, 'b')}`
      opened.set(token, userAgent)
      return { id: `ses_${opened.size}`, token, expiresAt: EXPIRES }
    },
    async end(token) {
      opened.delete(token)
    },
  }
  const gateway = await startGateway({
    clock,
    sessions,
    authenticate: async (credentials) => {
      if (isSessionToken(credentials) ? !opened.has(credentials) : credentials !== KEY)
        throw isSessionToken(credentials) ? new SessionEnded() : new InvalidApiKey()
      return createPrincipal(credentials)
    },
  })
  const base = gateway.url.replace('/graphql', '')
  /** By `node:http`, which sends the headers of a browser as they are given. */
  const send = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
    new Promise<{ status: number; headers: Record<string, string | string[] | undefined>; text: string }>((resolve, reject) => {
      const sent = request(`${base}${path}`, { method, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece) => {
          text += piece
        })
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }))
      })
      sent.on('error', reject).end(body)
    })
  const signIn = (headers: Record<string, string> = OWN, apiKey: unknown = KEY) =>
    send('POST', '/session', { 'content-type': 'application/json', ...headers }, JSON.stringify({ api_key: apiKey }))
  const sendQuery = (headers: Record<string, string>, body = '{"query":"{ ping }"}') =>
    send('POST', '/graphql', { 'content-type': 'application/json', ...headers }, body)
  return { ...gateway, base, origin: base, clock, opened, send, signIn, sendQuery }
}

describe('Sign-in with a key', () => {
  it('exchanges a key for an HttpOnly cookie, and never returns the key or the token to scripts', async () => {
    const { signIn, sendQuery } = await startPortal()
    const { status, headers, text } = await signIn({ ...OWN, 'user-agent': 'Browser' }, ` ${KEY} `)
    expect(status).toBe(201)
    expect(JSON.parse(text)).toEqual({ id: 'ses_2', expiresAt: EXPIRES.toISOString() })
    expect(headers['cache-control']).toBe('no-store')
    const [cookie] = headers['set-cookie'] as string[]
    expect(cookie).toBe(
      `kis_session=kis_session_${'1'.padStart(43, 'b')}; Path=/; Expires=Tue, 01 Jan 2030 12:00:00 GMT; HttpOnly; SameSite=Strict`,
    )
    expect((await sendQuery({ ...OWN, cookie: cookie!.split(';')[0]! })).status).toBe(200)
  })

  it('sets a cookie for https only behind an https proxy, and accepts no other there', async () => {
    const { signIn, sendQuery, base } = await startPortal()
    const https = { 'x-forwarded-proto': 'https' }
    const { status, headers } = await signIn({ ...https, origin: base.replace('http:', 'https:') })
    expect(status).toBe(201)
    const [cookie] = headers['set-cookie'] as string[]
    expect(cookie).toMatch(/^__Host-kis_session=kis_session_[\w-]{43}; Path=\/; Expires=[^;]*; HttpOnly; SameSite=Strict; Secure$/)
    expect((await sendQuery({ ...OWN, ...https, cookie: cookie!.split(';')[0]! })).status).toBe(200)
    expect((await sendQuery({ ...OWN, ...https, cookie: COOKIE })).status).toBe(401)
  })

  it('ends the former session of the browser', async () => {
    const { signIn, opened } = await startPortal()
    await signIn({ ...OWN, cookie: COOKIE })
    expect([...opened.keys()]).toEqual([`kis_session_${'1'.padStart(43, 'b')}`])
  })

  it('responds to every wrong key alike, and in the same time', async () => {
    const { signIn, clock } = await startPortal()
    const responses = []
    for (const wrong of [UNKNOWN_KEY, 'kis_live_', 'x', '', TOKEN]) {
      let isSettled = false
      const response = signIn(OWN, wrong).finally(() => {
        isSettled = true
      })
      await eventually(async () => {
        clock.advance(100)
        return isSettled
      })
      responses.push(await response)
    }
    for (const { status, text, headers } of responses) {
      expect([status, text]).toEqual([401, responses[0]!.text])
      expect(headers['set-cookie']).toBeUndefined()
    }
    expect(JSON.parse(responses[0]!.text).error).toMatchObject({
      code: 'invalid_api_key',
      message: expect.stringContaining('does not work'),
    })
  })

  it('reports that the organization is suspended', async () => {
    const { signIn, clock } = await startPortal()
    const response = signIn(OWN, OTHER_KEY)
    const ticking = setInterval(() => clock.advance(500), 10)
    expect(await response.finally(() => clearInterval(ticking))).toMatchObject({
      status: 403,
      text: expect.stringContaining('organization_suspended'),
    })
  })

  for (const [what, headers] of [
    ['another origin', { origin: 'https://evil.example' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another subdomain of the site', { 'sec-fetch-site': 'same-site' }],
    ['the address bar', { 'sec-fetch-site': 'none' }],
    ['a sandboxed page', { origin: 'null' }],
    ['a program', {}],
  ] as const)
    it(`is refused to ${what}, and so is sign-out`, async () => {
      const { signIn, send, opened } = await startPortal()
      for (const response of [await signIn(headers), await send('DELETE', '/session', { ...headers, cookie: COOKIE })]) {
        expect([response.status, JSON.parse(response.text).error.code]).toEqual([403, 'permission_denied'])
        expect(response.headers).not.toHaveProperty('set-cookie')
        expect(Object.keys(response.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
      }
      expect([...opened.keys()]).toEqual([TOKEN])
    })

  it('accepts only JSON, of a limited length', async () => {
    const { send } = await startPortal()
    const post = (type: string, body: string) => send('POST', '/session', { ...OWN, 'content-type': type }, body)
    for (const [type, body, status] of [
      ['text/plain', `{"api_key":"${KEY}"}`, 400],
      ['application/x-www-form-urlencoded', `api_key=${KEY}`, 400],
      ['multipart/form-data; boundary=x', '--x--', 400],
      ['application/json', '{', 400],
      ['application/json', '', 400],
      ['application/json', '[]', 400],
      ['application/json', '{"api_key":1}', 400],
      ['application/json', JSON.stringify({ api_key: 'x'.repeat(5_000) }), 413],
    ] as const) {
      const response = await post(type, body)
      expect([body.slice(0, 20), response.status]).toEqual([body.slice(0, 20), status])
      expect(response.headers).not.toHaveProperty('set-cookie')
    }
  })

  it('has no preflight for other origins, and reports the sign-in methods', async () => {
    const { send } = await startPortal()
    expect((await send('OPTIONS', '/session', { origin: 'https://evil.example', 'access-control-request-method': 'POST' })).status).toBe(
      404,
    )
    expect(await send('GET', '/session/options')).toMatchObject({ status: 200, text: '{"oidc":null}' })
  })

  it('signs out, immediately and on this gateway too', async () => {
    const { send, sendQuery, opened } = await startPortal()
    expect((await sendQuery({ ...OWN, cookie: COOKIE })).status).toBe(200)
    const { status, headers } = await send('DELETE', '/session', { ...OWN, cookie: COOKIE })
    expect([status, headers['set-cookie']]).toEqual([
      204,
      ['kis_session=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Strict'],
    ])
    expect([...opened]).toEqual([])
    expect(await sendQuery({ ...OWN, cookie: COOKIE })).toMatchObject({ status: 401, text: expect.stringContaining('Sign in again.') })
    expect((await send('DELETE', '/session', OWN)).status).toBe(204)
  })
})

describe('Session in place of a key', () => {
  for (const [what, headers, status] of [
    ['from the page itself', OWN, 200],
    ['from an older browser', 'own origin', 200],
    ['without an origin', {}, 401],
    ['from another origin', { origin: 'https://evil.example' }, 401],
    ['from another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, 401],
    ['from another subdomain of the site', { 'sec-fetch-site': 'same-site' }, 401],
    ['typed by a person', { 'sec-fetch-site': 'none' }, 401],
    ['from another origin with a forged header', { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' }, 401],
  ] as const)
    it(`has status ${status} in a request ${what}`, async () => {
      const { sendQuery, send, origin, seen } = await startPortal()
      const sent = { ...(headers === 'own origin' ? { origin } : headers), cookie: `a=b; ${COOKIE}; c=d` }
      const response = await sendQuery(sent)
      expect(response.status).toBe(status)
      expect(response.headers).not.toHaveProperty('access-control-allow-credentials')
      const stream = await sendQuery({ ...sent, accept: 'text/event-stream' })
      expect(stream.status).toBe(status)
      expect(
        (
          await send('GET', '/graphql?query={ping}'.replaceAll('{', '%7B').replaceAll('}', '%7D'), {
            ...sent,
            'apollo-require-preflight': 'yes',
          })
        ).status,
      ).toBe(status)
      if (status === 401) expect(seen.operations).toEqual([])
    })

  it('is accepted in no form and no plain text', async () => {
    const { sendQuery, seen } = await startPortal()
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
      expect((await sendQuery({ ...OWN, cookie: COOKIE, 'content-type': type })).status).toBeGreaterThanOrEqual(400)
    expect(seen.operations).toEqual([])
  })

  it('is ignored beside a key, right or wrong, and is no key', async () => {
    const { sendQuery, lookups, opened } = await startPortal()
    opened.clear()
    expect((await sendQuery({ ...OWN, cookie: COOKIE, authorization: `Bearer ${KEY}` })).status).toBe(200)
    opened.set(TOKEN, null)
    expect((await sendQuery({ ...OWN, cookie: COOKIE, authorization: `Bearer ${UNKNOWN_KEY}` })).status).toBe(401)
    for (const authorization of [`Bearer ${TOKEN}`, TOKEN, `bearer   ${TOKEN}`])
      expect((await sendQuery({ ...OWN, authorization })).status).toBe(401)
    expect(lookups).not.toContain(TOKEN)
  })

  it('ends within 5 s of its end elsewhere, including streams', async () => {
    const { sendQuery, opened, clock, seen } = await startPortal()
    expect((await sendQuery({ ...OWN, cookie: COOKIE })).status).toBe(200)
    const stream = sendQuery(
      { ...OWN, cookie: COOKIE, accept: 'text/event-stream' },
      '{"query":"subscription { ticks(count: 1, mode: \\"idle\\") { n } }"}',
    )
    await eventually(() => seen.opened === 1)
    opened.delete(TOKEN)
    let isOver = false
    void stream.finally(() => {
      isOver = true
    })
    await eventually(async () => {
      clock.advance(1_000)
      return isOver
    })
    expect((await stream).text).toContain('Sign in again.')
    clock.advance(LATER_MS)
    expect((await sendQuery({ ...OWN, cookie: COOKIE })).status).toBe(401)
  })
})

describe('WebSocket of a session', () => {
  function openSocket(wsUrl: string, headers: Record<string, string>, params?: object) {
    const socket = new WebSocket(wsUrl, 'graphql-transport-ws', { headers })
    const messages: string[] = []
    socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init', ...(params && { payload: params }) })))
    socket.on('message', (message) => messages.push(String(message)))
    const closed = new Promise<readonly [number, string]>((resolve) =>
      socket.on('close', (code, reason) => resolve([code, String(reason)])),
    )
    const isAccepted = () => Promise.race([closed.then(() => false), eventually(() => messages.length > 0).then(() => true)])
    return { socket, closed, isAccepted }
  }

  it('opens for same-origin pages only, and not beside a key', async () => {
    const { wsUrl, origin } = await startPortal()
    const cookie = COOKIE
    for (const [headers, params, isAccepted] of [
      [{ cookie, origin }, undefined, true],
      [{ cookie, origin }, {}, true],
      [{ cookie, origin: 'https://evil.example' }, undefined, false],
      [{ cookie, origin: 'null' }, undefined, false],
      [{ cookie, ...OWN }, undefined, false],
      [{ cookie }, undefined, false],
      [{ origin }, undefined, false],
      [{ cookie, origin }, { authorization: `Bearer ${UNKNOWN_KEY}` }, false],
      [{ cookie, origin }, { authorization: 7 }, false],
      [{ origin }, { authorization: `Bearer ${TOKEN}` }, false],
      [{ cookie, origin: 'https://evil.example' }, { authorization: `Bearer ${KEY}` }, true],
    ] as const) {
      const opened = openSocket(wsUrl, headers as Record<string, string>, params)
      expect([headers, params, await opened.isAccepted()]).toEqual([headers, params, isAccepted])
      if (!isAccepted) expect((await opened.closed)[0]).toBe(4401)
      opened.socket.terminate()
    }
  })

  it('closes within 5 s of the end of the session', async () => {
    const { wsUrl, origin, opened, clock } = await startPortal()
    const { isAccepted, closed } = openSocket(wsUrl, { cookie: COOKIE, origin })
    expect(await isAccepted()).toBe(true)
    opened.delete(TOKEN)
    let isClosed = false
    void closed.finally(() => {
      isClosed = true
    })
    let passedMs = 0
    await eventually(async () => {
      clock.advance(1_000)
      passedMs += 1_000
      return isClosed
    })
    expect(await closed).toEqual([4401, 'The session has ended'])
    expect(passedMs).toBeGreaterThan(0)
  })
})
