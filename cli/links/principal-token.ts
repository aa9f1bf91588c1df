import { LRUCache } from 'lru-cache'
import { InvalidApiKey } from '../../subgraphs/common/errors.ts'
import type { Caller } from '../../subgraphs/common/identity/principal.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'

/**
 * Lifetime of a token. Sockets may live longer: the token is checked when they open, and the gateway closes them when a
 * key is revoked.
 */
const LIFETIME_S = 60
/** A cached token is reused while it is valid for at least this long. */
const LEAST_LEFT_MS = 20_000
/** Distinct callers, or tokens, cached at once. */
const MAX_CACHED = 10_000
/** Tolerated difference between the clocks of two hosts. */
const CLOCK_TOLERANCE_S = 30

/** Signs and verifies the tokens of callers. */
export interface PrincipalTokens {
  /** Creates a token that identifies the caller, for one audience. */
  sign(caller: Caller, audience: string): Promise<string>
  /** @throws {InvalidApiKey} the token is missing, forged, expired or for another audience */
  verify(token: string | undefined, audience: string): Promise<Caller>
}

/** The package is loaded for the first token: a service of one process has none. */
const loadJose = () => import('jose')

/** Callers as short-lived signed tokens (JWT, HS256), for calls between processes. */
export function principalTokens(key: Uint8Array, clock: Clock): PrincipalTokens {
  const signed = new LRUCache<string, { token: Promise<string>; until: number }>({ max: MAX_CACHED })
  const texts = new WeakMap<Caller, string>()
  const verified = new LRUCache<string, { caller: Caller; until: number }>({ max: MAX_CACHED })

  return {
    sign(caller, audience) {
      const text = texts.get(caller) ?? JSON.stringify(caller)
      texts.set(caller, text)
      const cacheKey = `${audience} ${text}`
      const now = clock.now().getTime()
      const known = signed.get(cacheKey)
      if (known && known.until - now > LEAST_LEFT_MS) return known.token
      const issued = Math.floor(now / 1000)
      const token = loadJose().then(({ SignJWT }) =>
        new SignJWT({ caller })
          .setProtectedHeader({ alg: 'HS256' })
          .setAudience(audience)
          .setIssuedAt(issued)
          .setExpirationTime(issued + LIFETIME_S)
          .sign(key),
      )
      signed.set(cacheKey, { token, until: (issued + LIFETIME_S) * 1000 })
      return token
    },

    async verify(token, audience) {
      if (!token) throw new InvalidApiKey()
      const now = clock.now()
      const cacheKey = `${audience} ${token}`
      const known = verified.get(cacheKey)
      if (known && known.until > now.getTime()) return known.caller
      const { jwtVerify } = await loadJose()
      const options = { audience, algorithms: ['HS256'], clockTolerance: CLOCK_TOLERANCE_S, currentDate: now }
      const checked = await jwtVerify(token, key, options).catch(() => null)
      if (!checked) throw new InvalidApiKey()
      const caller = checked.payload.caller as Caller
      verified.set(cacheKey, { caller, until: checked.payload.exp! * 1000 })
      return caller
    },
  }
}
