import type { Clock } from '../../../common/process/clock.ts'
import { MAX_RESPONSE_BYTES } from '../../domain/engines/response-limits.ts'
import { estimateTokens } from '../../domain/tokens/estimate-tokens.ts'
import type {
  AudioFile,
  ChatEngine,
  EmbeddingEngine,
  EngineCall,
  ProtocolObject,
  TranscriptionEngine,
  TranscriptionOptions,
} from '../../ports/engines.ts'
import { readEmbeddings } from '../vendor/embedding-response.ts'
import { EngineErrors, type OnOperatorFault } from '../vendor/engine-errors.ts'
import { maxEmbeddingsBytes, TIMEOUTS, type Timeouts } from '../vendor/limits.ts'
import { factsRedactor } from '../vendor/response-facts.ts'
import { parseResponse, Upstream, type UpstreamResponse } from '../vendor/upstream.ts'
import type { AzureAddresses } from './azure.ts'
import { ChatCompleteness, TranscriptCompleteness } from './stream-completeness.ts'
import { StreamedResponse } from './streamed-response.ts'

interface OpenAiEngineOptions {
  /** The engine's name in the catalog, for messages. */
  readonly name: string
  /** Includes the path, as in `https://api.openai.com/v1`. */
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly clock: Clock
  /** Most texts of one embeddings call. OpenAI accepts 2,048, text-embeddings-inference 32 by default. */
  readonly maxBatch?: number
  /** Whether the server fetches images from addresses. Default: true. */
  readonly fetchesImages?: boolean
  readonly timeouts?: Timeouts
  /** Set for Azure, whose addresses differ. */
  readonly azure?: AzureAddresses
  readonly onOperatorFault?: OnOperatorFault
}

/** Creates engines for the models of a server of the OpenAI protocol. Requests and responses pass unchanged. */
export function createOpenAiEngines(
  options: OpenAiEngineOptions,
): { readonly chat: ChatEngine; readonly embedding: EmbeddingEngine; readonly transcription: TranscriptionEngine } & AsyncDisposable {
  const { name, apiKey, clock, maxBatch = 2_048, fetchesImages = true, timeouts = TIMEOUTS, azure, onOperatorFault } = options
  const baseUrl = new URL(options.baseUrl)
  const keys = apiKey ? [apiKey] : []
  const errors = new EngineErrors(name, [...keys, baseUrl.host], clock, onOperatorFault)
  const redactFacts = factsRedactor(keys)
  const keyHeaders = apiKey ? (azure ? ['api-key', apiKey] : ['authorization', `Bearer ${apiKey}`]) : []
  const upstream = new Upstream(baseUrl, keyHeaders, timeouts, errors)
  const toRoute = azure?.toRoute ?? ((route: string) => route)
  return {
    chat: chatEngine(upstream, errors, redactFacts, toRoute, fetchesImages),
    embedding: embeddingEngine(upstream, errors, maxBatch, toRoute),
    transcription: transcriptionEngine(upstream, errors, redactFacts, toRoute),
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  }
}

type ToRoute = AzureAddresses['toRoute']
type RedactFacts = ReturnType<typeof factsRedactor>

function chatEngine(
  upstream: Upstream,
  errors: EngineErrors,
  redactFacts: RedactFacts,
  toRoute: ToRoute,
  fetchesImages: boolean,
): ChatEngine {
  return {
    fetchesImages,
    hasLogprobs: true,

    async complete({ engineModel, requestId }, request, signal) {
      const body = JSON.stringify({ ...request, model: engineModel })
      const completion = parseObject(
        await upstream.post(toRoute('chat/completions', engineModel), body, requestId, MAX_RESPONSE_BYTES, signal),
        errors,
      )
      if (!Array.isArray(completion.choices) || !completion.choices.some(isObject))
        throw errors.invalidResponse('returned a response without choices')
      return redactFacts(completion)
    },

    stream({ engineModel, requestId }, request, signal) {
      const streamOptions = { ...(request.stream_options as object | null | undefined), include_usage: true }
      const body = JSON.stringify({ ...request, model: engineModel, stream: true, stream_options: streamOptions })
      const choices = typeof request.n === 'number' ? request.n : 1
      const route = toRoute('chat/completions', engineModel)
      return new StreamedResponse(new ChatCompleteness(choices), errors, redactFacts, upstream.idleMs).open(
        (receiver) => upstream.send(route, body, requestId, true, receiver),
        signal,
      )
    },
  }
}

