import type { IncomingHttpHeaders } from 'node:http'

/** A day, the longest that any browser caches a preflight (Chromium: two hours). */
const PREFLIGHT_MAX_AGE_SECONDS = 86_400

/**
 * The web pages whose scripts may use the service (CORS). Scripts send the key in a header, and cookies count for pages
 * of the service itself alone, so any page may use it by default.
 */
export class Origins {
  readonly #allowed: ReadonlySet<string> | null

  /** `allowed`: origins such as `https://app.example.com`. Null: all. */
  constructor(allowed: ReadonlySet<string> | null = null) {
    this.#allowed = allowed
  }

  /** Whether a page of this origin may use the service. Anything but a browser sends no origin, and may. */
  allows(origin: string | undefined): boolean {
    return this.#allowed === null || origin === undefined || this.#allowed.has(origin)
  }

  /** The headers of every answer. `exposed`: headers of answers that scripts may read. */
  answerHeaders({ origin }: IncomingHttpHeaders, exposed: string): Readonly<Record<string, string>> {
    if (this.#allowed === null) return { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed }
    if (origin === undefined || !this.#allowed.has(origin)) return { vary: 'origin' }
    return { vary: 'origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed }
  }

  /** More headers of an answer to a preflight. `methods`: those of the address, separated by commas. */
  preflightHeaders(headers: IncomingHttpHeaders, methods: string): Readonly<Record<string, string | number>> {
    return {
      'access-control-allow-methods': methods,
      'access-control-allow-headers': headers['access-control-request-headers'] ?? 'authorization, content-type',
      'access-control-max-age': PREFLIGHT_MAX_AGE_SECONDS,
    }
  }
}

/** Reads `*`, or origins separated by commas. Null: all. Throws what to do about a text that is neither. */
export function parseOrigins(text: string): ReadonlySet<string> | null {
  const origins = text.split(',').flatMap((origin) => origin.trim() || [])
  if (origins.length === 1 && origins[0] === '*') return null
  for (const origin of origins)
    if (URL.parse(origin)?.origin !== origin) throw new Error('must be *, or origins such as https://app.example.com, separated by commas')
  return new Set(origins)
}
