import { once } from 'node:events'
import { createServer } from 'node:http'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import Provider from 'oidc-provider'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Browser } from '../support/browser.ts'
import { mockCatalog } from '../support/catalog.ts'
import { type Caller, createCaller, newCollection, newOrganization } from '../support/client.ts'
import { type MockEngine, startMockEngine } from '../support/engines/mock-engine.ts'
import { eventually } from '../support/eventually.ts'
import { freePorts, type Service, startEmbedded } from '../support/processes/service.ts'

const REDIRECT = 'http://127.0.0.1:9/callback'
const SCOPE = 'knowledge:read agents'

/** A real authorization server. Its tokens name the key that `apiKeyId` gives, and it lets everybody in. */
async function startIssuer(resource: string, apiKeyId: () => string) {
  const [port] = await freePorts(1)
  const url = `http://127.0.0.1:${port}`
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
  const jwk = { ...(await exportJWK(privateKey)), kid: 'signing', alg: 'RS256', use: 'sig' }
  const provider = new Provider(url, {
    jwks: { keys: [jwk] } as never,
    cookies: { keys: ['a secret of the test'] },
    pkce: { required: () => true },
    scopes: ['openid', ...SCOPE.split(' ')],
    extraTokenClaims: async () => ({ kis_api_key_id: apiKeyId() }),
    features: {
      registration: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: async () => ({
          scope: SCOPE,
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
  const server = createServer(provider.callback()).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return { url, privateKey, publicKey, server }
}

/** The code that the browser of a person who logs in and agrees brings back to the client. */
async function authorize(start: URL): Promise<string> {
  const back = await new Browser().logIn(start, { login: 'someone', back: REDIRECT })
  return back.searchParams.get('code') ?? Promise.reject(new Error(back.href))
}

/** What the client of MCP keeps of its authorization, in memory. */
function memoryProvider(): OAuthClientProvider & { readonly code: Promise<string> } {
  const code = Promise.withResolvers<string>()
  let information: never
  let tokens: never
  let verifier = ''
  return {
    code: code.promise,
    redirectUrl: REDIRECT,
    clientMetadata: { client_name: 'test', redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none', scope: SCOPE },
    clientInformation: () => information,
    saveClientInformation: (value) => {
      information = value as never
    },
    tokens: () => tokens,
    saveTokens: (value) => {
      tokens = value as never
    },
    saveCodeVerifier: (value) => {
      verifier = value
    },
    codeVerifier: () => verifier,
    redirectToAuthorization: (url) => {
      code.resolve(authorize(url))
    },
  }
}

describe('MCP client with required OAuth', () => {
  let service: Service
  let engine: MockEngine
  let issuer: Awaited<ReturnType<typeof startIssuer>>
  let operator: Caller
  let key: { readonly id: string; readonly key: string }
  let mcp: string

  beforeAll(async () => {
    const [port] = await freePorts(1)
    mcp = `http://127.0.0.1:${port}/mcp`
    issuer = await startIssuer(mcp, () => key.id)
    engine = await startMockEngine()
    service = await startEmbedded({
      catalog: mockCatalog(engine.url),
      env: { PORT: String(port), KIS_OAUTH_ISSUER: issuer.url, KIS_OAUTH_RESOURCE: mcp },
    })
    operator = createCaller(service, service.key)
    await newCollection(operator, 'mock-embed', 'papers')
    const { body } = await operator.rest('POST', '/v1/keys', { name: 'mcp', scopes: ['knowledge:read', 'agents', 'inference'] })
    key = body
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
    issuer?.server.closeAllConnections()
    issuer?.server.close()
  })

  const token = (claims: object, { by = issuer.privateKey, expires = '5m' }: { by?: CryptoKey; expires?: string } = {}) =>
    new SignJWT({ iss: issuer.url, aud: mcp, sub: 'someone', kis_api_key_id: key.id, ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'signing' })
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(by)
  const status = async (bearer: string, path = '/v1/collections') =>
    (await fetch(`${service.rest}${path}`, { headers: { authorization: `Bearer ${bearer}` } })).status

  it('finds the authorization server, registers, logs in, and searches with its token', async () => {
    const provider = memoryProvider()
    const first = new StreamableHTTPClientTransport(new URL(mcp), { authProvider: provider })
    await expect(new Client({ name: 'test', version: '1' }).connect(first)).rejects.toBeInstanceOf(UnauthorizedError)
    await first.finishAuth(await provider.code)

    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(mcp), { authProvider: provider }))
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('search_papers')
    const found = await client.callTool({ name: 'search_papers', arguments: { query: 'anything' } })
    expect(found.isError ?? false).toBe(false)
    await client.close()
  }, 60_000)

  it('learns the authorization server from a response without a token', async () => {
    const refused = await fetch(mcp, { method: 'POST' })
    const where = 'resource_metadata="http://127.0.0.1:'
    expect(refused.status).toBe(401)
    expect(refused.headers.get('www-authenticate')).toContain(where)
    const address = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate')!)![1]!
    expect(await (await fetch(address)).json()).toEqual({
      resource: mcp,
      authorization_servers: [issuer.url],
      scopes_supported: ['knowledge:read', 'agents'],
      bearer_methods_supported: ['header'],
    })
  })

  it('has the rights of its key, or fewer with requested scopes, and keys still work', async () => {
    expect(await status(await token({}))).toBe(200)
    expect(await status(await token({ scope: 'openid knowledge:read' }))).toBe(200)
    expect(await status(await token({ scope: 'agents' }), '/v1/agents')).toBe(200)
    expect(await status(await token({ scope: 'billing:read' }), '/v1/wallet')).toBe(403)
    expect(await status(await token({ scope: 'agents knowledge:write' }), '/v1/wallet')).toBe(403)
    expect(await status(key.key)).toBe(200)
  })

  it('is refused with tokens of another issuer, for another service, expired, or of no key', async () => {
    const foreignKeys = await generateKeyPair('RS256')
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${(await token({})).split('.')[1]}.x`
    for (const refused of [
      await token({}, { by: foreignKeys.privateKey }),
      await token({ aud: 'https://elsewhere.example/mcp' }),
      await token({ iss: 'https://elsewhere.example' }),
      await token({}, { expires: '-1m' }),
      await token({ kis_api_key_id: 'key_none' }),
      await token({ kis_api_key_id: 7 }),
      unsigned,
      'a.b.c',
    ])
      expect(await status(refused)).toBe(401)
  })

  it('is refused with tokens of a revoked key', async () => {
    const { body: other } = await operator.rest('POST', '/v1/keys', { name: 'short', scopes: ['knowledge:read'] })
    const bearer = await token({ kis_api_key_id: other.id })
    expect(await status(bearer)).toBe(200)
    await operator.rest('DELETE', `/v1/keys/${other.id}`)
    await eventually(async () => (await status(bearer)) === 401)
  })

  it('is refused with tokens of a suspended organization with a specific error, until it is resumed', async () => {
    const tenant = await newOrganization(operator, service)
    const { body: other } = await tenant.rest('POST', '/v1/keys', { name: 'mcp', scopes: ['knowledge:read'] })
    const bearer = await token({ kis_api_key_id: other.id })
    expect(await status(bearer)).toBe(200)
    await operator.rest('POST', `/v1/organizations/${tenant.organizationId}/suspend`, {})
    await eventually(async () => (await status(bearer)) === 403)
    const refused = await fetch(`${service.rest}/v1/collections`, { headers: { authorization: `Bearer ${bearer}` } })
    expect(await refused.json()).toMatchObject({ error: { code: 'organization_suspended' } })
    await operator.rest('POST', `/v1/organizations/${tenant.organizationId}/resume`)
    await eventually(async () => (await status(bearer)) === 200)
  })
})
