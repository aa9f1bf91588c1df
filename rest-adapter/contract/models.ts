import { type Static, Type } from '@sinclair/typebox'
import type { JsonObject } from '../http/route.ts'
import {
  array,
  boolean,
  constant,
  define,
  described,
  integer,
  nullable,
  number,
  object,
  oneOf,
  operation,
  optional,
  string,
} from './build.ts'
import { ResidencyPolicy } from './organizations.ts'
import { IdempotencyKey, IdempotentReplayed, listOf, RateLimitHeaders, UnixSeconds } from './shared.ts'

export const PriceTier = define('PriceTier').object('The prices of longer calls.', {
  above_input_tokens: integer('The tier applies to calls with more input tokens than this.'),
  input: nullable(string('The price of a million input tokens.')),
  cached_input: nullable(string('The price of a million input tokens that the engine read from its cache.')),
  cache_write: nullable(string('The price of a million input tokens that the engine wrote to its cache.')),
  output: nullable(string('The price of a million output tokens.')),
})

export const Price = define('Price').as(
  nullable(
    object('Prices in US dollars. Null where a price does not apply.', {
      input: optional(nullable(string('The price of a million input tokens.'))),
      cached_input: optional(nullable(string('The price of a million input tokens that the engine read from its cache.'))),
      cache_write: optional(nullable(string('The price of a million input tokens that the engine wrote to its cache.'))),
      output: optional(nullable(string('The price of a million output tokens.'))),
      audio_minute: optional(nullable(string('The price of a minute of audio.'))),
      search_thousand: optional(nullable(string('The price of a thousand search units of a reranker.'))),
      tiers: optional(
        array(
          PriceTier,
          'The prices of longer calls, shortest first. A tier applies to the whole call, including its output, once the input, ' +
            'cached or not, has more than `above_input_tokens`.',
        ),
      ),
    }),
  ),
)

