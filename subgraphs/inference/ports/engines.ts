import type { AudioFormat } from './audio-reader.ts'

/** JSON objects of the chat protocol, kept whole: fields that we do not know pass unchanged. */
export type ProtocolObject = Readonly<Record<string, unknown>>

/** Disjoint: input tokens that the engine had cached, or wrote to its cache, are not among the input tokens. */
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
  /** Where an engine does one thing at a time, organizations take turns; absent: a part of the service has a turn like them. */
  readonly organizationId?: string
}

export interface ChatCall extends EngineCall {
  /** The most tokens that one choice of the model can have, for which money is held when the request names no bound; or null. */
  readonly maxOutputTokens: number | null
  /** Hears the name of each request field that the vendor cannot honour and that was therefore left out, before the answer begins. */
  warn(field: string): void
}

export interface EmbeddingCall extends EngineCall {
  /** Passed on only where the caller asked for fewer than the model has; else null. */
  readonly dimensions: number | null
  /** What the texts are for, to the models that tell the two apart without a prefix. */
  readonly purpose: 'query' | 'passage'
}

/**
 * A vendor of chat models. Failures are `KisError`s: `invalid_request` and its family for the vendor's 400, 413 and 422, `engine_error` (also for a
 * model that the vendor does not have), `rate_limit_exceeded`, `engine_unavailable` (also where the vendor refuses the operator's key or has no more of
 * the operator's money), `engine_timeout`; `vendorCode` and `retryAfterMs` as the vendor gave them. An engine repeats nothing by itself:
 * `engine_unavailable`, `rate_limit_exceeded` and what an `EngineFailure` says is repeatable mean that the vendor bills nothing for the call. Aborting
 * the signal ends the vendor's work within 1 s.
 */
export interface ChatEngine {
  /** Whether the vendor fetches images from public addresses itself. Without it, images must come as `data:` URIs; addresses are refused. */
  readonly fetchesImages: boolean
  /** The protocol's completion object as the vendor gave it, with `usage` when it gave one. */
  complete(call: ChatCall, request: ProtocolObject, signal: AbortSignal): Promise<ProtocolObject>
  /**
   * The protocol's chunks. Resolves with the first answer's header, so that a failure before the first byte rejects. Usage is asked of
   * the vendor whether or not the caller wants it, and comes in a last chunk with empty `choices` (or on a chunk, as some vendors do).
   * Each item holds the chunks that arrived together, never held back. The iterator throws a KisError when the vendor fails or the
   * connection is cut before the vendor's end mark; its `return()` ends the vendor's work at once.
   */
  stream(call: ChatCall, request: ProtocolObject, signal: AbortSignal): Promise<AsyncIterableIterator<readonly ProtocolObject[]>>
}

/** A vendor of embedding models. Failures as for `ChatEngine`. */
export interface EmbeddingEngine {
  /** Most texts of one call. */
  readonly maxBatch: number
  /** Tokens of each text as the model counts them, without marks; an estimate from above (see `counted`) where the model's tokenizer is not here. */
  countTokens(texts: readonly string[], signal: AbortSignal, organizationId?: string): Promise<readonly number[]>
  /**
   * One vector a text, in their order, each finite and of length 1 (L2); `tokens` is what the vendor reports, or what was counted.
   * @throws {KisError} `engine_error` for too few vectors, a wrong width, NaN.
   */
  embed(
    call: EmbeddingCall,
    input: readonly string[] | readonly (readonly number[])[],
    signal: AbortSignal,
  ): Promise<{ readonly vectors: readonly Float32Array[]; readonly tokens: number; readonly source: 'provider' | 'counted' }>
}

/** A file of speech. */
export interface Sound {
  readonly bytes: Uint8Array
  readonly format: AudioFormat
}

/** How the engine cuts sound into pieces by the pauses in it, in the protocol's words; what is left out is the engine's choice. */
export interface VoiceActivity {
  readonly type: 'server_vad'
  /** 0 to 1. */
  readonly threshold?: number
  readonly prefix_padding_ms?: number
  readonly silence_duration_ms?: number
}

/** What of a file is wanted; null and empty: not said. */
export interface TranscriptionAsk {
  /** `diarized_json`: with who says what. */
  readonly format: 'json' | 'verbose_json' | 'diarized_json'
  /** ISO 639. */
  readonly language: string | null
  readonly prompt: string | null
  readonly temperature: number | null
  readonly granularities: readonly ('segment' | 'word')[]
  readonly include: readonly 'logprobs'[]
  readonly chunking: 'auto' | VoiceActivity | null
}

/** A vendor of speech models. Failures as for `ChatEngine`. */
export interface TranscriptionEngine {
  /** The protocol's object of that format as the vendor gave it. */
  transcribe(call: EngineCall, sound: Sound, ask: TranscriptionAsk, signal: AbortSignal): Promise<ProtocolObject>
  /**
   * The protocol's events, from models that the catalog marks with `streaming`: any number, and `transcript.text.done` last. All else as for the chat
   * engine's `stream`. @throws {KisError} `engine_error` also for an answer that is no stream.
   */
  stream(
    call: EngineCall,
    sound: Sound,
    ask: TranscriptionAsk,
    signal: AbortSignal,
  ): Promise<AsyncIterableIterator<readonly ProtocolObject[]>>
}
