import { constants } from 'node:zlib'
import compress from '@fastify/compress'
import type { FastifyInstance } from 'fastify'

/** Smaller answers fit into one packet as they are. */
const LEAST_BYTES = 1024
/** Up to here compressing takes less than a millisecond. More is done in other threads. */
const MOST_BYTES_AT_ONCE = 16 * 1024
/** A megabyte of JSON takes 66 ms of a busy core, and 2.6 s at brotli's own default, 11. */
const BROTLI_LEVEL = 4
/** Of the window that brotli holds for each answer: 256 KiB. Its default is 4 MiB. */
const BROTLI_WINDOW_BITS = 18
const GZIP_LEVEL = 6

/** Text that is sent as a whole. Server-sent events must leave at once, and files have been compressed by their format. */
const COMPRESSIBLE = /^(application\/([\w.-]+\+)?json|text\/(csv|html|css|javascript|plain))(;|$)/

/**
 * Compresses the answers of routes that are registered in this scope afterwards, as `Accept-Encoding` allows. A route
 * that streams files is registered with `compress: false`. Bodies of requests are not inflated.
 */
export async function compressResponses(app: FastifyInstance): Promise<void> {
  await app.register(compress, {
    encodings: ['br', 'gzip'],
    threshold: LEAST_BYTES,
    syncThreshold: MOST_BYTES_AT_ONCE,
    customTypes: COMPRESSIBLE,
    brotliOptions: {
      params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_LEVEL, [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS },
    },
    zlibOptions: { level: GZIP_LEVEL },
    globalDecompression: false,
  })
}
