import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type ByteRange, type ByteRequest, type ByteResponse, respondWithBytes } from '../../../common/bytes/byte-response.ts'
import { isAbort, NotFound } from '../../../common/errors.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { acceptsEncoding } from '../../../common/server/request-headers.ts'
import type { KeyedDeps } from '../deps.ts'
import type { PackedResponse } from './keyed-outcome.ts'

/** Each piece is written in one tick of the event loop. */
const PIECE_BYTES = 256 * 1024

/**
 * Opens the response behind a path that a repeat has returned. A client that accepts gzip gets the bytes as they are
 * stored.
 * @throws {KisError} `permission_denied` if the path is forged or has expired.
 * @throws {NotFound} if the idempotency key has expired.
 */
export async function openResponse(
  { keyedCalls, bytePaths, log }: Pick<KeyedDeps, 'keyedCalls' | 'bytePaths' | 'log'>,
  { requestId, signal }: Pick<LinkContext, 'requestId' | 'signal'>,
  request: ByteRequest,
): Promise<ByteResponse> {
  const { organizationId, key } = await bytePaths.verify(request.path)
  const packed = await keyedCalls.findResponse(organizationId, key)
  if (!packed) throw new NotFound('response', key)
  const { gzipped, sizeBytes } = packed
  const stored = acceptsEncoding(request.headers, 'gzip')
    ? { encoding: 'gzip' as const, sizeBytes: gzipped.length, read: (range: ByteRange) => slices(gzipped, range) }
    : { sizeBytes, read: (range: ByteRange) => unzipped(packed, range) }
  const response = await respondWithBytes(
    request,
    // The path is that of one response, so its representations differ only in the encoding.
    { ...stored, organizationId, name: null, mediaType: 'application/json; charset=utf-8', sha256: stored.encoding ?? 'identity' },
    signal,
  )
  // The client sees only that the connection breaks.
  response.body.once('error', (error) => {
    if (!isAbort(error)) log.error({ requestId, err: error }, 'a replay was interrupted')
  })
  return response
}

async function* slices(bytes: Uint8Array, { offset, length }: ByteRange): AsyncGenerator<Uint8Array> {
  const end = offset + length
  for (let at = offset; at < end; at += PIECE_BYTES) yield bytes.slice(at, Math.min(at + PIECE_BYTES, end))
}

async function* unzipped({ gzipped }: PackedResponse, { offset, length }: ByteRange): AsyncGenerator<Uint8Array> {
  const end = offset + length
  let at = 0
  for await (const piece of Readable.from([gzipped]).pipe(createGunzip({ chunkSize: PIECE_BYTES })) as AsyncIterable<Buffer>) {
    const part = piece.subarray(Math.max(0, offset - at), Math.max(0, end - at))
    at += piece.length
    if (part.length > 0) yield part
    if (at >= end) return
  }
}