function embeddingEngine(upstream: Upstream, errors: EngineErrors, maxBatch: number, toRoute: ToRoute): EmbeddingEngine {
  return {
    calibration: null,
    maxBatch,

    async countTokens(texts) {
      return texts.map(estimateTokens)
    },

    async embed({ engineModel, requestId, dimensions }, input, signal) {
      const body = JSON.stringify({ model: engineModel, input, encoding_format: 'base64', ...(dimensions !== null && { dimensions }) })
      const response = parseObject(
        await upstream.post(toRoute('embeddings', engineModel), body, requestId, maxEmbeddingsBytes(input.length), signal),
        errors,
      )
      const { vectors, promptTokens } = readEmbeddings(response, input.length, dimensions, errors)
      if (promptTokens !== null) return { vectors, tokens: promptTokens, source: 'provider' }
      const tokens = input.reduce<number>((sum, item) => sum + (typeof item === 'string' ? estimateTokens(item) : item.length), 0)
      return { vectors, tokens, source: 'counted' }
    },
  }
}

function transcriptionEngine(upstream: Upstream, errors: EngineErrors, redactFacts: RedactFacts, toRoute: ToRoute): TranscriptionEngine {
  const routeFor = ({ engineModel }: EngineCall) => toRoute('audio/transcriptions', engineModel)
  return {
    async transcribe(call, audio, options, signal) {
      const body = await encoded(transcriptionForm(call, audio, options))
      return redactFacts(parseObject(await upstream.post(routeFor(call), body, call.requestId, MAX_RESPONSE_BYTES, signal), errors))
    },

    async stream(call, audio, options, signal) {
      const form = transcriptionForm(call, audio, options)
      form.append('stream', 'true')
      const body = await encoded(form)
      const streamed = new StreamedResponse(new TranscriptCompleteness(), errors, redactFacts, upstream.idleMs)
      return streamed.open((receiver) => upstream.send(routeFor(call), body, call.requestId, true, receiver), signal)
    },
  }
}

function transcriptionForm({ engineModel }: EngineCall, { bytes, format }: AudioFile, options: TranscriptionOptions): FormData {
  const form = new FormData()
  form.append('model', engineModel)
  form.append('response_format', options.format)
  if (options.language !== null) form.append('language', options.language)
  if (options.prompt !== null) form.append('prompt', options.prompt)
  if (options.temperature !== null) form.append('temperature', String(options.temperature))
  for (const granularity of options.granularities) form.append('timestamp_granularities[]', granularity)
  for (const fact of options.include) form.append('include[]', fact)
  if (options.chunking === 'auto') form.append('chunking_strategy', 'auto')
  // The form in which the vendor's own clients encode objects in multipart forms.
  else for (const [name, value] of Object.entries(options.chunking ?? {})) form.append(`chunking_strategy[${name}]`, String(value))
  // Servers detect the format by the extension. The caller's file name stays private.
  form.append('file', new Blob([new Uint8Array(bytes)]), `audio.${format}`)
  return form
}

async function encoded(form: FormData): Promise<{ readonly bytes: Uint8Array; readonly contentType: string }> {
  const body = new Response(form)
  return { bytes: new Uint8Array(await body.arrayBuffer()), contentType: body.headers.get('content-type')! }
}

/** @throws {KisError} the vendor's error, or the response is not a JSON object */
function parseObject(response: UpstreamResponse, errors: EngineErrors): ProtocolObject {
  const parsed = parseResponse(response, errors)
  if (!isObject(parsed) || Array.isArray(parsed)) throw errors.invalidResponse('returned a response that is not an object')
  return parsed as ProtocolObject
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
