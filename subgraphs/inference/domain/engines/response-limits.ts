/** An answer must fit into one frame of a link between services (36 MiB). */
export const MAX_RESPONSE_BYTES = 20 * 2 ** 20

/** A whole streamed answer. */
export const MAX_STREAM_BYTES = 256 * 2 ** 20
