import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import type { Flow } from './flow-cookie.ts'
import { Issuer } from './issuer.ts'
import type { OidcSettings } from './oidc-settings.ts'

/** Wrong values that the issuer returns instead of the right ones. */
interface Lies {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly by?: CryptoKey
  readonly algorithm?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly userInfo?: Readonly<Record<string, unknown>>
  readonly tokenStatus?: number
  readonly response?: 'hangs' | 'endless'
}

describe('OpenID Connect issuer', () => {
  let server: Server
  let url: string
  let lies: Lies
  let requestedUrls: string[]
  let keys: Awaited<ReturnType<typeof generateKeyPair>>
  let nonce = ''
  beforeEach(async () => {
    keys = await generateKeyPair('RS256', { extractable: true })
    lies = {}
    requestedUrls = []
    server = createServer(async ({ url: path = '' }, response) => {
      requestedUrls.push(path)
      if (lies.response === 'hangs') return
      if (lies.response === 'endless') {
        const more = () => {
          while (response.writable && response.write(' '.repeat(65_536)));
          if (response.writable) response.once('drain', more)
        }
        return more()
      }
      const send = (body: unknown, status = 200) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      if (path.startsWith('/.well-known/')) return send({ ...metadata(), ...lies.metadata })
      if (path === '/keys') return send({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: 'a', alg: 'RS256', use: 'sig' }] })
      if (path === '/userinfo') return send({ sub: 'ann', email: 'ann@example.org', email_verified: true, ...lies.userInfo })
      if (lies.tokenStatus) return send({ error: 'invalid_grant' }, lies.tokenStatus)
      send({ access_token: 'a', token_type: 'bearer', id_token: await idToken() })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  const metadata = () => ({
    ...{ issuer: url, jwks_uri: `${url}/keys`, userinfo_endpoint: `${url}/userinfo` },
    ...{ authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token`, response_types_supported: ['code'] },
  })
  const idToken = () => {
    const now = Math.floor(Date.now() / 1_000)
    return new SignJWT({ iss: url, aud: 'kis', sub: 'ann', nonce, iat: now, exp: now + 300, ...lies.claims })
      .setProtectedHeader({ alg: lies.algorithm ?? 'RS256', kid: 'a' })
      .sign(lies.by ?? keys.privateKey)
  }
  const settings = (): OidcSettings => ({
    ...{ issuer: url, clientId: 'kis', clientSecret: 'secret', name: 'Example', scopes: 'openid email' },
    ...{ organizationClaim: null, roleClaim: null, roles: new Map(), publicUrl: 'https://kis.example' },
  })
  async function signIn(issuer = new Issuer(settings(), systemClock)) {
    const begun = await issuer.start()
    nonce = begun.nonce
    const flow: Flow = { ...begun, returnPath: '/home', invitation: null, organizationId: null, previousSession: null }
    return issuer.end(String(new URLSearchParams({ code: 'c', state: begun.state })), flow)
  }
  const reason = (of: string) => ({ reason: of })

  it('receives PKCE, state and nonce, and a user info request for missing claims', async () => {
    const { url: sent, state, nonce: sentNonce } = await new Issuer(settings(), systemClock).start()
    expect(Object.fromEntries(sent.searchParams)).toMatchObject({
      ...{ response_type: 'code', client_id: 'kis', redirect_uri: 'https://kis.example/session/oidc/callback', scope: 'openid email' },
      ...{ state, nonce: sentNonce, code_challenge_method: 'S256', code_challenge: expect.stringMatching(/^[\w-]{43}$/) },
    })
    expect(await signIn()).toMatchObject({ iss: url, sub: 'ann', email: 'ann@example.org' })
  })

  const seconds = (by: number) => Math.floor(Date.now() / 1_000) + by
  it.each<{ what: string; lie: () => Lies | Promise<Lies> }>([
    { what: 'for another client', lie: () => ({ claims: { aud: 'another' } }) },
    { what: 'for several clients, requested by another', lie: () => ({ claims: { aud: ['kis', 'another'], azp: 'another' } }) },
    { what: 'from another issuer', lie: () => ({ claims: { iss: 'https://evil.example' } }) },
    { what: 'from another sign-in', lie: () => ({ claims: { nonce: 'another' } }) },
    { what: 'that has expired', lie: () => ({ claims: { iat: seconds(-400), exp: seconds(-60) } }) },
    { what: 'without a subject', lie: () => ({ claims: { sub: undefined } }) },
    { what: 'signed by another key', lie: async () => ({ by: (await generateKeyPair('RS256')).privateKey }) },
    { what: 'with another person in the user info', lie: () => ({ userInfo: { sub: 'eve' } }) },
    { what: 'for a code that was used', lie: () => ({ tokenStatus: 400 }) },
  ])('that issues an ID token $what is refused', async ({ lie }) => {
    lies = await lie()
    await expect(signIn()).rejects.toMatchObject(reason('refused'))
  })

  it('may have a clock that differs by some seconds', async () => {
    lies = { claims: { iat: seconds(20), exp: seconds(320) } }
    expect(await signIn()).toMatchObject({ sub: 'ann' })
    lies = { claims: { iat: seconds(-320), exp: seconds(-20) } }
    expect(await signIn()).toMatchObject({ sub: 'ann' })
  })

  it('is unavailable when it fails, misreports its identity or never ends a response', async () => {
    lies = { tokenStatus: 500 }
    await expect(signIn()).rejects.toMatchObject(reason('unavailable'))
    for (const lie of [{ metadata: { issuer: 'https://evil.example' } }, { response: 'endless' }] as const) {
      lies = lie
      await expect(new Issuer(settings(), systemClock).start()).rejects.toMatchObject(reason('unavailable'))
    }
  })

  it('that was down is retried after a pause, by one request for all waiting callers', async () => {
    let now = Date.now()
    const issuer = new Issuer(settings(), { ...systemClock, now: () => new Date(now) })
    lies = { metadata: { issuer: 'https://evil.example' } }
    const failed = await Promise.allSettled([issuer.start(), issuer.start(), issuer.start()])
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    lies = {}
    await expect(issuer.start()).rejects.toMatchObject(reason('unavailable'))
    expect(requestedUrls).toHaveLength(1)
    now += 2_001
    await issuer.start()
    await issuer.start()
    expect(requestedUrls).toHaveLength(2)
  })
})
