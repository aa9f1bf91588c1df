import { constants } from 'node:zlib'
import compress from '@fastify/compress'
import type { FastifyInstance } from 'fastify'

/** Smaller responses fit into one packet uncompressed. */
const LEAST_BYTES = 1024
/** Compressing up to this size takes less than 1 ms. Larger responses are compressed in other threads. */
const MOST_BYTES_AT_ONCE = 16 * 1024
/** 1 MB of JSON takes 66 ms of a busy core, and 2.6 s at brotli's own default, 11. */
const BROTLI_LEVEL = 4
/** The window that brotli allocates for each response: 256 KiB. Its default is 4 MiB. */
const BROTLI_WINDOW_BITS = 18
const GZIP_LEVEL = 6

/**
 * Text that is sent as a whole. Server-sent events must leave at once, and the format of a file already compresses it.
 */
const COMPRESSIBLE = /^(application\/([\w.-]+\+)?json|text\/(csv|html|css|javascript|plain))(;|$)/

/**
 * Compresses the responses of routes that are registered in this scope afterwards, as `Accept-Encoding` allows. A route
 * that streams files is registered with `compress: false`. Request bodies are not inflated.
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
