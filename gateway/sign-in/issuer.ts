import * as oidc from 'openid-client'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { type Claims, isWhole } from './claims.ts'
import type { Flow } from './flow-cookie.ts'
import type { OidcSettings } from './oidc-settings.ts'

/** Time in which the issuer answers one request. */
const TIMEOUT_S = 5
/** How long what the issuer says of itself is kept. Its keys are kept beside, for 5 minutes. */
const METADATA_MS = 3_600_000
/** After a failure the issuer is left alone for this long. */
const PAUSE_MS = 2_000
/** Metadata, keys and tokens have some kilobytes. */
const MAX_RESPONSE_BYTES = 1_048_576
/** What the clocks of the issuer and of this service may differ by. */
const CLOCK_TOLERANCE_S = 30
/** People whose return waits for the issuer at once. Beyond it they are asked to try again. */
const MAX_UNDER_WAY = 100

/** Why the issuer did not say who somebody is. `unavailable`: it did not answer, or failed; `refused`: what it said is wrong. */
export class IssuerFailure extends Error {
  readonly reason: 'unavailable' | 'refused' | 'cancelled'

  constructor(reason: IssuerFailure['reason'], cause?: unknown) {
    super(`the issuer: ${reason}`, { cause })
    this.reason = reason
  }
}

interface Known {
  readonly configuration: Promise<oidc.Configuration>
  readonly until: number
}

/** The provider by which people sign in. Its failures concern nobody else: keys and sessions do not need it. */
export class Issuer {
  readonly #settings: OidcSettings
  readonly #clock: Clock
  #known: Known | undefined
  #underWay = 0

  constructor(settings: OidcSettings, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
  }

  get redirectUri(): string {
    return `${this.#settings.publicUrl}/session/oidc/callback`
  }

  /** Where to send the browser, and what to remember until it comes back. @throws {IssuerFailure} */
  async start(): Promise<Pick<Flow, 'state' | 'nonce' | 'verifier'> & { readonly url: URL }> {
    const configuration = await this.#configuration()
    const flow = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() }
    const url = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: this.redirectUri,
      scope: this.#settings.scopes,
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: 'S256',
    })
    return { url, ...flow }
  }

  /** The claims of the person with whom the browser came back. `query`: what it brought. @throws {IssuerFailure} */
  async end(query: string, { state, nonce, verifier }: Flow): Promise<Claims> {
    if (this.#underWay >= MAX_UNDER_WAY) throw new IssuerFailure('unavailable')
    this.#underWay += 1
    try {
      const configuration = await this.#configuration()
      const tokens = await oidc
        .authorizationCodeGrant(configuration, new URL(`${this.redirectUri}?${query}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
        })
        .catch(rethrow)
      const claims: Claims = { ...tokens.claims() }
      if (isWhole(claims, this.#settings) || !configuration.serverMetadata().userinfo_endpoint) return claims
      const more = await oidc.fetchUserInfo(configuration, tokens.access_token, String(claims.sub)).catch(rethrow)
      return { ...more, ...claims }
    } finally {
      this.#underWay -= 1
    }
  }

  async #configuration(): Promise<oidc.Configuration> {
    const now = this.#clock.now().getTime()
    if (!this.#known || this.#known.until <= now || this.#known.until > now + METADATA_MS) {
      const configuration = this.#discover()
      const known = { configuration, until: now + METADATA_MS }
      this.#known = known
      // People who come meanwhile wait for the same answer; those who come right after a failure get it, too.
      configuration.catch(() => {
        if (this.#known === known) this.#known = { configuration, until: this.#clock.now().getTime() + PAUSE_MS }
      })
    }
    return this.#known.configuration.catch((cause: unknown) => {
      throw new IssuerFailure('unavailable', cause)
    })
  }

  async #discover(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings
    const isPlain = issuer.startsWith('http:')
    const found = await oidc.discovery(new URL(issuer), clientId, undefined, oidc.None(), {
      timeout: TIMEOUT_S,
      [oidc.customFetch]: limitedFetch,
      execute: isPlain ? [oidc.allowInsecureRequests] : [],
    })
    const server = found.serverMetadata()
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const auth = methods.includes('client_secret_basic') ? oidc.ClientSecretBasic : oidc.ClientSecretPost
    const skewS = Math.round((this.#clock.now().getTime() - Date.now()) / 1_000)
    const metadata = { [oidc.clockSkew]: skewS, [oidc.clockTolerance]: CLOCK_TOLERANCE_S }
    const configuration = new oidc.Configuration(server, clientId, metadata, clientSecret === null ? oidc.None() : auth(clientSecret))
    configuration.timeout = TIMEOUT_S
    configuration[oidc.customFetch] = limitedFetch
    // The library would trust an id token without its signature, because it comes from the issuer's own address.
    oidc.enableNonRepudiationChecks(configuration)
    if (isPlain) oidc.allowInsecureRequests(configuration)
    return configuration
  }
}

/** `fetch` that follows no redirect, takes no failure for an answer, and reads no more than the longest answer that counts. */
async function limitedFetch(url: string, options: oidc.CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, { ...options, redirect: 'manual' } as RequestInit)
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of response.body ?? []) {
    size += piece.length
    if (size > MAX_RESPONSE_BYTES) throw new Error(`an answer of the issuer has more than ${MAX_RESPONSE_BYTES} bytes`)
    pieces.push(piece)
  }
  const { status, headers } = response
  if (status >= 500) throw new IssuerFailure('unavailable', new Error(`${url} answered ${status}`))
  const isEmpty = status === 204 || status === 304
  return new Response(isEmpty ? null : Buffer.concat(pieces), { status, headers })
}

function rethrow(error: unknown): never {
  if (error instanceof oidc.AuthorizationResponseError) throw new IssuerFailure(reasonOf(error.error), error)
  const { code, name, cause } = error as { readonly code?: unknown; readonly name?: unknown; readonly cause?: unknown }
  for (const each of [error, cause]) if (each instanceof IssuerFailure) throw each
  const isLate = name === 'TimeoutError' || name === 'AbortError' || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT'
  // `fetch` says that nobody answered by a bare `TypeError`.
  throw new IssuerFailure(isLate || (error instanceof TypeError && code === undefined) ? 'unavailable' : 'refused', error)
}

/** What the issuer says in place of a code (RFC 6749, section 4.1.2.1). */
function reasonOf(error: string): IssuerFailure['reason'] {
  if (error === 'access_denied') return 'cancelled'
  return error === 'server_error' || error === 'temporarily_unavailable' ? 'unavailable' : 'refused'
}
