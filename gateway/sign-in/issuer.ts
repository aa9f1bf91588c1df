import * as oidc from 'openid-client'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { type Claims, isWhole } from './claims.ts'
import type { Flow } from './flow-cookie.ts'
import type { OidcSettings } from './oidc-settings.ts'

/** Limit of one request to the issuer. */
const TIMEOUT_S = 5
/** How long the issuer's metadata is cached. Its keys are cached separately, for 5 minutes. */
const METADATA_MS = 3_600_000
/** After a failure the issuer is not called for this long. */
const PAUSE_MS = 2_000
/** Bytes of one response. Metadata, keys and tokens have some kilobytes. */
const MAX_RESPONSE_BYTES = 1_048_576
/** Tolerated difference between the clocks of the issuer and of this service. */
const CLOCK_TOLERANCE_S = 30
/** Returning people that wait for the issuer at once. Beyond this limit they get an error that says to try again. */
const MAX_IN_FLIGHT = 100

/**
 * Why the issuer did not identify a person. `unavailable`: it did not respond, or failed; `refused`: its response is
 * wrong.
 */
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

/** The provider by which people sign in. Its failures affect nobody else: keys and sessions do not need it. */
export class Issuer {
  readonly #settings: OidcSettings
  readonly #clock: Clock
  #known: Known | undefined
  #inFlight = 0

  constructor(settings: OidcSettings, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
  }

  get redirectUri(): string {
    return `${this.#settings.publicUrl}/session/oidc/callback`
  }

  /** Returns the address to send the browser to, and the state to store until it comes back. @throws {IssuerFailure} */
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

  /** Returns the claims of the person whose browser came back with `query`. @throws {IssuerFailure} */
  async end(query: string, { state, nonce, verifier }: Flow): Promise<Claims> {
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new IssuerFailure('unavailable')
    this.#inFlight += 1
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
      this.#inFlight -= 1
    }
  }

  async #configuration(): Promise<oidc.Configuration> {
    const now = this.#clock.now().getTime()
    if (!this.#known || this.#known.until <= now || this.#known.until > now + METADATA_MS) {
      const configuration = this.#discover()
      const known = { configuration, until: now + METADATA_MS }
      this.#known = known
      // Everybody who comes meanwhile waits for the same result; those who come right after a failure get it, too.
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
    // By default the library does not check the signature of an ID token that comes from the issuer's own address.
    oidc.enableNonRepudiationChecks(configuration)
    if (isPlain) oidc.allowInsecureRequests(configuration)
    return configuration
  }
}

/** A `fetch` that follows no redirect, rejects error responses, and limits the size of the response. */
async function limitedFetch(url: string, options: oidc.CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, { ...options, redirect: 'manual' } as RequestInit)
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of response.body ?? []) {
    size += piece.length
    if (size > MAX_RESPONSE_BYTES) throw new Error(`a response of the issuer has more than ${MAX_RESPONSE_BYTES} bytes`)
    pieces.push(piece)
  }
  const { status, headers } = response
  if (status >= 500) throw new IssuerFailure('unavailable', new Error(`${url} returned status ${status}`))
  const isEmpty = status === 204 || status === 304
  return new Response(isEmpty ? null : Buffer.concat(pieces), { status, headers })
}

function rethrow(error: unknown): never {
  if (error instanceof oidc.AuthorizationResponseError) throw new IssuerFailure(reasonOf(error.error), error)
  const { code, name, cause } = error as { readonly code?: unknown; readonly name?: unknown; readonly cause?: unknown }
  for (const each of [error, cause]) if (each instanceof IssuerFailure) throw each
  const isLate = name === 'TimeoutError' || name === 'AbortError' || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT'
  // `fetch` reports an unreachable host by a bare `TypeError`.
  throw new IssuerFailure(isLate || (error instanceof TypeError && code === undefined) ? 'unavailable' : 'refused', error)
}

/** Returns the reason for an error that the issuer sent instead of a code (RFC 6749, section 4.1.2.1). */
function reasonOf(error: string): IssuerFailure['reason'] {
  if (error === 'access_denied') return 'cancelled'
  return error === 'server_error' || error === 'temporarily_unavailable' ? 'unavailable' : 'refused'
}
