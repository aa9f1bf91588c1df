import type { Static } from '@sinclair/typebox'
import { boolean, constant, define, described, extend, integer, nullable, object, oneOf, operation, optional, string } from './build.ts'
import {
  AfterPlace,
  Deletion,
  Failure,
  Limit,
  listOf,
  NameContains,
  Order,
  Page,
  Progress,
  Since,
  SortBy,
  UnixSeconds,
  Until,
} from './shared.ts'

export const CollectionCode = define('CollectionCode').as(
  string('A short code, unique in the organization: letters, digits, `_`, `-` or `.`.', {
    minLength: 1,
    maxLength: 64,
    pattern: '^[A-Za-z0-9_.-]+$',
  }),
)

export const CollectionName = define('CollectionName').as(string('The display name.', { minLength: 1, maxLength: 200 }))

export const CollectionDescription = define('CollectionDescription').as(
  nullable(string('What the collection contains, in your words. Null if you set no description.', { maxLength: 2000 })),
)

export const OcrMode = define('OcrMode').as(
  oneOf(
    ['off', 'auto'],
    'Whether the service recognizes text in images (OCR). `auto`: where a page has no readable text of its own, such as a ' +
      'scan, and in images (PNG, JPEG, TIFF, WebP). It reads Arabic and English; a page takes 3 to 10 seconds. `off`: never; a ' +
      'scan fails with `no_text`, and an image cannot be attached. A change affects documents that are read from then on.',
  ),
)

export const TranscriptionModel = define('TranscriptionModel').as(
  nullable(
    string(
      'The id of a transcription model that transcribes audio that you attach. Your wallet pays for it. Null ' +
        'means none, so the collection accepts no audio. A change affects documents that are read from then on.',
      { minLength: 1, maxLength: 200 },
    ),
  ),
)

export const CollectionCreation = define('CollectionCreation').closed({
  collection_code: CollectionCode,
  collection_name: CollectionName,
  embedding_model: string('The id of an embedding model that your key may call.', { minLength: 1, maxLength: 200 }),
  rerank_model: optional(
    nullable(
      string('The id of the rerank model of searches that name no other. Null means none.', {
        minLength: 1,
        maxLength: 200,
      }),
    ),
  ),
  transcription_model: optional(TranscriptionModel),
  description: optional(CollectionDescription),
  ocr: optional(described(OcrMode, undefined, { default: 'off' })),
})

export const CollectionChange = define('CollectionChange').closed(
  {
    collection_code: optional(CollectionCode),
    collection_name: optional(CollectionName),
    rerank_model: optional(
      nullable(
        string('The id of the rerank model of searches that name no other. Null means none.', {
          minLength: 1,
          maxLength: 200,
        }),
      ),
    ),
    transcription_model: optional(TranscriptionModel),
    description: optional(CollectionDescription),
    ocr: optional(OcrMode),
  },
  { minProperties: 1 },
)

export const Collection = define('Collection').object(
  'A named set of documents that you search together. All its chunks are embedded with one model.',
  {
    id: string('The id: `col_…`.'),
    object: constant('collection'),
    created_at: UnixSeconds,
    collection_code: CollectionCode,
    collection_name: CollectionName,
    embedding_model: nullable(string('The id of the model that embeds the chunks and queries. Null if the catalog no longer has it.')),
    rerank_model: nullable(string('The id of the rerank model of searches that name no other. Null if there is none.')),
    transcription_model: nullable(string('The id of the model that transcribes audio. Null if there is none.')),
    dimensions: integer('The dimensions of each vector.'),
    description: CollectionDescription,
    ocr: OcrMode,
    document_count: integer('The number of documents, in any status.'),
    document_counts: object('The number of documents in each status.', {
      queued: integer('The number of documents that wait for a worker.'),
      processing: integer('The number of documents that are being processed.'),
      ready: integer('The number of documents that searches find.'),
      failed: integer('The number of documents that failed.'),
    }),
    chunk_count: integer('The number of chunks of ready documents.'),
  },
)
export type Collection = Static<typeof Collection>

export const CollectionList = define('CollectionList').as(listOf(Collection))

