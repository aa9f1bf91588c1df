import type { AudioFormat } from './audio-reader.ts'

/** JSON objects of the chat protocol, kept whole: unknown fields pass unchanged. */
export type ProtocolObject = Readonly<Record<string, unknown>>

/**
 * The signal has aborted before anything of the request was sent. So the engine has no work of it, and bills nothing.
 * `cause` is the reason of the signal.
 */
export class NeverSent extends Error {
  /** As every error of an aborted signal has it (`isAbort`). */
  readonly code = 'ABORT_ERR'

  constructor(cause: unknown) {
    super('The engine was not asked.', { cause })
    this.name = 'NeverAsked'
  }
}

/**
 * Counts that do not overlap: input tokens that the engine read from or wrote to its cache are not counted as input
 * tokens.
 */
export interface TokenUsage {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
}

export interface EngineCall {
  /** The model's name at the engine. */
  readonly engineModel: string
  readonly requestId: string
  /**
   * With an engine that does one thing at a time, organizations take turns. Absent: the service itself takes a turn
   * like one of them.
   */
  readonly organizationId?: string
}

export interface ChatCall extends EngineCall {
  /** Most tokens of one choice of the model, which the hold covers if the request gives no bound; null: unknown. */
  readonly maxOutputTokens: number | null
  /**
   * Called, before the answer begins, with the name of each field that was left out because the vendor cannot honour
   * it.
   */
  warn(field: string): void
}

export interface EmbeddingCall extends EngineCall {
  /** Passed on only if the caller asks for fewer than the model has; else null. */
  readonly dimensions: number | null
  /** The purpose of the texts, for models that distinguish the two without a prefix. */
  readonly purpose: 'query' | 'passage'
  /** Asks for token states, too. An engine without them gives none. */
  readonly withTokenEmbeddings?: boolean
}

/**
 * A vendor of chat models. Failures are `KisError`s: `invalid_request` and its family for the vendor's 400, 413 and
 * 422; `engine_error`, also for a model that the vendor does not have; `rate_limit_exceeded`; `engine_unavailable`,
 * also when the vendor refuses the operator's key or account; `engine_timeout`. `vendorCode` and `retryAfterMs` are the
 * vendor's. An engine repeats nothing itself. After `engine_unavailable`, `rate_limit_exceeded` and a repeatable
 * `EngineFailure` the vendor bills nothing for the call. Aborting the signal ends the vendor's work within 1 s.
 */
export interface ChatEngine {
  /**
   * Whether the vendor itself fetches images from public addresses. If not, images must be `data:` URIs, and addresses
   * are refused.
   */
  readonly fetchesImages: boolean
  /** Whether responses have the log probabilities that a request asks for. */
  readonly hasLogprobs: boolean
  /** Gives the vendor's completion object, with `usage` if the vendor sent one. */
  complete(call: ChatCall, request: ProtocolObject, signal: AbortSignal): Promise<ProtocolObject>
  /**
   * Streams the protocol's chunks. Resolves with the header of the answer, so a failure before the first byte rejects.
   * The vendor is always asked for usage, which comes in a last chunk with empty `choices` (with some vendors on
   * another chunk). Each item has the chunks that arrived together; nothing is held back. The iterator throws a
   * KisError when the vendor fails or the connection ends before the vendor's end mark. Its `return()` ends the
   * vendor's work at once.
   */
  stream(call: ChatCall, request: ProtocolObject, signal: AbortSignal): Promise<AsyncIterableIterator<readonly ProtocolObject[]>>
}

/** What a model's cosines are worth, measured on questions and passages. */
export interface CosineCalibration {
  /** The mean vectors of general questions. */
  readonly arabicAnchor: Float32Array
  readonly englishAnchor: Float32Array
  /** A logistic curve from a cosine, corrected by the anchors, to the share of passages that answer. */
  readonly midpoint: number
  readonly slope: number
}