export const EmbeddingsRequest = define('EmbeddingsRequest').closed({
  model: string('The id of an embedding model that your key may call.', { minLength: 1, maxLength: 200 }),
  input: Type.Unsafe<string | readonly unknown[]>({
    type: ['string', 'array'],
    minLength: 1,
    minItems: 1,
    items: Type.Unsafe<string | number | readonly unknown[]>({ type: ['string', 'integer', 'array'], items: integer() }),
    if: { type: 'array', prefixItems: [{ type: 'integer' }] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { maxItems: 300_000 },
    else: { maxItems: 2048 },
    description:
      'One text, or 1 to 2048 texts, or one list of tokens, or several. An engine that accepts no tokens gets their text: they ' +
      "must be of `cl100k_base`, the encoding of OpenAI's embedding models. No text may be empty or longer than the model's " +
      'limit (8,192 tokens unless the model has another), and all together have at most 300,000 tokens.',
  }),
  encoding_format: optional(
    oneOf(
      ['float', 'base64'],
      'How to encode the vectors: `float` as a list of numbers, `base64` as little-endian 32-bit floats in base64.',
      { default: 'float' },
    ),
  ),
  dimensions: optional(
    integer("Truncates the vectors to this number of dimensions, at most the model's own, and normalizes them to length 1 again.", {
      minimum: 1,
    }),
  ),
  user: optional(string('Your id of your end user. The service passes it to the engine.', { maxLength: 512 })),
})

export const Embeddings = define('Embeddings').object({
  object: constant('list'),
  data: array(
    object({
      object: constant('embedding'),
      index: integer('The position of its text in the input, from 0.'),
      embedding: Type.Unsafe<readonly unknown[] | string>({
        type: ['array', 'string'],
        items: number(),
        description: 'The vector, in the encoding that you requested.',
      }),
    }),
    'The embeddings, in the order of the input.',
  ),
  model: string('The id of the model.'),
  usage: object('The tokens of the input.', {
    prompt_tokens: optional(integer('The tokens that were embedded.')),
    total_tokens: optional(integer('The same as `prompt_tokens`.')),
  }),
})

export const RerankRequest = define('RerankRequest').closed(
  {
    model: string('The id of a rerank model that your key may call.', { minLength: 1, maxLength: 200 }),
    query: string('What the documents should answer.', { minLength: 1, maxLength: 8192 }),
    documents: array(
      Type.Unsafe<string | JsonObject>({
        type: ['string', 'object'],
        minLength: 1,
        maxLength: 100_000,
        required: ['text'],
        additionalProperties: false,
        properties: { text: string('The text of the document.', { minLength: 1, maxLength: 100_000 }) },
      }),
      '1 to 1000 documents, each a text or an object with a `text`, all together at most 2,000,000 characters. If a document is ' +
        'longer than its model allows, the engine reads its beginning.',
      { minItems: 1, maxItems: 1000 },
    ),
    top_n: optional(integer('The most results to return. Left out, all.', { minimum: 1 })),
    return_documents: optional(boolean('Whether each result repeats its document.', { default: false })),
  },
  {
    examples: [
      {
        model: 'rerank-v3.5',
        query: 'كم يوماً من الإجازة السنوية؟',
        documents: ['Meals are reimbursed.', 'يحق لكل موظف ثلاثون يوماً من الإجازة السنوية.'],
        top_n: 1,
      },
    ],
  },
)

export const QuotedReranker = define('QuotedReranker').object({
  id: string('The id of the model.'),
  tokens: integer('The tokens, as the service counts them.'),
  search_units: integer('The search units, as the service counts them.'),
  held_tokens: integer('The tokens to hold money for: the count and a margin.'),
  held_search_units: integer('The search units to hold money for. 0 if the model has a price of tokens.'),
  amount_usd: string('The amount that would be held, in US dollars.'),
  is_covered: boolean("Whether the wallet and the key's spend limit cover the amount now."),
  rate_card_version: string("The version of the model's prices. It changes whenever one of them does."),
  price: Price,
})

export const RerankQuote = define('RerankQuote').object('The most that a reranking would hold.', {
  object: constant('rerank.quote'),
  tokens: integer('The tokens, as the service counts them: each document with the query.'),
  search_units: integer('One for each 100 documents of a call to the engine. A long document counts as several.'),
  amount_usd: string(
    'The most that the request would hold at any time, in US dollars. The service tries the models one after the other, so ' +
      'this is the amount of the most expensive one.',
  ),
  is_covered: boolean("Whether the wallet and the key's spend limit cover the requested model now."),
  models: array(QuotedReranker, 'The model that you requested, then its fallbacks in the order in which the service would try them.'),
})

export const Reranking = define('Reranking').object({
  id: string('The id of the response: `rerank_…`.'),
  object: constant('rerank'),
  model: string('The id of the model that ranked the documents: the one that you requested, or a fallback.'),
  results: array(
    object({
      index: integer('The position of the document in the request, from 0.'),
      relevance_score: number('The relevance; higher is better. You can compare scores of one model only. Most models return 0 to 1.'),
      document: optional(object('The document, if you requested it.', { text: optional(string('The text of the document.')) })),
    }),
    'The results, best first.',
  ),
  usage: object("What was used, as Jina's clients read it.", {
    prompt_tokens: optional(integer('The tokens that the engine read, or an estimate if it reports none.')),
    total_tokens: optional(integer('The same as `prompt_tokens`.')),
    search_units: optional(integer('The search units, if the model is paid by them; else 0.')),
  }),
  meta: object("The same, as Cohere's clients read it.", {
    api_version: optional(
      object("The version of Cohere's API whose response this resembles.", { version: optional(string('Always `2`.')) }),
    ),
    billed_units: optional(
      object('What the price depends on.', { search_units: optional(integer('The search units, if the model is paid by them; else 0.')) }),
    ),
    tokens: optional(
      object('The tokens.', { input_tokens: optional(integer('The tokens that the engine read, or an estimate if it reports none.')) }),
    ),
  }),
})

export const Model = define('Model').object("A model of the operator's catalog.", {
  id: string('The id, which you send as `model`.'),
  object: constant('model'),
  created: integer('The same as `created_at`, under the name of the OpenAI API.'),
  created_at: UnixSeconds,
  owned_by: string('The name of the engine in the catalog.'),
  kind: oneOf(['chat', 'embedding', 'transcription', 'rerank'], 'What the model does.'),
  residency: oneOf(
    ['local', 'regional', 'cloud'],
    "Where the engine of the model runs: on the operator's own machines, in the operator's region, or in a vendor's cloud.",
  ),
  supports_vision: boolean('Whether the model accepts images.'),
  supports_tools: boolean('Whether the model can call functions.'),
  supports_response_schema: boolean('Whether the model supports `response_format` with a JSON schema.'),
  supports_reasoning: boolean('Whether the model accepts `reasoning_effort`, according to the catalog.'),
  context_window: nullable(integer('The most tokens of input and output together. Null if unknown.')),
  price: Price,
})
export type Model = Static<typeof Model>

export const ModelList = define('ModelList').as(listOf(Model))

export const ResidencyEffects = define('ResidencyEffects').object(
  'What a residency policy permits and forbids.',
  {
    object: constant('residency_effects'),
    policy: ResidencyPolicy,
    residencies: array(oneOf(['local', 'regional', 'cloud']), 'The residencies of models that the policy permits.'),
    permitted_models: array(Model, 'The models that the policy permits, by id.'),
    forbidden_models: array(Model, 'The models that the policy forbids, by id. Their `residency` is the reason.'),
  },
  { example: { object: 'residency_effects', policy: 'local_only', residencies: ['local'], permitted_models: [], forbidden_models: [] } },
)

export const createEmbeddings = operation('createEmbeddings', 'POST', '/v1/embeddings', {
  tag: 'Inference',
  summary: 'Create embeddings',
  description:
    'Embeds texts. If the model has prefixes and a text begins with none of them, the service adds the query prefix. Requires ' +
    'the scope `inference`.',
  headers: { 'Idempotency-Key': IdempotencyKey },
  body: EmbeddingsRequest,
  responses: {
    200: {
      description: 'One embedding for each text, in the order of the input.',
      json: Embeddings,
      headers: { ...RateLimitHeaders, 'idempotent-replayed': IdempotentReplayed },
    },
  },
})

export const createRerank = operation('createRerank', 'POST', '/v1/rerank', {
  tag: 'Inference',
  summary: 'Rerank documents',
  description:
    'Orders documents by their relevance to a query. Clients of Jina and Cohere read the response. Requires the scope `inference`.',
  headers: { 'Idempotency-Key': IdempotencyKey },
  body: RerankRequest,
  responses: {
    200: {
      description: 'The documents in the order of their relevance, best first.',
      json: Reranking,
      headers: { ...RateLimitHeaders, 'idempotent-replayed': IdempotentReplayed },
    },
  },
})

export const quoteRerank = operation('quoteRerank', 'POST', '/v1/rerank/quote', {
  tag: 'Inference',
  summary: 'Get a quote for a reranking',
  description:
    'Returns the most that a reranking would hold. Send its body. The quote holds no money and calls no engine. It counts as ' +
    'one request of your key, and uses no tokens. It fails with the errors that the request would fail with before those ' +
    'steps. If you cannot pay for the request, the quote succeeds with `"is_covered": false`. Requires the scope `inference`.',
  body: RerankRequest,
  responses: { 200: { description: 'The quote, with the prices that it uses.', json: RerankQuote, headers: { ...RateLimitHeaders } } },
})

export const createRerankV2 = operation('createRerankV2', 'POST', '/v2/rerank', {
  tag: 'Inference',
  summary: 'Rerank documents (Cohere)',
  description: "The same as `POST /v1/rerank`, at the address that Cohere's client calls. Requires the scope `inference`.",
  headers: { 'Idempotency-Key': IdempotencyKey },
  body: RerankRequest,
  responses: {
    200: {
      description: 'The documents in the order of their relevance, best first.',
      json: Reranking,
      headers: { ...RateLimitHeaders, 'idempotent-replayed': IdempotentReplayed },
    },
  },
})

export const listModels = operation('listModels', 'GET', '/v1/models', {
  tag: 'Inference',
  summary: 'List the models that your key may call',
  description:
    "Lists the models on your key's allowlist that the organization's residency policy permits, on one page. Requires the " +
    'scope `inference`.',
  responses: { 200: { description: 'The models.', json: ModelList } },
})

export const getModel = operation('getModel', 'GET', '/v1/models/{id}', {
  tag: 'Inference',
  summary: 'Get a model',
  description: 'Gets a model. Requires the scope `inference`.',
  params: { id: string('The id of the model, or an alias. You can percent-encode a slash in it.') },
  responses: { 200: { description: 'The model.', json: Model } },
})

export const getResidencyEffects = operation('getResidencyEffects', 'GET', '/v1/organization/residency-effects', {
  tag: 'Account',
  summary: 'Preview a residency policy',
  description:
    "Returns the models on your key's allowlist that a residency policy permits, and those that it forbids. Changes nothing. " +
    'Requires the scope `admin`.',
  query: { policy: described(ResidencyPolicy, 'The policy. It need not be that of your organization.', { example: 'local_only' }) },
  responses: { 200: { description: 'What the policy does.', json: ResidencyEffects } },
})
