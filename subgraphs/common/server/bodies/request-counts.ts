import type { IncomingHttpHeaders } from 'node:http'
import { ERRORS } from '../../../../schema/errors.ts'
import { gatewayOperation, type OperationText } from '../../../../schema/operations.ts'
import { KisError } from '../../errors.ts'
import { type Link, type LinkContext, request } from '../../link/link.ts'

/** Counts requests that call no model against the limits of their key. The link is to inference, or to the gateway. */

const LIMITS = 'requests { limit remaining resetMs } tokens { limit remaining resetMs }'
const LEFT = gatewayOperation(`query RateLimits { rateLimits { ${LIMITS} } }`)
const COUNT = gatewayOperation(`mutation CountRequest { countRequest { ${LIMITS} } }`)
const COUNT_BODY = gatewayOperation(`mutation CountBody { countRequest(isRefused: true) { ${LIMITS} } }`)

/** Time limit of a call that only counts. */
const TIMEOUT_MS = 2_000
const MINUTE_MS = 60_000

/**
 * Checks the limit without counting. Call it before a large body is read, to refuse the request before all the work of
 * reading.
 * @throws {KisError} `rate_limit_exceeded`: the key has no request left, or owes one for a large body
 */
export async function requireRequestLeft<Who>(link: Link<Who>, context: LinkContext<Who>): Promise<void> {
  const rateLimits = (await unlessAway(link, LEFT, context))?.rateLimits ?? null
  if (rateLimits?.requests?.remaining !== 0) return
  const { limit, resetMs } = rateLimits.requests
  // The first request becomes free before all the others.
  const retryAfterMs = Math.ceil(Math.max(1, resetMs - MINUTE_MS * (1 - 1 / Math.max(1, limit))))
  const text = `Rate limit reached: the key may make ${limit} requests a minute. Try again in ${retryAfterMs / 1_000} s.`
  throw new KisError('rate_limit_exceeded', text, { retryAfterMs, rateLimits })
}

/**
 * Counts a request. Returns what the key has left.
 * @throws {KisError} `rate_limit_exceeded`: nothing is left
 */
export async function countRequest<Who>(link: Link<Who>, context: LinkContext<Who>) {
  return (await unlessAway(link, COUNT, context))?.countRequest
}

/**
 * Counts a request whose large body was read, unless a call of a model has counted it. Returns what the key has left.
 */
export async function countBody<Who>(link: Link<Who>, context: LinkContext<Who>) {
  return (await unlessAway(link, COUNT_BODY, context))?.countRequest ?? null
}

/** While the counting part does not respond, requests continue without being counted. */
async function unlessAway<Data, Who>(
  link: Link<Who>,
  query: OperationText<Data, Record<string, never>>,
  { caller, requestId }: LinkContext<Who>,
): Promise<Data | undefined> {
  // The signal of the request is not used: a caller who has disconnected counts as well.
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    return await request(link, { query, variables: {} }, { caller, requestId, signal })
  } catch (error) {
    if (signal.aborted || (error instanceof KisError && error.code === 'service_unavailable')) return undefined
    throw error
  }
}

/** Reading and parsing a body of this size takes about as long as the rest of a request. */
const COUNTED_BODY_BYTES = 64 * 1024

/** Returns the length of a body by its headers; infinite when they do not state it. */
export function readContentLength(headers: IncomingHttpHeaders): number {
  if (headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY
  return Number(headers['content-length'] ?? 0)
}

/** Returns whether the body is so large that the request counts against the key's limits, whatever it requests. */
export function countsBySize(headers: IncomingHttpHeaders): boolean {
  return readContentLength(headers) > COUNTED_BODY_BYTES
}

/**
 * Returns whether the request itself was wrong, or exceeded a limit of its key after its body was read. Before that, a
 * limit may refuse a request that then does not count; a vendor's error ends a call that counts already.
 */
export function isRefusal({ code, vendorCode }: Pick<KisError, 'code' | 'vendorCode'>, wasRead: boolean): boolean {
  const { status } = ERRORS[code]
  return status >= 400 && status < 500 && status !== 401 && status !== 408 && (status !== 429 || wasRead) && vendorCode === null
}