/** A vendor of embedding models. Fails like `ChatEngine`. */
export interface EmbeddingEngine {
  /** Null: not measured, or the engine has several models. */
  readonly calibration: CosineCalibration | null
  /** Most texts of one call. */
  readonly maxBatch: number
  /**
   * The number of tokens of each text, as the model counts them, without marks. An upper estimate when the model's
   * tokenizer is not available (see `counted`).
   */
  countTokens(texts: readonly string[], signal: AbortSignal, organizationId?: string): Promise<readonly number[]>
  /**
   * The tokens of each text, without marks, which `embed` takes in place of the text. Absent: the model's tokenizer is not
   * available.
   */
  tokenize?(texts: readonly string[], signal: AbortSignal, organizationId?: string): Promise<readonly (readonly number[])[]>
  /**
   * Gives one vector for each text, in order, each finite and of length 1 (L2). `tokens` is the vendor's report, or
   * else the count.
   * @throws {KisError} `engine_error`: the vendor sent too few vectors, a wrong length, or NaN
   */
  embed(call: EmbeddingCall, input: readonly string[] | readonly (readonly number[])[], signal: AbortSignal): Promise<EngineEmbeddings>
}

interface EngineEmbeddings {
  readonly vectors: readonly Float32Array[]
  /**
   * What the model made of the tokens of each text: rows of 128 whole numbers from -127 to 127, at most 32 rows, which
   * can be compared with those of other texts. Only if asked for.
   */
  readonly tokenEmbeddings?: readonly Int8Array[]
  readonly tokens: number
  readonly source: 'provider' | 'counted'
}

/** What a reranker says of one call. */
export interface Reranking {
  /** One for each document, in their order. Higher is better; comparable within one model. */
  readonly scores: readonly number[]
  /** The vendor's report; null: it has none. */
  readonly tokens: number | null
  readonly searchUnits: number | null
}

/** A vendor of models that score documents against a query. Fails like `ChatEngine`. */
export interface RerankEngine {
  /** Most documents of one call. */
  readonly maxBatch: number
  /** @throws {KisError} `engine_error`: the vendor did not give each document one finite score */
  rerank(call: EngineCall, query: string, documents: readonly string[], signal: AbortSignal): Promise<Reranking>
}

/** A file with speech. */
export interface AudioFile {
  readonly bytes: Uint8Array
  readonly format: AudioFormat
}

/** How the engine cuts audio at its pauses, in the protocol's words. The engine chooses what is left out. */
export interface VoiceActivity {
  readonly type: 'server_vad'
  /** 0 to 1. */
  readonly threshold?: number
  readonly prefix_padding_ms?: number
  readonly silence_duration_ms?: number
}

/** What the caller wants. Null and empty: not given. */
export interface TranscriptionOptions {
  /** `diarized_json`: with speakers. */
  readonly format: 'json' | 'verbose_json' | 'diarized_json'
  /** ISO 639. */
  readonly language: string | null
  readonly prompt: string | null
  readonly temperature: number | null
  readonly granularities: readonly ('segment' | 'word')[]
  readonly include: readonly 'logprobs'[]
  readonly chunking: 'auto' | VoiceActivity | null
}

/** A vendor of speech models. Fails like `ChatEngine`. */
export interface TranscriptionEngine {
  /** Gives the vendor's object of this format. */
  transcribe(call: EngineCall, audio: AudioFile, options: TranscriptionOptions, signal: AbortSignal): Promise<ProtocolObject>
  /**
   * Streams the protocol's events: any number, and `transcript.text.done` last. Only for models with `streaming` in the
   * catalog. Otherwise like the chat engine's `stream`.
   * @throws {KisError} `engine_error`, also when the answer is not a stream
   */
  stream(
    call: EngineCall,
    audio: AudioFile,
    options: TranscriptionOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterableIterator<readonly ProtocolObject[]>>
}

/** What an engine does, by the kind of model. Absent: the catalog has no such models of its kind. */
export interface EngineParts {
  readonly chat?: ChatEngine
  readonly embedding?: EmbeddingEngine
  readonly transcription?: TranscriptionEngine
  readonly rerank?: RerankEngine
}
