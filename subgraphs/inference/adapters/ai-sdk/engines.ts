import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { KisError } from '../../../common/errors.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import { MAX_TEXTS } from '../../domain/embeddings/embedding-request.ts'
import { MAX_RESPONSE_BYTES, MAX_STREAM_BYTES } from '../../domain/engines/response-limits.ts'
import { estimateTokens } from '../../domain/tokens/estimate-tokens.ts'
import { isCount } from '../../domain/tokens/usage.ts'
import { type ChatCall, type ChatEngine, type EmbeddingEngine, NeverSent, type ProtocolObject } from '../../ports/engines.ts'
import { readEmbeddings } from '../vendor/embedding-response.ts'
import { EngineErrors, type OnOperatorFault } from '../vendor/engine-errors.ts'
import { IdleWatch } from '../vendor/idle-watch.ts'
import { maxEmbeddingsBytes, TIMEOUTS, type Timeouts } from '../vendor/limits.ts'
import { factsRedactor } from '../vendor/response-facts.ts'
import { passWarnings, toCallOptions } from './call-options.ts'
import { ChunkWriter } from './chunks.ts'
import { classifyEnd, type ResponseFacts, toCompletion } from './completion.ts'
import { isVendorError, toFailure } from './failures.ts'
import { VendorFetch } from './vendor-fetch.ts'
import { VENDORS, type Vendor, type VendorKind, type VendorModels, type VendorSettings } from './vendors.ts'

export interface AiSdkEngineOptions extends VendorSettings {
  readonly kind: VendorKind
  /** The engine's name in the catalog, for messages. */
  readonly name: string
  readonly clock: Clock
  /** Most texts of one embeddings call. */
  readonly maxBatch?: number
  /** Whether image addresses may be passed to a vendor that fetches them. Default: true. */
  readonly fetchesImages?: boolean
  readonly timeouts?: Timeouts
  readonly onOperatorFault?: OnOperatorFault
}

interface Parts {
  readonly fetchesImages: boolean
  readonly vendor: Vendor
  readonly idleMs: number
  readonly errors: EngineErrors
  readonly clock: Clock
  readonly redactFacts: ReturnType<typeof factsRedactor>
}

/** Opens the models of a vendor with its own protocol, through the AI SDK's package for it. */
export async function openAiSdkEngines(
  options: AiSdkEngineOptions,
): Promise<{ readonly chat: ChatEngine; readonly embedding: EmbeddingEngine } & AsyncDisposable> {
  const { name, clock, fetchesImages = true, timeouts = TIMEOUTS } = options
  const vendor = VENDORS[options.kind]
  const baseUrl = options.baseUrl ?? vendor.defaultAddress(options)
  const { apiKey, accessKeyId, secretAccessKey, sessionToken } = options
  const keys = [apiKey, accessKeyId, secretAccessKey, sessionToken].filter((key) => key !== null)
  const errors = new EngineErrors(name, [...keys, new URL(baseUrl).host], clock, options.onOperatorFault)
  const createModels = await vendor.load({ ...options, baseUrl: baseUrl.replace(/\/+$/, '') })
  const http = new VendorFetch(timeouts, errors)
  const parts = {
    vendor,
    fetchesImages: fetchesImages && vendor.fetchesImages,
    idleMs: timeouts.bodyIdleMs,
    errors,
    clock,
    redactFacts: factsRedactor(keys),
  }
  return {
    chat: chatEngine(
      parts,
      createModels(http.createFetch({ isStream: false, maxBytes: MAX_RESPONSE_BYTES })),
      createModels(http.createFetch({ isStream: true, maxBytes: MAX_STREAM_BYTES })),
    ),
    embedding: embeddingEngine(
      parts,
      createModels(http.createFetch({ isStream: false, maxBytes: maxEmbeddingsBytes(MAX_TEXTS) })),
      options.maxBatch,
    ),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
}

function chatEngine(
  { vendor, fetchesImages, idleMs, errors, clock, redactFacts }: Parts,
  models: VendorModels,
  streamingModels: VendorModels,
): ChatEngine {
  const responseFacts = ({ engineModel, requestId }: ChatCall): ResponseFacts => ({
    id: `chatcmpl-${requestId}`,
    model: engineModel,
    created: Math.floor(clock.now().getTime() / 1_000),
  })
  return {
    fetchesImages,
    hasLogprobs: false,

    async complete(call, request, signal) {
      signal.throwIfAborted()
      const options = toCallOptions(vendor, call, request, signal)
      const result = await unlessAborted(signal, errors, () => models.languageModel(call.engineModel).doGenerate(options))
      passWarnings(result.warnings, call)
      checkEnd(result.finishReason, errors)
      return redactFacts(toCompletion(vendor, result, responseFacts(call)))
    },

    async stream(call, request, signal) {
      signal.throwIfAborted()
      const stop = new AbortController()
      const onAbort = () => stop.abort(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      const release = () => signal.removeEventListener('abort', onAbort)
      try {
        const options = toCallOptions(vendor, call, request, stop.signal)
        const { stream } = await unlessAborted(signal, errors, () => streamingModels.languageModel(call.engineModel).doStream(options))
        const reader = new StreamReader(stream.getReader(), new ChunkWriter(vendor, responseFacts(call), errors), errors, redactFacts, call)
        await unlessAborted(signal, errors, () => reader.open())
        const idle = new IdleWatch(idleMs, () => stop.abort(errors.silent()))
        return endableIterator(
          () => {
            idle.waits()
            return reader.next().finally(() => idle.has())
          },
          () => {
            idle.stop()
            release()
            stop.abort()
          },
          signal,
        )
      } catch (error) {
        release()
        stop.abort()
        throw error
      }
    },
  }
}

/** @throws {KisError} `engine_error`: the vendor failed, or the response was cut off */
function checkEnd(finish: LanguageModelV4FinishReason | undefined, errors: EngineErrors): void {
  const end = finish ? classifyEnd(finish) : 'cut'
  if (end === 'failed') throw errors.ofErrorObject({ error: { code: finish?.raw } })
  if (end === 'cut') throw errors.invalidResponse('broke off its response')
}

/** Runs a call of the SDK. Its failures become `KisError`s; an abort stays an abort, or a `NeverSent`. */
async function unlessAborted<T>(signal: AbortSignal, errors: EngineErrors, run: () => PromiseLike<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof NeverSent) throw error
    signal.throwIfAborted()
    throw toFailure(error, errors)
  }
}

