import type { AudioFormat } from './audio-reader.ts'

/** A JSON object of the chat protocol. Unknown fields pass unchanged. */
export type ProtocolObject = Readonly<Record<string, unknown>>

/**
 * The signal aborted before any of the request was sent. The engine has done no work and bills nothing. `cause` is the
 * reason of the signal.
 */
export class NeverSent extends Error {
  /** The code of every abort error (`isAbort`). */
  readonly code = 'ABORT_ERR'

  constructor(cause: unknown) {
    super('The engine was not called.', { cause })
    this.name = 'NeverSent'
  }
}

/**
 * Counts that do not overlap: `inputTokens` excludes the input tokens that the engine read from its cache or wrote to
 * it.
 */
export interface TokenUsage {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
}

/** The facts about a call that every kind of engine gets. */
export interface EngineCall {
  /** The model's name at the engine. */
  readonly engineModel: string
  readonly requestId: string
  /**
   * An engine that runs one call at a time serves organizations round robin. Absent: the service itself counts as one
   * organization.
   */
  readonly organizationId?: string
}

/** A call of a chat model, besides its request. */
export interface ChatCall extends EngineCall {
  /**
   * Most output tokens of one choice of the model. The hold covers as many if the request sets no limit. Null: unknown.
   */
  readonly maxOutputTokens: number | null
  /** Called before the response starts, once for each field that was left out because the vendor cannot honor it. */
  warn(field: string): void
}

/** A call of an embedding model, besides its texts. */
export interface EmbeddingCall extends EngineCall {
  /** Set only if the caller requests fewer dimensions than the model has; else null. */
  readonly dimensions: number | null
  /** The purpose of the texts, for models that distinguish queries from chunks without a prefix. */
  readonly purpose: 'query' | 'passage'
  /** Requests token embeddings as well. An engine without them returns none. */
  readonly withTokenEmbeddings?: boolean
}

/**
 * A vendor of chat models. Failures are `KisError`s: `invalid_request` and its family for the vendor's 400, 413 and
 * 422; `engine_error`, also for a model that the vendor does not have; `rate_limit_exceeded`; `engine_unavailable`,
 * also when the vendor refuses the operator's key or account; `engine_timeout`. `vendorCode` and `retryAfterMs` are the
 * vendor's. An engine retries nothing itself. After `engine_unavailable`, `rate_limit_exceeded` and a repeatable
 * `EngineFailure` the vendor bills nothing for the call. Aborting the signal ends the vendor's work within 1 s.
 */
export interface ChatEngine {
  /**
   * Whether the vendor itself fetches images from public addresses. If not, images must be `data:` URIs, and other
   * addresses are refused.
   */
  readonly fetchesImages: boolean
  /** Whether responses can have the log probabilities that a request asks for. */
  readonly hasLogprobs: boolean
  /** Returns the vendor's completion object, with `usage` if the vendor sent it. */
  complete(call: ChatCall, request: ProtocolObject, signal: AbortSignal): Promise<ProtocolObject>
  /**
   * Streams the protocol's chunks. Resolves with the response's header, so a failure before the first byte rejects. The
   * vendor is always requested to send usage, which comes in a last chunk with empty `choices` (with some vendors on
   * another chunk). Each item has the chunks that arrived together; no chunk is delayed. The iterator throws a
   * `KisError` when the vendor fails or the connection ends before the vendor's end mark. The iterator's `return()`
   * ends the vendor's work at once.
   */
  stream(call: ChatCall, request: ProtocolObject, signal: AbortSignal): Promise<AsyncIterableIterator<readonly ProtocolObject[]>>
}

/** Converts a model's cosines to relevance. Measured on questions and chunks. */
export interface CosineCalibration {
  /** The mean vectors of general questions. */
  readonly arabicAnchor: Float32Array
  readonly englishAnchor: Float32Array
  /** A logistic curve. It maps a cosine, corrected by the anchors, to the share of chunks that answer the question. */
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
   * The number of tokens of each text by the model's tokenizer, without special tokens. An upper estimate when the
   * tokenizer is not available (see `counted`).
   */
  countTokens(texts: readonly string[], signal: AbortSignal, organizationId?: string): Promise<readonly number[]>
  /**
   * The tokens of each text, without special tokens. `embed` accepts them instead of the text. Absent: the model's
   * tokenizer is not available.
   */
  tokenize?(texts: readonly string[], signal: AbortSignal, organizationId?: string): Promise<readonly (readonly number[])[]>
  /**
   * Returns one vector for each text, in order. Each is finite and of L2 norm 1. `tokens` is the vendor's report, or
   * else the count.
   * @throws {KisError} `engine_error`: the vendor sent too few vectors, wrong dimensions, or NaN
   */
  embed(call: EmbeddingCall, input: readonly string[] | readonly (readonly number[])[], signal: AbortSignal): Promise<EngineEmbeddings>
}

interface EngineEmbeddings {
  readonly vectors: readonly Float32Array[]
  /**
   * The token embeddings of each text: at most 32 rows of 128 whole numbers from -127 to 127, comparable with those of
   * other texts. Only if requested.
   */
  readonly tokenEmbeddings?: readonly Int8Array[]
  readonly tokens: number
  readonly source: 'provider' | 'counted'
}

/** The result of one reranking call. */
export interface Reranking {
  /**
   * One score for each document, in the documents' order. Higher is better. Scores are comparable within one model
   * only.
   */
  readonly scores: readonly number[]
  /** The vendor's report. Null: the vendor reported none. */
  readonly tokens: number | null
  readonly searchUnits: number | null
}

/** A vendor of models that score documents against a query. Fails like `ChatEngine`. */
export interface RerankEngine {
  /** Most documents of one call. */
  readonly maxBatch: number
  /** @throws {KisError} `engine_error`: the vendor did not return one finite score for each document */
  rerank(call: EngineCall, query: string, documents: readonly string[], signal: AbortSignal): Promise<Reranking>
}

/** A file with speech. */
export interface AudioFile {
  readonly bytes: Uint8Array
  readonly format: AudioFormat
}

/** How the engine cuts audio at pauses, in the protocol's words. The engine chooses the fields that are left out. */
export interface VoiceActivity {
  readonly type: 'server_vad'
  /** 0 to 1. */
  readonly threshold?: number
  readonly prefix_padding_ms?: number
  readonly silence_duration_ms?: number
}

/** The caller's options. Null and empty: not set. */
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
  /** Returns the vendor's object in the requested format. */
  transcribe(call: EngineCall, audio: AudioFile, options: TranscriptionOptions, signal: AbortSignal): Promise<ProtocolObject>
  /**
   * Streams the protocol's events, with `transcript.text.done` last. Only for models with `streaming` in the catalog.
   * Otherwise like `ChatEngine.stream`.
   * @throws {KisError} `engine_error`, also when the response is not a stream
   */
  stream(
    call: EngineCall,
    audio: AudioFile,
    options: TranscriptionOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterableIterator<readonly ProtocolObject[]>>
}

/** An engine's parts, one for each kind of model. Absent: the catalog has no model of that kind on this engine. */
export interface EngineParts {
  readonly chat?: ChatEngine
  readonly embedding?: EmbeddingEngine
  readonly transcription?: TranscriptionEngine
  readonly rerank?: RerankEngine
}
