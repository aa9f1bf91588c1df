import type { IncomingHttpHeaders } from 'node:http'
import type { SealedTexts } from '../../subgraphs/common/identity/sealed-text.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'

/** Lifetime of a sign-in: time to type a password and a second factor. */
const FLOW_MS = 600_000
/** The context of the seal: nothing else that this key seals can be put into the cookie. */
const SEAL_CONTEXT = 'sign-in'
/** Browsers store cookies of at most 4,096 bytes. */
const MAX_COOKIE_CHARACTERS = 4_000

/** What the service needs when a person returns from the issuer. */
export interface Flow {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly returnPath: string
  readonly invitation: string | null
  readonly organizationId: string | null
  /** The browser's previous session, which the new one replaces. */
  readonly previousSession: string | null
}

/**
 * Stores a started sign-in in a cookie of the browser, so that only this browser can complete it and the service stores
 * nothing. Nobody but the service can read or write the cookie's content.
 */
export class FlowCookie {
  readonly #texts: SealedTexts
  readonly #clock: Clock
  readonly #name: string
  readonly #attributes: string

  /** @param isSecure people reach the service by https */
  constructor(texts: SealedTexts, clock: Clock, isSecure: boolean) {
    this.#texts = texts
    this.#clock = clock
    this.#name = isSecure ? '__Host-kis_sign_in' : 'kis_sign_in'
    // Lax, because the issuer sends the browser back, and that request is cross-site.
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  }

  /** Returns the value of `set-cookie`. */
  write(flow: Flow): string {
    const sealed = this.#texts.seal(JSON.stringify({ ...flow, until: this.#clock.now().getTime() + FLOW_MS }), SEAL_CONTEXT)
    return `${this.#name}=${Buffer.from(sealed, 'base64').toString('base64url')}; Max-Age=${FLOW_MS / 1_000}; ${this.#attributes}`
  }

  /** Returns the value of `set-cookie` that deletes the cookie. */
  clear(): string {
    return `${this.#name}=; Max-Age=0; ${this.#attributes}`
  }

  /** Returns null if there is no cookie, it is too old, or the service did not write it. */
  read({ cookie }: IncomingHttpHeaders): Flow | null {
    const prefix = `${this.#name}=`
    const text = cookie
      ?.split(';')
      .map((pair) => pair.trim())
      .find((pair) => pair.startsWith(prefix))
      ?.slice(prefix.length)
    if (!text || text.length > MAX_COOKIE_CHARACTERS) return null
    try {
      const { until, ...flow } = JSON.parse(this.#texts.open(text, SEAL_CONTEXT)) as Flow & { readonly until: number }
      const left = until - this.#clock.now().getTime()
      return left > 0 && left <= FLOW_MS ? flow : null
    } catch {
      return null
    }
  }
}
