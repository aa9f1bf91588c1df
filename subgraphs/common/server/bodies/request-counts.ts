import type { IncomingHttpHeaders } from 'node:http'
import { ERRORS } from '../../../../schema/errors.ts'
import { gatewayOperation, type OperationText } from '../../../../schema/operations.ts'
import { KisError } from '../../errors.ts'
import { type Link, type LinkContext, request } from '../../link/link.ts'

/** Counts what is no call of a model against the limits of its key. The link is to inference, or to the gateway. */

const LIMITS = 'requests { limit remaining resetMs } tokens { limit remaining resetMs }'
const LEFT = gatewayOperation(`query RateLimits { rateLimits { ${LIMITS} } }`)
const COUNT = gatewayOperation(`mutation CountRequest { countRequest { ${LIMITS} } }`)
const COUNT_BODY = gatewayOperation(`mutation CountBody { countRequest(isRefused: true) { ${LIMITS} } }`)

/** Of a call that only counts. */
const TIMEOUT_MS = 2_000
const MINUTE_MS = 60_000

/**
 * Takes nothing. Call it before a large body is read, which would be refused after all the work of reading it.
 * @throws {KisError} `rate_limit_exceeded`: the key has no request left, or owes one for a large body
 */
export async function requireRequestLeft<Who>(link: Link<Who>, context: LinkContext<Who>): Promise<void> {
  const rateLimits = (await unlessAway(link, LEFT, context))?.rateLimits ?? null
  if (rateLimits?.requests?.remaining !== 0) return
  const { limit, resetMs } = rateLimits.requests
  // The first becomes free before all the others.
  const retryAfterMs = Math.ceil(Math.max(1, resetMs - MINUTE_MS * (1 - 1 / Math.max(1, limit))))
  const text = `Rate limit reached: the key may make ${limit} requests a minute. Try again in ${retryAfterMs / 1_000} s.`
  throw new KisError('rate_limit_exceeded', text, { retryAfterMs, rateLimits })
}

/**
 * Returns what the key has left.
 * @throws {KisError} `rate_limit_exceeded`: nothing
 */
export async function countRequest<Who>(link: Link<Who>, context: LinkContext<Who>) {
  return (await unlessAway(link, COUNT, context))?.countRequest
}

/** Counts a request whose large body was read, unless a call of a model has counted it. Returns what the key has left. */
export async function countBody<Who>(link: Link<Who>, context: LinkContext<Who>) {
  return (await unlessAway(link, COUNT_BODY, context))?.countRequest ?? null
}

/** While the part that counts does not answer, requests go on without. */
async function unlessAway<Data, Who>(
  link: Link<Who>,
  query: OperationText<Data, Record<string, never>>,
  { caller, requestId }: LinkContext<Who>,
): Promise<Data | undefined> {
  // Not the signal of the request: a caller who has left counts as well.
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

/** The length of a body by its headers; infinite when they do not state it. */
export function readContentLength(headers: IncomingHttpHeaders): number {
  if (headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY
  return Number(headers['content-length'] ?? 0)
}

/** The body is so large that the request counts against the key's limits, whatever it asks for. */
export function countsBySize(headers: IncomingHttpHeaders): boolean {
  return readContentLength(headers) > COUNTED_BODY_BYTES
}

/**
 * The request itself was at fault, or above a limit of its key after its body was read. A limit may also refuse it
 * before, and a vendor's error ends a call that counts already.
 */
export function isRefusal({ code, vendorCode }: Pick<KisError, 'code' | 'vendorCode'>, wasRead: boolean): boolean {
  const { status } = ERRORS[code]
  return status >= 400 && status < 500 && status !== 401 && status !== 408 && (status !== 429 || wasRead) && vendorCode === null
}
