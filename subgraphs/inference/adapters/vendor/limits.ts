/** Waits for a vendor, in milliseconds. Tests shorten them. */
export interface Timeouts {
  readonly connectMs: number
  /** From the request to the answer's header. A call that is not streamed sends its header when the model has finished. */
  readonly headersMs: number
  readonly streamHeadersMs: number
  /** Between two pieces of an answer: of a stream two events that say something. Reasoning models are silent for minutes. */
  readonly bodyIdleMs: number
}

/** The whole-answer wait is that of the vendor's own client (openai-node: 10 minutes). */
export const TIMEOUTS: Timeouts = { connectMs: 10_000, headersMs: 600_000, streamHeadersMs: 300_000, bodyIdleMs: 300_000 }

/** Calls of one engine at once, each on a connection of its own; twice the concurrency of the largest built-in plan. More are refused, not queued. */
export const MAX_CALLS = 1_024

/** Below the 5 s after which Node's and uvicorn's servers close an idle connection, so that a call never meets a socket that is closing. */
export const KEEP_ALIVE_MS = 4_000

/** An answer must fit into one frame of a link between services (36 MiB). */
export const MAX_ANSWER_BYTES = 20 * 2 ** 20

/** 2,048 vectors of 4,096 numbers as base64 are 45 MB; as decimal numbers, which some vendors send all the same, about 100 MB. */
export const MAX_EMBEDDINGS_BYTES = 128 * 2 ** 20

/** Error bodies are short; more than this of one is not read. */
export const MAX_ERROR_BYTES = 64 * 2 ** 10

/** One event of a stream, in bytes or UTF-16 units; audio deltas are the longest known ones, some 100 kB. */
export const MAX_EVENT_LENGTH = 4 * 2 ** 20

/** All of a streamed answer. */
export const MAX_STREAM_BYTES = 256 * 2 ** 20

/** Bytes of chunks that wait for a slow reader before the vendor's socket is paused. */
export const MAX_WAITING_BYTES = 2 ** 20

/** After the end mark the vendor has this long to end its answer, so that the connection can serve again. */
export const MAX_DRAIN_MS = 1_000
