import type { IncomingHttpHeaders } from 'node:http'
import cors, { type FastifyCorsOptions } from '@fastify/cors'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Absent: scripts of other origins cannot read the route's responses. */
    cors?: FastifyCorsOptions
  }
}

/** A day, the longest that any browser caches a preflight (Chromium: two hours). */
const PREFLIGHT_MAX_AGE_SECONDS = 86_400

/** Gives CORS to the routes of an app that have it in their `config`, and to no others. */
export async function enableCors(app: FastifyInstance): Promise<void> {
  // The parts of one process share an app. The plugin has a route of its own, `OPTIONS *`.
  if (app.hasPlugin('@fastify/cors')) return
  await app.register(cors, { origin: false, maxAge: PREFLIGHT_MAX_AGE_SECONDS, strictPreflight: false, preflightContinue: true })
}

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

  /** CORS of a route, for its `config`. `exposedHeaders`: headers of responses that scripts may read. */
  corsOfRoute(exposedHeaders: string, methods?: string): FastifyCorsOptions {
    const origin = this.#allowed === null ? '*' : async (sent: string | undefined) => sent !== undefined && this.allows(sent)
    return { origin, exposedHeaders, ...(methods !== undefined && { methods }) }
  }

  /** The headers of a response that does not come from a route. */
  responseHeaders({ origin }: IncomingHttpHeaders, exposed: string): Readonly<Record<string, string>> {
    if (this.#allowed === null) return { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed }
    if (origin === undefined || !this.#allowed.has(origin)) return { vary: 'origin' }
    return { vary: 'origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed }
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