/** Waits for all calls. The first failure aborts the others, which would be billed for nothing. */
async function together<T>(
  signal: AbortSignal,
  errors: EngineErrors,
  run: (signal: AbortSignal) => readonly PromiseLike<T>[],
): Promise<readonly T[]> {
  const stop = new AbortController()
  const onAbort = () => stop.abort(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await unlessAborted(signal, errors, () => Promise.all(run(stop.signal)))
  } finally {
    signal.removeEventListener('abort', onAbort)
    stop.abort()
  }
}

/** Reads a stream of parts as items of chunks. */
class StreamReader {
  readonly #parts: ReadableStreamDefaultReader<LanguageModelV4StreamPart>
  readonly #writer: ChunkWriter
  readonly #errors: EngineErrors
  readonly #redactFacts: Parts['redactFacts']
  readonly #call: ChatCall

  constructor(
    parts: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
    writer: ChunkWriter,
    errors: EngineErrors,
    redactFacts: Parts['redactFacts'],
    call: ChatCall,
  ) {
    this.#redactFacts = redactFacts
    this.#parts = parts
    this.#writer = writer
    this.#errors = errors
    this.#call = call
  }

  /** Reads the first part of the SDK, which lists what the SDK left out of the request. It precedes the response. */
  async open(): Promise<void> {
    const { value } = await this.#parts.read()
    if (value?.type === 'stream-start') passWarnings(value.warnings, this.#call)
  }

  async next(): Promise<IteratorResult<readonly ProtocolObject[], undefined>> {
    for (;;) {
      const { done, value: part } = await this.#parts.read().catch((error: unknown) => {
        throw toFailure(error, this.#errors)
      })
      if (done) return this.#end()
      if (part.type === 'error') throw toFailure(part.error, this.#errors)
      if (part.type === 'raw') {
        if (isVendorError(part.rawValue)) throw this.#errors.ofErrorObject(part.rawValue)
        continue
      }
      const chunks = this.#writer.write(part).map(this.#redactFacts)
      if (chunks.length > 0) return { done: false, value: chunks }
    }
  }

  #end(): IteratorResult<readonly ProtocolObject[], undefined> {
    checkEnd(this.#writer.finish, this.#errors)
    return { done: true, value: undefined }
  }
}

function embeddingEngine({ vendor, errors }: Parts, models: VendorModels, maxBatch: number | undefined): EmbeddingEngine {
  const { embeddings } = vendor
  return {
    calibration: null,
    maxBatch: Math.min(maxBatch ?? Number.POSITIVE_INFINITY, embeddings?.maxBatch ?? 1),

    async countTokens(texts) {
      return texts.map(estimateTokens)
    },

    async embed(call, input, signal) {
      if (!embeddings) throw new KisError('engine_error', `Engines of the kind \`${vendor.kind}\` have no embeddings.`)
      if (input.some((item) => typeof item !== 'string'))
        throw new KisError('unsupported_value', 'This model accepts texts, not tokens.', { param: 'input' })
      const texts = input as readonly string[]
      const model = models.embeddingModel(call.engineModel)
      const size = (await model.maxEmbeddingsPerCall) ?? texts.length
      const batches = Array.from({ length: Math.ceil(texts.length / size) }, (_, index) => texts.slice(index * size, (index + 1) * size))
      const results = await together(signal, errors, (abortSignal) =>
        batches.map((values) =>
          model.doEmbed({
            values,
            abortSignal,
            headers: { 'x-client-request-id': call.requestId },
            providerOptions: { [vendor.optionsKey]: embeddings.toOptions(call) },
          }),
        ),
      )
      const data = results.flatMap(({ embeddings: batch }) => batch).map((embedding, index) => ({ embedding, index }))
      const { vectors } = readEmbeddings({ data }, texts.length, call.dimensions, errors)
      const reported = results.map(({ usage }) => usage?.tokens)
      // A text always has tokens: the SDK writes zero when it has no number.
      const sum = reported.reduce<number>((tokens, more) => tokens + (more && more > 0 ? more : Number.NaN), 0)
      if (isCount(sum)) return { vectors, tokens: sum, source: 'provider' }
      return { vectors, tokens: texts.reduce((sum, text) => sum + estimateTokens(text), 0), source: 'counted' }
    },
  }
}
