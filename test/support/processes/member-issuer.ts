import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { exportJWK, generateKeyPair } from 'jose'
import Provider from 'oidc-provider'
import { Browser } from '../browser.ts'
import { freePorts, type Service } from './service.ts'

/**
 * Where the service is for people. Nobody is there: browsers of tests open the service itself in its place, so that one
 * issuer serves processes on any ports.
 */
const PUBLIC = 'http://portal.example'
const CLIENT = { id: 'kis', secret: 'a secret of the client, long enough' }

/** A real OpenID Connect provider with people. Everybody may log in; what it says of them is in `people`. */
export class MemberIssuer implements AsyncDisposable {
  readonly url: string
  /** Claims by login name. Without: a verified address `<login>@example.org` and the login as name. */
  readonly members = new Map<string, Readonly<Record<string, unknown>>>()
  /** Where the service is for people. */
  readonly #publicUrl: string
  readonly #server: Server

  private constructor(url: string, publicUrl: string, server: Server) {
    this.url = url
    this.#publicUrl = publicUrl
    this.#server = server
  }

  /** A real browser needs a `publicUrl` that is there, and another `host` than the service's: issuers are on sites of their own. */
  static async start({ publicUrl = PUBLIC, host = '127.0.0.1' } = {}): Promise<MemberIssuer> {
    const [port] = await freePorts(1)
    const url = `http://${host}:${port}`
    const { privateKey } = await generateKeyPair('RS256', { extractable: true })
    const provider = new Provider(url, {
      jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'signing', alg: 'RS256', use: 'sig' }] } as never,
      cookies: { keys: ['a secret of the test'] },
      pkce: { required: () => true },
      scopes: ['openid', 'email', 'profile', 'organization'],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], organization: ['kis_organization', 'groups'] },
      clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [`${publicUrl}/session/oidc/callback`] }],
      features: { devInteractions: { enabled: true } },
      findAccount: (_context, accountId) => ({
        accountId,
        claims: () => ({
          ...{ sub: accountId, email: `${accountId}@example.org`, email_verified: true, name: accountId },
          ...issuer.members.get(accountId),
        }),
      }),
    })
    const server = createServer(provider.callback()).listen(port, '127.0.0.1')
    await once(server, 'listening')
    const issuer = new MemberIssuer(url, publicUrl, server)
    return issuer
  }

  /** The environment of a service whose people sign in here. */
  get env(): Readonly<Record<string, string>> {
    return {
      KIS_PUBLIC_URL: this.#publicUrl,
      KIS_OIDC_ISSUER: this.url,
      KIS_OIDC_CLIENT_ID: CLIENT.id,
      KIS_OIDC_CLIENT_SECRET: CLIENT.secret,
      KIS_OIDC_NAME: 'Example',
      KIS_OIDC_SCOPES: 'openid email profile organization',
      KIS_OIDC_ORGANIZATION_CLAIM: 'kis_organization',
      KIS_OIDC_ROLE_CLAIM: 'groups',
      KIS_OIDC_ROLES: 'staff=editor,leads=admin',
    }
  }

  /** Where the browser comes back to after the person logged in; it has not opened it. */
  async logIn(service: Pick<Service, 'graphql'>, browser: Browser, login: string, query: Readonly<Record<string, string>> = {}) {
    const start = new URL(`/session/oidc?${new URLSearchParams(query)}`, service.graphql)
    const back = await browser.logIn(start, { login, back: `${this.#publicUrl}/session/oidc/callback` })
    return new URL(back.pathname + back.search, service.graphql)
  }

  /** Signs in; gives the path to which the service sends the browser, and the browser with its cookie. */
  async signIn(
    service: Pick<Service, 'graphql'>,
    login: string,
    query: Readonly<Record<string, string>> = {},
    browser = new Browser(),
  ): Promise<{ readonly path: string; readonly browser: Browser }> {
    const response = await browser.send(await this.logIn(service, browser, login, query))
    return { path: response.headers.get('location') ?? '', browser }
  }

  /** From now on nobody answers at its address. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
