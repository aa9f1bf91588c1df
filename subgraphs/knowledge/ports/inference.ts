import type { Principal } from '../../common/identity/principal.ts'
import type { Language } from '../domain/text/language.ts'

/** What a model's cosines are worth, measured. */
export interface CosineCalibration {
  /** The mean vector of general questions in a language. */
  readonly arabicAnchor: Float32Array
  readonly englishAnchor: Float32Array
  /** Where half of the passages answer their query: a closeness, as `takeAim` gives it. */
  readonly midpoint: number
  /** How fast that share grows there: a logistic curve. */
  readonly slope: number
}

export interface EmbeddingModel {
  readonly id: string
  readonly dimensions: number
  /** Most tokens of one text, with marks and prefix. */
  readonly maxTokens: number
  /** Tokens that marks and prefix take. */
  readonly overheadTokens: number
  /** Standard deviation of a query's cosines; null when not known. */
  readonly cosineSpread: number | null
  /** Null when it was not measured. */
  readonly calibration: CosineCalibration | null
}

/**
 * What a model made of each token of a text, 128 numbers. Of a query: rows of whole numbers from -127 to 127, at most 32
 * rows. Of a passage: a byte for this form, then 16 bytes for each of at most 512 tokens, a bit for each number that is
 * above 0. `toMaxSim` compares those of one model.
 */
export type TokenEmbeddings = Int8Array

export interface EmbeddedChunks {
  readonly vectors: readonly Float32Array[]
  /** One for each text; null or absent: the model's engine gives none. */
  readonly tokenStates?: readonly TokenEmbeddings[] | null
  readonly tokens: number
}

export interface CallContext {
  readonly caller: Principal
  readonly requestId: string
  readonly signal: AbortSignal
  /** The hold of the run that the call is a step of. Absent: the wallet pays. */
  readonly runHoldId?: string
  /** The run's step that this call is. The step runs once, however often it is sent. */
  readonly step?: string
}

/** A piece of a transcript, in seconds from the start. */
export interface SpokenSegment {
  readonly start: number
  readonly end: number
  readonly text: string
}

/**
 * Models, as knowledge needs them. A GraphQL client of inference implements it, and every call is billed
 * there.
 */
export interface Inference {
  /**
   * Counts one request against the limits of the caller's key.
   * @throws {KisError} `rate_limit_exceeded`: none is left
   */
  countRequest(context: CallContext): Promise<void>
  /** @throws {KisError} `model_not_found`, `residency_policy_violation`: the caller may not use the model */
  embeddingModel(id: string, context: CallContext): Promise<EmbeddingModel>
  /** The names of the agents that search a collection. */
  agentsOf(collectionId: string, context: CallContext): Promise<readonly string[]>
  /** In the order of the texts, at most 2,048. */
  countTokens(modelId: string, texts: readonly string[], context: CallContext): Promise<readonly number[]>
  /**
   * `vector` has length 1 (L2); `cost` is in nano-USD.
   * @throws {KisError} `insufficient_quota`: the wallet has too little; or the error of the model's engine
   */
  embedQuery(
    modelId: string,
    text: string,
    context: CallContext,
  ): Promise<{ readonly vector: Float32Array; readonly tokenStates?: TokenEmbeddings | null; readonly cost: bigint }>
  /**
   * Has a chat model rewrite a question so that it stands without the conversation before it; `cost` is in nano-USD.
   * Takes at most 10 s.
   * @throws {KisError} `permission_denied`, `model_not_found`, `residency_policy_violation`: the caller may not ask the
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
   * Has a chat model write questions that passages (at most 5) answer, each in its languages, with the words that answer
   * them; `passage` is the place in `passages`, and `cost` is in nano-USD. What the model says of the passages is not
   * checked. Takes at most 60 s.
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
  /** @throws {KisError} `model_not_found`, `residency_policy_violation`: the caller may not rerank with the model */
  rerankModel(id: string, context: CallContext): Promise<{ readonly id: string }>
  /**
   * Orders the passages of a search, at most 1,000, best first; `index` is the place in `texts`, and `cost` is in
   * nano-USD. Takes at most 10 s.
   * @throws {KisError} as `rerankModel`; `insufficient_quota`; or the error of the model's engine. Nothing is charged.
   */
  rerankPassages(
    modelId: string,
    query: string,
    texts: readonly string[],
    context: CallContext,
  ): Promise<{ readonly results: readonly { readonly index: number; readonly score: number }[]; readonly cost: bigint }>
  /** @throws {KisError} `model_not_found`, `residency_policy_violation`: the caller may not transcribe with the model */
  transcriptionModel(id: string, context: CallContext): Promise<{ readonly id: string }>
  /**
   * Has a speech model write down what is said in a file of at most `MAX_SOUND_BYTES`: segments with text, in order.
   * Takes at most 15 minutes. A `step` is charged once; for a day, a repeat gets the same answer.
   * @throws {KisError} as `transcriptionModel`; `insufficient_quota`; `unsupported_value`: it is not sound;
   * `payload_too_large`: it lasts too long; `idempotency_conflict`: another process is at it; or the error of the
   * model's engine. Nothing is charged.
   */
  transcribe(modelId: string, audio: Uint8Array, context: CallContext & { readonly step: string }): Promise<readonly SpokenSegment[]>
  /**
   * Gives what `openEmbedding` would reserve, whether the wallet covers it now, and the price of a million tokens; in
   * nano-USD.
   */
  quoteEmbedding(
    modelId: string,
    tokens: number,
    context: CallContext,
  ): Promise<{ readonly amount: bigint; readonly isCovered: boolean; readonly perMillion: bigint }>
  /**
   * Reserves the price of `tokens`, and gives the hold's id.
   * @throws {KisError} `insufficient_quota`: the wallet has too little, and nothing is reserved
   */
  openEmbedding(modelId: string, tokens: number, context: CallContext): Promise<string>
  /**
   * At most 64 texts.
   * @throws {KisError} `not_found`: the hold has ended
   * @throws {EmbeddingStopped} a limit or a deadline ended the batch, and the vendor bills what was sent
   */
  embedPassages(
    input: { readonly holdId: string; readonly modelId: string; readonly texts: readonly string[]; readonly tokensBefore: number },
    context: CallContext,
  ): Promise<EmbeddedChunks>
  /**
   * Charges `tokens` and ends the hold; 0 charges nothing. Gives the charge in nano-USD: the earlier one if the hold had
   * ended before. Idempotent.
   */
  closeEmbedding(holdId: string, tokens: number, context: CallContext): Promise<bigint>
}
