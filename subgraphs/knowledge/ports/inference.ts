import type { Principal } from '../../common/identity/principal.ts'
import type { Language } from '../domain/text/language.ts'

/** The measured calibration of a model's cosines. */
export interface CosineCalibration {
  /** Mean vectors of general questions in Arabic and in English. */
  readonly arabicAnchor: Float32Array
  readonly englishAnchor: Float32Array
  /** The closeness (see `Aim.closenessOf`) at which half of the chunks answer their query. */
  readonly midpoint: number
  /** Slope of the logistic curve at the midpoint. */
  readonly slope: number
}

/** The properties of an embedding model that ingestion and search need. */
export interface EmbeddingModel {
  readonly id: string
  readonly dimensions: number
  /** Maximum tokens of one text, special tokens and prefix included. */
  readonly maxTokens: number
  /** Tokens of the special tokens and the prefix. */
  readonly overheadTokens: number
  /** Standard deviation of a query's cosines. Null: unknown. */
  readonly cosineSpread: number | null
  /** Null: not measured. */
  readonly calibration: CosineCalibration | null
}

/**
 * The token embeddings of a text, 128 numbers per token. Queries: at most 32 rows of integers from -127 to 127. Chunks:
 * one byte that identifies this format, then 16 bytes for each of at most 512 tokens, with a bit set for each number
 * above 0. `toMaxSim` compares token embeddings of one model.
 */
export type TokenEmbeddings = Int8Array

/** The result of embedding a batch of texts. */
export interface EmbeddedChunks {
  readonly vectors: readonly Float32Array[]
  /** One per text. Null or absent: the engine returns none. */
  readonly tokenStates?: readonly TokenEmbeddings[] | null
  readonly tokens: number
}

/** The caller on whose behalf inference is called, and who is charged. */
export interface CallContext {
  readonly caller: Principal
  readonly requestId: string
  readonly signal: AbortSignal
  /** The hold of the agent run to which the call belongs. Absent: the wallet pays. */
  readonly runHoldId?: string
  /** Identifies the call as a step of the run. A step runs once, however often it is sent. */
  readonly step?: string
}

/** A segment of a transcript. Times are in seconds from the start. */
export interface SpokenSegment {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The models that knowledge uses. A GraphQL client of inference implements it. Inference bills every call. */
export interface Inference {
  /**
   * Counts one request against the rate limits of the caller's key.
   * @throws {KisError} `rate_limit_exceeded`: the limit is reached
   */
  countRequest(context: CallContext): Promise<void>
  /**
   * Returns the model's properties.
   * @throws {KisError} `model_not_found`, `residency_policy_violation`: the caller may not use the model
   */
  embeddingModel(id: string, context: CallContext): Promise<EmbeddingModel>
  /** Returns the names of the agents that search a collection. */
  agentsOf(collectionId: string, context: CallContext): Promise<readonly string[]>
  /** Returns the token counts of at most 2,048 texts, in the same order. */
  countTokens(modelId: string, texts: readonly string[], context: CallContext): Promise<readonly number[]>
  /**
   * Embeds a query. `vector` has length 1 (L2). `cost` is in nano-USD.
   * @throws {KisError} `insufficient_quota`: the wallet has too little; or the error of the model's engine
   */
  embedQuery(
    modelId: string,
    text: string,
    context: CallContext,
  ): Promise<{ readonly vector: Float32Array; readonly tokenStates?: TokenEmbeddings | null; readonly cost: bigint }>
  /**
   * Lets a chat model rewrite a question so that it is understood without the preceding conversation. `cost` is in
   * nano-USD. Takes at most 10 s.
   * @throws {KisError} `permission_denied`, `model_not_found`, `residency_policy_violation`: the caller may not use the
   * model; `insufficient_quota`; or the error of the model's engine
   */
  rewriteQuery(
    input: {
      readonly modelId: string
      readonly query: string
      readonly history: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[]
    },
    context: CallContext,
  ): Promise<{ readonly query: string; readonly cost: bigint }>
  /**
   * Lets a chat model write questions that the given chunks (at most 5) answer, each in its languages, with the words
   * that answer them. `passage` is the index in `passages`, and `cost` is in nano-USD. The model's output is not
   * verified. Takes at most 60 s.
   * @throws {KisError} as `rewriteQuery`
   */
  suggestQuestions(
    input: {
      readonly modelId: string
      readonly passages: readonly { readonly heading: string; readonly text: string; readonly languages: readonly Language[] }[]
    },
    context: CallContext,
  ): Promise<{
    readonly questions: readonly { readonly passage: number; readonly question: string; readonly phrase: string }[]
    readonly cost: bigint
  }>
  /**
   * Returns the catalog ID of a rerank model, which `id` may name by an alias.
   * @throws {KisError} `model_not_found`, `residency_policy_violation`: the caller may not rerank with the model
   */
  rerankModel(id: string, context: CallContext): Promise<{ readonly id: string }>
  /**
   * Orders the chunks of a search (at most 1,000), best first. `index` is the index in `texts`, and `cost` is in
   * nano-USD. Takes at most 10 s.
   * @throws {KisError} as `rerankModel`; `insufficient_quota`; or the error of the model's engine. Nothing is charged.
   */
  rerankPassages(
    modelId: string,
    query: string,
    texts: readonly string[],
    context: CallContext,
  ): Promise<{ readonly results: readonly { readonly index: number; readonly score: number }[]; readonly cost: bigint }>
  /**
   * Returns the catalog ID of a speech model, which `id` may name by an alias.
   * @throws {KisError} `model_not_found`, `residency_policy_violation`: the caller may not transcribe with the model
   */
  transcriptionModel(id: string, context: CallContext): Promise<{ readonly id: string }>
  /**
   * Transcribes an audio file of at most `MAX_AUDIO_BYTES`. Returns segments with text, in order. Takes at most 15
   * minutes. A `step` is charged once: for a day, a repeat returns the same result.
   * @throws {KisError} as `transcriptionModel`; `insufficient_quota`; `unsupported_value`: the file is not audio;
   * `payload_too_large`: the recording is too long; `idempotency_conflict`: another process runs this step; or the
   * error of the model's engine. Nothing is charged.
   */
  transcribe(modelId: string, audio: Uint8Array, context: CallContext & { readonly step: string }): Promise<readonly SpokenSegment[]>
  /**
   * Returns the price that `openEmbedding` would reserve, whether the wallet covers it now, and the price of a million
   * tokens. Prices are in nano-USD.
   */
  quoteEmbedding(
    modelId: string,
    tokens: number,
    context: CallContext,
  ): Promise<{ readonly amount: bigint; readonly isCovered: boolean; readonly perMillion: bigint }>
  /**
   * Reserves the price of `tokens` and returns the hold's ID.
   * @throws {KisError} `insufficient_quota`: the wallet has too little, and nothing is reserved
   */
  openEmbedding(modelId: string, tokens: number, context: CallContext): Promise<string>
  /**
   * Embeds at most 64 texts.
   * @throws {KisError} `not_found`: the hold has ended
   * @throws {EmbeddingStopped} a limit or a deadline ended the batch, and the vendor bills what was sent
   */
  embedPassages(
    input: { readonly holdId: string; readonly modelId: string; readonly texts: readonly string[]; readonly tokensBefore: number },
    context: CallContext,
  ): Promise<EmbeddedChunks>
  /**
   * Charges `tokens` and ends the hold. 0 charges nothing. Returns the charge in nano-USD; if the hold had already
   * ended, its earlier charge. Idempotent.
   */
  closeEmbedding(holdId: string, tokens: number, context: CallContext): Promise<bigint>
}
