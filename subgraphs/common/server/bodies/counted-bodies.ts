import type { IncomingHttpHeaders } from 'node:http'
import { ERRORS } from '../../../../schema/errors.ts'
import type { KisError } from '../../errors.ts'

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
