import type { FastifyRequest, RequestPayload } from 'fastify'
import { KisError } from '../../errors.ts'

/** Pieces of a chunked body that may be of any length, such as the last of each write. */
const FREE_PIECES = 4_096
/**
 * What the others have at least, in the mean. Each piece holds a few hundred bytes beside its own until the body is
 * whole.
 */
const LEAST_MEAN_BYTES = 64

/**
 * A `preParsing` hook: ends a chunked body that comes byte by byte. 20 MB in pieces of one byte would hold some
 * gigabytes, though the body is no longer than it may be. Whoever reads the body answers with the error.
 */
export function endTinyPieces(
  { raw }: FastifyRequest,
  _reply: unknown,
  payload: RequestPayload,
  done: (error: null, payload: RequestPayload) => void,
): void {
  if (raw.headers['transfer-encoding'] !== undefined) {
    let [pieces, bytes] = [0, 0]
    const count = ({ length }: Buffer) => {
      pieces += 1
      bytes += length
      if (pieces <= FREE_PIECES || bytes >= pieces * LEAST_MEAN_BYTES) return
      raw.off('data', count)
      const error = new KisError('invalid_request', 'The body comes in pieces that are too small. Send it in larger ones.')
      // The reader still gets this piece, and might be done with it.
      process.nextTick(() => raw.listenerCount('error') > 0 && raw.emit('error', error))
    }
    // Nothing flows before the next turn, and the body's reader listens by then.
    raw.on('data', count)
  }
  done(null, payload)
}
