import type { IncomingHttpHeaders } from 'node:http'
import type { SealedTexts } from '../../subgraphs/common/identity/sealed-text.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'

/** Time to type a password and a second factor. */
const FLOW_MS = 600_000
/** Where the text was sealed: nothing else that this key seals can be put into the cookie. */
const SEAL_CONTEXT = 'sign-in'
/** Browsers keep cookies of at most 4,096 bytes. */
const MAX_COOKIE_CHARACTERS = 4_000

/** What the service must remember between sending a person to the issuer and their return. */
export interface Flow {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly returnPath: string
  readonly invitation: string | null
  readonly organizationId: string | null
  /** The session that the browser had, which the new one replaces. */
  readonly previousSession: string | null
}

/**
 * Keeps a sign-in that has begun in a cookie of the browser, so that only this browser can end it, and the service keeps
 * nothing. Nobody but the service can read or write it.
 */
export class FlowCookie {
  readonly #texts: SealedTexts
  readonly #clock: Clock
  readonly #name: string
  readonly #attributes: string

  /** `isSecure`: people reach the service by https. */
  constructor(texts: SealedTexts, clock: Clock, isSecure: boolean) {
    this.#texts = texts
    this.#clock = clock
    this.#name = isSecure ? '__Host-kis_sign_in' : 'kis_sign_in'
    // Lax: the issuer sends the browser back, which is no request of the same site.
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  }

  /** The value of `set-cookie`. */
  write(flow: Flow): string {
    const sealed = this.#texts.seal(JSON.stringify({ ...flow, until: this.#clock.now().getTime() + FLOW_MS }), SEAL_CONTEXT)
    return `${this.#name}=${Buffer.from(sealed, 'base64').toString('base64url')}; Max-Age=${FLOW_MS / 1_000}; ${this.#attributes}`
  }

  /** The value of `set-cookie` that deletes it. */
  clear(): string {
    return `${this.#name}=; Max-Age=0; ${this.#attributes}`
  }

  /** Null: there is none, it is too old, or the service did not write it. */
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
