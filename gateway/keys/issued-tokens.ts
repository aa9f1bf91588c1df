import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { InvalidApiKey, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { OAuthSettings } from '../../subgraphs/common/identity/credentials.ts'
import { SCOPES, type Scope } from '../../subgraphs/common/identity/principal.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'

/** Time in which the issuer answers for its metadata, and for its keys. */
const ISSUER_MS = 5_000
/** How long the issuer's keys are kept. */
const KEYS_MS = 600_000
/** Time between two requests for keys, however many tokens name unknown ones. */
const KEYS_PAUSE_MS = 30_000
/** What the clocks of the issuer and of this service may differ by. */
const CLOCK_TOLERANCE_S = 5
/** Signatures by a key that only the issuer has. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Where issuers publish their metadata: OpenID Connect, and RFC 8414, which puts its path before the issuer's. */
const METADATA = [
  ({ origin, pathname }: URL) => `${origin}${withoutSlash(pathname)}/.well-known/openid-configuration`,
  ({ origin, pathname }: URL) => `${origin}/.well-known/oauth-authorization-server${withoutSlash(pathname)}`,
]

/** What an access token says. */
export interface TokenClaims {
  readonly apiKeyId: string
  /** The scopes of the service that the token names; null: it names none, and has those of its key. */
  readonly scopes: readonly Scope[] | null
}

/** Judges access tokens of one issuer (JWTs, RFC 9068), by the keys that the issuer publishes. */
export class IssuedTokens {
  readonly #settings: OAuthSettings
  readonly #clock: Clock
  #keys: Promise<JWTVerifyGetKey> | undefined

  constructor(settings: OAuthSettings, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
  }

  /**
   * @throws {InvalidApiKey} the token is not the issuer's, not for this service, over, or names no key
   * @throws {ServiceUnavailable} the issuer does not answer
   */
  async read(token: string): Promise<TokenClaims> {
    const { issuer, resource, keyClaim } = this.#settings
    if (!claimsToBeOf(issuer, token)) throw new InvalidApiKey()
    const keys = await this.#issuerKeys()
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience: resource,
        algorithms: ALGORITHMS,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: this.#clock.now(),
      })
      const apiKeyId = payload[keyClaim]
      if (typeof apiKeyId !== 'string') throw new InvalidApiKey()
      return { apiKeyId, scopes: readScopes(payload) }
    } catch (error) {
      if (error instanceof InvalidApiKey) throw error
      if (isOfIssuer(error)) throw new ServiceUnavailable('The issuer of access tokens', { cause: error })
      throw new InvalidApiKey()
    }
  }

  #issuerKeys(): Promise<JWTVerifyGetKey> {
    this.#keys ??= this.#findKeys().catch((cause: unknown) => {
      this.#keys = undefined
      throw new ServiceUnavailable('The issuer of access tokens', { cause })
    })
    return this.#keys
  }

  async #findKeys(): Promise<JWTVerifyGetKey> {
    const { issuer } = this.#settings
    for (const metadataUrl of METADATA) {
      const response = await fetch(metadataUrl(new URL(issuer)), { signal: AbortSignal.timeout(ISSUER_MS), redirect: 'error' })
      if (!response.ok) continue
      const metadata = (await response.json()) as { readonly issuer?: unknown; readonly jwks_uri?: unknown }
      if (metadata.issuer !== issuer) throw new Error(`the metadata is of the issuer ${String(metadata.issuer)}, not ${issuer}`)
      return createRemoteJWKSet(new URL(String(metadata.jwks_uri)), {
        timeoutDuration: ISSUER_MS,
        cacheMaxAge: KEYS_MS,
        cooldownDuration: KEYS_PAUSE_MS,
      })
    }
    throw new Error(`${issuer} has no metadata`)
  }
}

/** Reads the token without checking its signature. So a text that is no token of the issuer costs no request. */
function claimsToBeOf(issuer: string, token: string): boolean {
  try {
    return ALGORITHMS.includes(String(decodeProtectedHeader(token).alg)) && decodeJwt(token).iss === issuer
  } catch {
    return false
  }
}

/** Whether the issuer failed to give its keys. Every other error of jose is about the token. */
function isOfIssuer(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError) || error.code === 'ERR_JOSE_GENERIC') return true
  return error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error instanceof errors.JWKInvalid
}

function readScopes({ scope, scp }: JWTPayload): readonly Scope[] | null {
  const named = typeof scope === 'string' ? scope.split(' ') : Array.isArray(scp) ? scp : []
  const ours = SCOPES.filter((each) => named.includes(each))
  return ours.length > 0 ? ours : null
}

function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}
