/** Longest waits for a vendor, in milliseconds. Tests shorten them. */
export interface Timeouts {
  readonly connectMs: number
  /** From the request to the response's header. Without streaming, the header arrives when the model has finished. */
  readonly headersMs: number
  readonly streamHeadersMs: number
  /**
   * Between two pieces of a response; in a stream, between two events with content. Reasoning models are silent for
   * minutes.
   */
  readonly bodyIdleMs: number
}

/** `headersMs` is the timeout of the vendor's own client (openai-node: 10 minutes). */
export const TIMEOUTS: Timeouts = { connectMs: 10_000, headersMs: 600_000, streamHeadersMs: 300_000, bodyIdleMs: 300_000 }

/**
 * Most concurrent calls of one engine, each on its own connection: twice the concurrency of the largest built-in plan.
 * More are refused, not queued.
 */
export const MAX_CALLS = 1_024

/**
 * Below the 5 s after which servers of Node and uvicorn close an idle connection, so that a call never uses a closing
 * socket.
 */
export const KEEP_ALIVE_MS = 4_000

/**
 * Bytes for one vector. 4,096 numbers take 22 KB as base64, and about 50 KB as decimal numbers, which some vendors send
 * anyway.
 */
const MAX_VECTOR_BYTES = 64 * 2 ** 10
const MAX_BESIDE_VECTORS_BYTES = 2 ** 20

/** Most bytes of a response with the vectors of so many texts: 129 MiB for 2,048. */
export function maxEmbeddingsBytes(texts: number): number {
  return texts * MAX_VECTOR_BYTES + MAX_BESIDE_VECTORS_BYTES
}

/** Most bytes that are read of an error's body. Such bodies are short. */
export const MAX_ERROR_BYTES = 64 * 2 ** 10

/** Longest event of a stream, in bytes or UTF-16 units. Audio deltas are the longest known ones, about 100 kB. */
export const MAX_EVENT_LENGTH = 4 * 2 ** 20

/** Bytes of chunks that wait for a slow reader before the vendor's socket is paused. */
export const MAX_WAITING_BYTES = 2 ** 20

/** How long after the end mark the vendor has to end its response, so that the connection can be reused. */
export const MAX_DRAIN_MS = 1_000
