import type { EmbeddingModelV4, JSONObject, LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import { refuse } from '../../../common/check.ts'
import type { EmbeddingCall, ProtocolObject } from '../../ports/engines.ts'
import type { Fetch } from './vendor-fetch.ts'

export type VendorKind = 'anthropic' | 'google' | 'bedrock' | 'mistral' | 'cohere'

/** A vendor's address and credentials, from the catalog. */
export interface VendorSettings {
  readonly baseUrl: string | null
  readonly apiKey: string | null
  readonly region: string | null
  readonly accessKeyId: string | null
  readonly secretAccessKey: string | null
  readonly sessionToken: string | null
}

export interface VendorModels {
  languageModel(id: string): LanguageModelV4
  embeddingModel(id: string): EmbeddingModelV4
}

/** The differences between vendors. The translation is the same for all. */
export interface Vendor {
  readonly kind: VendorKind
  /** The vendor's own address. Applies if the catalog has none. */
  defaultAddress(settings: VendorSettings): string
  /**
   * Loads the vendor's package on demand, because loading takes time. Every setting is passed, so that the package
   * reads none from the environment.
   */
  load(settings: VendorSettings & { readonly baseUrl: string }): Promise<(fetch: Fetch) => VendorModels>
  /** The SDK's key for the vendor's own options and metadata. */
  readonly optionsKey: string
  readonly fetchesImages: boolean
  /** Whether instructions are accepted only at the start of a conversation. */
  readonly instructionsFirst: boolean
  /** The form of accepted tool call ids. Others are replaced by this many hexadecimal digits. */
  readonly callIds: { readonly pattern: RegExp; readonly length: number }
  /** Whether the vendor has a JSON mode without a schema. */
  readonly hasJsonMode: boolean
  /** Whether the vendor refuses a conversation with tool calls, or drops the calls, if the request has no tools. */
  readonly needsToolsOfHistory: boolean
  /**
   * Whether the SDK drops errors that the vendor reports inside a stream, so that the raw events must be searched for
   * them.
   */
  readonly hidesErrors: boolean
  /** Options for one tool call at a time; null: the vendor has none. */
  readonly singleToolCalls: SharedV4ProviderOptions | null
  /** Options for a schema that must be followed strictly. */
  readonly strictSchema?: SharedV4ProviderOptions
  /** Options for reasoning within a budget of tokens, which the SDK adds to the output limit. */
  thinking?(budgetTokens: number): SharedV4ProviderOptions
  /** Options taken from the request itself. */
  toOptions?(request: ProtocolObject): SharedV4ProviderOptions
  /** Options of an image with this `detail`. */
  imageOptions?(detail: unknown): SharedV4ProviderOptions | undefined
  /** Returns what the vendor bills, if that differs from the usage that the SDK reads. */
  readBilled?(
    usage: JSONObject | undefined,
  ): { readonly input: number; readonly output: number; readonly cached: number | undefined } | undefined
  /** Null: the vendor has no embedding models. */
  readonly embeddings: VendorEmbeddings | null
}

interface VendorEmbeddings {
  /** Most texts of one `embed`. */
  readonly maxBatch: number
  toOptions(call: Pick<EmbeddingCall, 'engineModel' | 'dimensions' | 'purpose'>): JSONObject
}

const SAFE_IDS = { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 32 }
const ONE_CALL = { anthropic: { disableParallelToolUse: true } }

const anthropic: Vendor = {
  kind: 'anthropic',
  defaultAddress: () => 'https://api.anthropic.com/v1',
  async load({ baseUrl, apiKey }) {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    return (fetch) => createAnthropic({ baseURL: baseUrl, apiKey: apiKey ?? '', fetch })
  },
  optionsKey: 'anthropic',
  fetchesImages: true,
  instructionsFirst: true,
  callIds: SAFE_IDS,
  hasJsonMode: false,
  needsToolsOfHistory: true,
  hidesErrors: false,
  singleToolCalls: ONE_CALL,
  thinking: (budgetTokens) => ({ anthropic: { thinking: { type: 'enabled', budgetTokens } } }),
  toOptions({ safety_identifier: safetyIdentifier, user, cache_control: cache }) {
    const userId = safetyIdentifier ?? user
    return {
      anthropic: {
        ...(typeof userId === 'string' && userId !== '' && { metadata: { userId } }),
        // Anthropic marks the last block itself, and finds earlier cached parts of the conversation.
        ...(cache !== undefined && { cacheControl: { type: 'ephemeral' } }),
      },
    }
  },
  embeddings: null,
}

const google: Vendor = {
  kind: 'google',
  defaultAddress: () => 'https://generativelanguage.googleapis.com/v1beta',
  async load({ baseUrl, apiKey }) {
    const { createGoogle } = await import('@ai-sdk/google')
    return (fetch) => createGoogle({ baseURL: baseUrl, apiKey: apiKey ?? '', fetch })
  },
  optionsKey: 'google',
  fetchesImages: false,
  instructionsFirst: true,
  callIds: SAFE_IDS,
  hasJsonMode: true,
  needsToolsOfHistory: false,
  hidesErrors: true,
  singleToolCalls: null,
  toOptions({ messages }) {
    // Gemini has one resolution for all images of a request: the finest that is requested.
    const details = listDetails(messages)
    const level = details.includes('high') ? 'HIGH' : details.length > 0 && details.every((detail) => detail === 'low') ? 'LOW' : null
    return level ? { google: { mediaResolution: `MEDIA_RESOLUTION_${level}` } } : {}
  },
  embeddings: {
    maxBatch: 100,
    toOptions: ({ engineModel, dimensions, purpose }) => ({
      ...(dimensions !== null && { outputDimensionality: dimensions }),
      // Later models detect the purpose from the text itself, by the catalog's prefixes.
      ...(engineModel.includes('embedding-001') && { taskType: purpose === 'query' ? 'RETRIEVAL_QUERY' : 'RETRIEVAL_DOCUMENT' }),
    }),
  },
}

/** Regions of AWS under another domain. */
const AWS_DOMAINS = [
  { prefix: 'cn-', domain: 'amazonaws.com.cn' },
  { prefix: 'eusc-', domain: 'amazonaws.eu' },
]

const bedrock: Vendor = {
  kind: 'bedrock',
  defaultAddress({ region }) {
    const { domain } = AWS_DOMAINS.find(({ prefix }) => region?.startsWith(prefix)) ?? { domain: 'amazonaws.com' }
    return `https://bedrock-runtime.${region}.${domain}`
  },
  async load({ baseUrl, apiKey, region, accessKeyId, secretAccessKey, sessionToken }) {
    const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
    const keys = { accessKeyId: accessKeyId ?? '', secretAccessKey: secretAccessKey ?? '', ...(sessionToken && { sessionToken }) }
    // An empty key prevents the package from reading one from the environment. Requests are then signed.
    return (fetch) => createAmazonBedrock({ baseURL: baseUrl, region: region ?? '', apiKey: apiKey ?? '', ...keys, fetch })
  },
  optionsKey: 'amazonBedrock',
  fetchesImages: false,
  instructionsFirst: true,
  callIds: SAFE_IDS,
  hasJsonMode: false,
  needsToolsOfHistory: true,
  hidesErrors: false,
  singleToolCalls: ONE_CALL,
  thinking: (budgetTokens) => ({ amazonBedrock: { reasoningConfig: { type: 'enabled', budgetTokens } } }),
  embeddings: {
    // Titan and Nova accept one text per request. This many requests are sent at once.
    maxBatch: 16,
    toOptions({ engineModel, dimensions, purpose }) {
      if (engineModel.includes('cohere.')) return cohereEmbedding(dimensions, purpose)
      if (engineModel.includes('nova-')) {
        const embeddingPurpose = purpose === 'query' ? 'GENERIC_RETRIEVAL' : 'GENERIC_INDEX'
        return { embeddingPurpose, truncate: 'NONE', ...lengthOption('embeddingDimension', dimensions, [256, 384, 1_024, 3_072]) }
      }
      return lengthOption('dimensions', dimensions, [256, 512, 1_024])
    },
  },
}

const mistral: Vendor = {
  kind: 'mistral',
  defaultAddress: () => 'https://api.mistral.ai/v1',
  async load({ baseUrl, apiKey }) {
    const { createMistral } = await import('@ai-sdk/mistral')
    return (fetch) => createMistral({ baseURL: baseUrl, apiKey: apiKey ?? '', fetch })
  },
  optionsKey: 'mistral',
  fetchesImages: true,
  instructionsFirst: false,
  callIds: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
  hasJsonMode: true,
  needsToolsOfHistory: false,
  hidesErrors: false,
  singleToolCalls: { mistral: { parallelToolCalls: false } },
  strictSchema: { mistral: { strictJsonSchema: true } },
  toOptions: ({ prompt_cache_key: key }) => (typeof key === 'string' ? { mistral: { promptCacheKey: key } } : {}),
  embeddings: { maxBatch: 32, toOptions: ({ dimensions }) => (dimensions === null ? {} : { outputDimension: dimensions }) },
}

const cohere: Vendor = {
  kind: 'cohere',
  defaultAddress: () => 'https://api.cohere.com/v2',
  async load({ baseUrl, apiKey }) {
    const { createCohere } = await import('@ai-sdk/cohere')
    return (fetch) => createCohere({ baseURL: baseUrl, apiKey: apiKey ?? '', fetch })
  },
  optionsKey: 'cohere',
  fetchesImages: true,
  instructionsFirst: false,
  callIds: SAFE_IDS,
  hasJsonMode: true,
  needsToolsOfHistory: false,
  hidesErrors: false,
  singleToolCalls: null,
  imageOptions: (detail) => (typeof detail === 'string' ? { cohere: { detail } } : undefined),
  readBilled(usage) {
    // `tokens` includes Cohere's own additions to the prompt, which it does not bill.
    const { billed_units: billed, cached_tokens: cached } = (usage ?? {}) as CohereUsage
    if (typeof billed?.input_tokens !== 'number' || typeof billed.output_tokens !== 'number') return undefined
    return { input: billed.input_tokens, output: billed.output_tokens, cached: cached ?? undefined }
  },
  embeddings: { maxBatch: 96, toOptions: ({ dimensions, purpose }) => cohereEmbedding(dimensions, purpose) },
}

interface CohereUsage {
  readonly billed_units?: { readonly input_tokens?: unknown; readonly output_tokens?: unknown } | null
  readonly cached_tokens?: number | null
}

function cohereEmbedding(dimensions: number | null, purpose: EmbeddingCall['purpose']): JSONObject {
  const inputType = purpose === 'query' ? 'search_query' : 'search_document'
  // A text that is too long must fail, not be truncated.
  return { inputType, truncate: 'NONE', ...lengthOption('outputDimension', dimensions, [256, 512, 1_024, 1_536]) }
}

/** @throws {KisError} the model has no vectors of these dimensions */
function lengthOption(name: string, dimensions: number | null, lengths: readonly number[]): JSONObject {
  if (dimensions === null) return {}
  if (lengths.includes(dimensions)) return { [name]: dimensions }
  return refuse('unsupported_value', 'dimensions', `This model has vectors of ${lengths.join(', ')} dimensions.`)
}

/** Lists the `detail` of every image; `auto` if it has none. */
function listDetails(messages: unknown): readonly unknown[] {
  return (messages as readonly { readonly content?: unknown }[]).flatMap(({ content }) =>
    Array.isArray(content) ? content.filter(({ type }) => type === 'image_url').map(({ image_url: image }) => image?.detail ?? 'auto') : [],
  )
}

export const VENDORS: Readonly<Record<VendorKind, Vendor>> = { anthropic, google, bedrock, mistral, cohere }
