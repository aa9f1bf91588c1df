/** Largest response. It must fit into one frame of a link between services (36 MiB). */
export const MAX_RESPONSE_BYTES = 20 * 2 ** 20

/** Largest streamed response in all. */
export const MAX_STREAM_BYTES = 256 * 2 ** 20