export const ReembeddingStart = define('ReembeddingStart').closed(
  { embedding_model: string('The id of the embedding model: another one, or that of the collection.') },
  { example: { embedding_model: 'text-embedding-3-small' } },
)

export const ReembeddingQuote = define('ReembeddingQuote').object(
  'The estimate of embedding a collection with another model.',
  {
    object: constant('reembedding.quote'),
    collection_id: string('The id of the collection.'),
    embedding_model: nullable(string('The id of the new model.')),
    residency: nullable(
      oneOf(['local', 'regional', 'cloud'], 'Where the engine of the model runs. Null if the catalog no longer has the model.'),
    ),
    dimensions: integer("The dimensions of the new model's vectors."),
    passages: integer('The number of chunks.'),
    tokens: integer('The number of tokens. For more than 2048 chunks it is an estimate plus 10%.'),
    is_exact: boolean('Whether every chunk was counted.'),
    amount_usd: string('The price of the tokens: the amount that the service holds.'),
    is_covered: boolean("Whether the wallet and the key's spend limit cover the amount now."),
  },
  {
    example: {
      object: 'reembedding.quote',
      collection_id: 'col_0190',
      embedding_model: 'text-embedding-3-small',
      residency: 'cloud',
      dimensions: 1536,
      passages: 1200,
      tokens: 284_113,
      is_exact: true,
      amount_usd: '0.00568226',
      is_covered: true,
    },
  },
)

export const Reembedding = define('Reembedding').object(
  'The change of a collection to another embedding model.',
  {
    id: string('The id: `remb_…`.'),
    object: constant('reembedding'),
    created_at: UnixSeconds,
    ended_at: nullable(integer('When it ended, in Unix seconds. Null while it is in progress.')),
    collection_id: string('The id of the collection.'),
    former_model: string('The id of the former model.'),
    embedding_model: string('The id of the new model.'),
    status: oneOf(
      ['running', 'cancelling', 'completed', 'failed', 'cancelled'],
      'The state. Searches use the new model once it is `completed`.',
    ),
    stage: nullable(oneOf(['embedding', 'swapping', 'tidying'], 'The current step. Null once it has ended.')),
    progress: extend([Progress], 'The progress, in chunks. Chunks of documents that are added meanwhile count in addition.', {}),
    tokens: integer('The number of tokens embedded so far.'),
    cost_usd: string('What it has cost so far.'),
    error: described(nullable(Failure), 'Why it failed or, while it is `running`, why it waits to try again. Otherwise null.'),
  },
  {
    example: {
      id: 'remb_0190',
      object: 'reembedding',
      created_at: 1_795_413_600,
      collection_id: 'col_0190',
      former_model: 'e5-small-ar-en',
      embedding_model: 'text-embedding-3-small',
      status: 'running',
      stage: 'embedding',
      progress: { done: 480, total: 1200 },
      tokens: 113_644,
      cost_usd: '0.00227288',
      ended_at: null,
      error: null,
    },
  },
)
export type Reembedding = Static<typeof Reembedding>

export const ReembeddingList = define('ReembeddingList').as(listOf(Reembedding))

export const CollectionId = string('The id of the collection, `col_…`.')
export const ReembeddingId = string('The id of the re-embedding, `remb_…`.')

export const createCollection = operation('createCollection', 'POST', '/v1/collections', {
  tag: 'Knowledge',
  summary: 'Create a collection',
  description: 'Creates a collection. You cannot change its embedding model later. Requires the scope `knowledge:write`.',
  body: CollectionCreation,
  responses: { 201: { description: 'The collection.', json: Collection } },
})

export const listCollections = operation('listCollections', 'GET', '/v1/collections', {
  tag: 'Knowledge',
  summary: 'List collections',
  description:
    'Lists the collections of your organization. Requires the scope `knowledge:read`. With `name_contains` a page may have ' +
    'fewer items than you request, or none, while `has_more` is true. Then, and with `sort_by=name`, `last_id` is a cursor: ' +
    'send it as `after`, with the same filters.',
  query: { limit: Limit, after: AfterPlace, order: Order, sort_by: SortBy, name_contains: NameContains, since: Since, until: Until },
  responses: { 200: { description: 'One page of the list.', json: CollectionList } },
})

