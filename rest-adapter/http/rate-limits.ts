import type { RateLimit, RateLimits } from '../../schema/errors.ts'

const LIMITS = 'requests { limit remaining resetMs } tokens { limit remaining resetMs }'
/** Selected by every operation of inference. */
export const RATE_LIMITS = `rateLimits { ${LIMITS} }` as const

/** Returns the headers of the chat protocol. A limit that the key does not have gets no header. */
export function rateLimitHeaders(rateLimits: RateLimits | null | undefined): Readonly<Record<string, string>> {
  return { ...toHeaders('requests', rateLimits?.requests), ...toHeaders('tokens', rateLimits?.tokens) }
}

function toHeaders(what: keyof RateLimits, rate: RateLimit | null | undefined): Readonly<Record<string, string>> {
  if (!rate) return {}
  return {
    [`x-ratelimit-limit-${what}`]: String(rate.limit),
    [`x-ratelimit-remaining-${what}`]: String(rate.remaining),
    [`x-ratelimit-reset-${what}`]: formatDuration(rate.resetMs),
  }
}

/** Writes a duration as Go does: `20ms`, `1.5s`, `6m0s`, `1h0m0s`; zero is `0s`. */
export function formatDuration(ms: number): string {
  if (ms > 0 && ms < 1_000) return `${ms}ms`
  const minutes = Math.floor(ms / 60_000)
  const seconds = `${(ms % 60_000) / 1_000}s`
  if (minutes === 0) return seconds
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`
}