export const getCollection = operation('getCollection', 'GET', '/v1/collections/{id}', {
  tag: 'Knowledge',
  summary: 'Get a collection',
  description: 'Gets a collection. Requires the scope `knowledge:read`.',
  params: { id: CollectionId },
  responses: { 200: { description: 'The collection.', json: Collection } },
})

export const updateCollection = operation('updateCollection', 'PATCH', '/v1/collections/{id}', {
  tag: 'Knowledge',
  summary: "Change a collection's code, name or description",
  description: 'Changes a collection. Fields that you leave out keep their values. Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  body: CollectionChange,
  responses: { 200: { description: 'The collection.', json: Collection } },
})

export const deleteCollection = operation('deleteCollection', 'DELETE', '/v1/collections/{id}', {
  tag: 'Knowledge',
  summary: 'Delete a collection',
  description:
    'Deletes a collection with its documents and chunks. The files stay. Fails with `in_use` while agents search the ' +
    'collection; the message names them. Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  query: {
    detach: optional(
      boolean(
        'Whether to delete the collection even while agents search it. The agents then answer without it, and their answers report ' +
          'that it was deleted.',
        { default: false },
      ),
    ),
  },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const quoteReembedding = operation('quoteReembedding', 'POST', '/v1/collections/{id}/reembeddings/quote', {
  tag: 'Knowledge',
  summary: 'Get a quote for another embedding model',
  description:
    "Estimates what it would take to embed the collection's chunks with another model, or again with its own: chunks, tokens, " +
    "the price, and where the model's engine runs. Changes, holds and charges nothing. Requires the scope `knowledge:write`.",
  params: { id: CollectionId },
  body: ReembeddingStart,
  responses: { 200: { description: 'The quote.', json: ReembeddingQuote } },
})

export const startReembedding = operation('startReembedding', 'POST', '/v1/collections/{id}/reembeddings', {
  tag: 'Knowledge',
  summary: "Change a collection's embedding model",
  description:
    "Starts to embed the collection's chunks with another model, or again with its own, in the background. Searches use the " +
    'former vectors until all chunks are embedded, then switch to the new ones at once. Documents that you add, ' +
    "replace or delete meanwhile are in the result. Your key pays. Fails with `insufficient_quota` if the wallet or the key's " +
    'spend limit does not cover the quote, and with `in_use` while another re-embedding of your organization is running. ' +
    'Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  body: ReembeddingStart,
  responses: { 201: { description: 'The re-embedding.', json: Reembedding } },
})

export const listReembeddings = operation('listReembeddings', 'GET', '/v1/collections/{id}/reembeddings', {
  tag: 'Knowledge',
  summary: "List a collection's re-embeddings",
  description: 'Lists the re-embeddings of a collection. The service stores the newest 20. Requires the scope `knowledge:read`.',
  params: { id: CollectionId },
  query: { ...Page },
  responses: { 200: { description: 'One page of the list.', json: ReembeddingList } },
})

export const getReembedding = operation('getReembedding', 'GET', '/v1/reembeddings/{id}', {
  tag: 'Knowledge',
  summary: 'Get a re-embedding',
  description: 'Gets a re-embedding with its progress and what it has cost so far. Requires the scope `knowledge:read`.',
  params: { id: ReembeddingId },
  responses: { 200: { description: 'The re-embedding.', json: Reembedding } },
})

export const cancelReembedding = operation('cancelReembedding', 'POST', '/v1/reembeddings/{id}/cancel', {
  tag: 'Knowledge',
  summary: 'Cancel a re-embedding',
  description:
    'Cancels a re-embedding. It ends after the current batch. You pay for what was embedded, and the rest of the hold is ' +
    'freed; nothing of the new model stays. A re-embedding that has ended does not change. Requires the scope `knowledge:write`.',
  params: { id: ReembeddingId },
  responses: { 200: { description: 'The re-embedding.', json: Reembedding } },
})
