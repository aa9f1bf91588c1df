import { type Static, Type } from '@sinclair/typebox'
import type { JsonObject } from '../http/route.ts'
import {
  array,
  boolean,
  closed,
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
  reference,
  string,
} from './build.ts'
import { CollectionId } from './collections.ts'
import { List } from './shared.ts'

export const SearchFilter = define('SearchFilter').as(
  Type.Unsafe<JsonObject>({
    type: 'object',
    description:
      'Restricts the search. The filter is one of `{field: value}`, `{op, field, value}` with the `op` `eq`, `ne`, `in`, `gt`, ' +
      '`gte`, `lt` or `lte`, and `{op, filters}` with the `op` `and`, `or` or `not`. The `op` `contains` looks for a part of a ' +
      'text. Fields are `file_name`, `media_type`, `language`, `document_id`, `created_at`, `page` and `metadata.*`. At most 5 ' +
      'levels and 50 conditions, 5 of them with `contains`.',
    properties: {
      op: oneOf(
        ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'contains', 'and', 'or', 'not'],
        'What must hold. Leave it out for `{field: value}`.',
      ),
      field: string('The field to compare, with an `op` of values.'),
      value: Type.Unsafe<string | number | boolean | readonly unknown[]>({
        type: ['string', 'number', 'boolean', 'array'],
        items: Type.Unsafe<string | number | boolean>({ type: ['string', 'number', 'boolean'] }),
        description: 'What to compare it with: a list with `in`, a single value otherwise.',
      }),
      filters: array(reference<JsonObject>('SearchFilter'), 'With `and` and `or`: the filters. With `not`: the one that must not hold.'),
      filter: described(reference<JsonObject>('SearchFilter'), 'With `not`, instead of `filters`.'),
    },
    additionalProperties: {
      type: ['string', 'number', 'boolean'],
      description: 'A field with the value that it must have, in `{field: value}`.',
    },
    examples: [
      { language: 'ar', 'metadata.year': 2026 },
      {
        op: 'and',
        filters: [
          { op: 'in', field: 'file_name', value: ['a.pdf', 'b.pdf'] },
          { op: 'gte', field: 'page', value: 3 },
        ],
      },
    ],
  }),
)

export const PageBox = define('PageBox').object('Where a line or a row of a table is.', {
  x: number('Its left edge, from the left edge of the page.'),
  y: number('Its upper edge, from the upper edge of the page.'),
  width: number('Its width.'),
  height: number('Its height.'),
  start: integer('Where its text begins in `text`, in UTF-16 code units, as `highlights` count.'),
  end: integer('Where its text ends: the offset after its last character.'),
})

export const PageWithBoxes = define('PageWithBoxes').object('A page and where it shows a chunk.', {
  page: integer('The page, counted from 1.'),
  width: number('The width of the page as shown, after the rotation that the file states.'),
  height: number('The height of the page as shown, after the rotation that the file states.'),
  boxes: array(PageBox, 'A box for each line or table row, in the order of the text. A chunk with more than 64 lines has 64 boxes.'),
})

export const PageBoxes = define('PageBoxes').as(
  nullable(
    array(
      PageWithBoxes,
      'Where the pages show the chunk, for PDFs and for images that OCR read: only with `page_boxes` of the request. All ' +
        'lengths are in points, 72 to the inch; for image files in pixels. Null for other formats, for text that is ' +
        'slanted, and for documents that an earlier version of the service read.',
    ),
  ),
)

/** The fields that a search of one collection and a search of several have. */
const SEARCH_FIELDS = {
  query: string('The question or words to search for, in Arabic or English.', { minLength: 1, maxLength: 8192 }),
  limit: optional(integer('The most chunks to return, or the most documents with `group_by`.', { minimum: 1, maximum: 50, default: 10 })),
  mode: optional(
    oneOf(
      ['hybrid', 'vector', 'lexical'],
      'How to rank the chunks: `hybrid` by meaning and words, `vector` by meaning only, `lexical` by words only.',
      { default: 'hybrid' },
    ),
  ),
  filter: optional(SearchFilter),
  rerank_model: optional(
    nullable(
      string(
        "The id of a rerank model that orders the best 50 chunks. Leave it out to use the collection's default, which does not " +
          'apply to the mode `lexical`; null means none. If the model fails, the chunks keep their order, and `rerank` of the response ' +
          'shows it.',
        { minLength: 1, maxLength: 200 },
      ),
    ),
  ),
  history: optional(
    array(
      closed({ role: oneOf(['user', 'assistant'], 'Who wrote the message.'), content: string('Its text.', { maxLength: 8192 }) }),
      'The conversation before the query, oldest first. `rewrite_model` then generates a query from it that stands alone. If the model ' +
        'fails, the query is searched as it is, and `rewrite` of the response shows it.',
      { maxItems: 20 },
    ),
  ),
  rewrite_model: optional(
    string(
      'The id of the chat model that rewrites the query, with `history`. You pay for its reply, and your key also needs the ' +
        'scope `inference`.',
      { minLength: 1, maxLength: 200 },
    ),
  ),
  min_score: optional(
    number(
      'Leaves out chunks with a lower score: 0.3 leaves out what is weak, 0.5 what is more likely wrong than right. With a ' +
        'reranker, its score counts.',
    ),
  ),
  lexical_weight: optional(
    number('The weight of words relative to meaning in the mode `hybrid`.', { minimum: 0, maximum: 10, default: 1 }),
  ),
  expand: optional(integer('How many chunks before and after each hit to return with it.', { minimum: 0, maximum: 3, default: 0 })),
  group_by: optional(oneOf(['document'], 'Groups the hits by document. `limit` is then the most documents.')),
  hits_per_document: optional(integer('The most hits of one document, with `group_by`.', { minimum: 1, maximum: 10, default: 3 })),
  facets: optional(
    array(
      string(undefined, { maxLength: 100 }),
      'Fields whose values to count over the documents that the search considered: `language`, `file_name`, `media_type` and `metadata.*`.',
      { maxItems: 8 },
    ),
  ),
  page_boxes: optional(boolean('With `true`, each result has `page_boxes`.', { default: false })),
}

export const SearchRequest = define('SearchRequest').closed(
  {
    ...SEARCH_FIELDS,
  },
  {
    examples: [
      {
        query: 'كم يوماً من الإجازة السنوية؟',
        limit: 5,
        filter: { op: 'contains', field: 'file_name', value: 'دليل' },
        expand: 1,
        facets: ['language', 'metadata.القسم'],
      },
    ],
  },
)

export const SearchSeveralRequest = define('SearchSeveralRequest').closed(
  {
    collection_ids: array(
      string(undefined, { minLength: 1, maxLength: 100 }),
      'The ids of 1 to 10 collections. Collections with the same embedding model are ranked together. Chunks of different models ' +
        'alternate by rank, because their scores cannot be compared.',
      { minItems: 1, maxItems: 10 },
    ),
    ...SEARCH_FIELDS,
  },
  { examples: [{ collection_ids: ['col_0192f0c1a1b27c3d8e4f5a6b7c8d9e0f'], query: 'annual leave', group_by: 'document' }] },
)

export const NeighbourChunk = define('NeighbourChunk').object('A chunk beside a hit.', {
  chunk_id: string('The id of the chunk: `chunk_…`.'),
  text: string('The text of the chunk.'),
  heading_path: array(string(), 'The headings above the chunk, outermost first.'),
  page_start: nullable(integer('The first page of the chunk.')),
  page_end: nullable(integer('The last page of the chunk.')),
  char_start: integer("Where the chunk begins in the document's text."),
  char_end: integer('Where the chunk ends.'),
})

export const SearchResult = define('SearchResult').object('A chunk that a search found.', {
  object: constant('search_result'),
  chunk_id: string('The id of the chunk: `chunk_…`.'),
  text: string('The text of the chunk, exactly as in the document.'),
  score: number(
    'The share of chunks with this score that answer their query, 0 to 1, as measured on queries that have an answer: of chunks with ' +
      '0.5 about half. So you can compare scores of different queries. With another embedding model than the embedded one it is ' +
      'the cosine, except in the mode `lexical`: compare those within one response only. With a reranker that was applied, its ' +
      'score.',
  ),
  relevance: nullable(
    oneOf(
      ['strong', 'likely', 'weak'],
      "The score in a word: `strong` from 0.7, `likely` from 0.3, `weak` below. Null where the score is a cosine or a reranker's.",
    ),
  ),
  lexical_rank: nullable(
    integer('The rank by words; 1 is the best. Null if the chunk shares no word with the query, or in the mode `vector`.'),
  ),
  vector_rank: nullable(integer('The rank by meaning; 1 is the best. Null in the mode `lexical`.')),
  heading_path: array(
    string(),
    'The headings above the chunk, outermost first. The last item is the range of cells in a sheet (`Sales!A2:D40`), the rows ' +
      'or lines of a data file, or the times of subtitles (`00:01:05–00:01:41`).',
  ),
  page_start: nullable(integer('The first page of the chunk, counted from 1. Null for formats without pages.')),
  page_end: nullable(integer('The last page of the chunk, counted from 1. Null for formats without pages.')),
  char_start: integer("Where the chunk begins: an offset into the document's text, in UTF-16 code units."),
  char_end: integer('Where the chunk ends: the offset after its last character, in UTF-16 code units.'),
  document_id: string('The id of the document.'),
  document_status: oneOf(
    ['ready', 'processing'],
    '`processing` while the first version of the document is ingested: searches find its chunks as they are embedded, and have not ' +
      'seen all of them.',
  ),
  file: object('The file of the document.', { id: string('The id of the file: `file_…`.'), file_name: string('The name of the file.') }),
  collection_id: string('The id of the collection.'),
  highlights: array(
    object({
      start: integer('Where the word begins in `text`, in UTF-16 code units.'),
      end: integer('Where it ends: the offset after its last character.'),
    }),
    'The words of `text` that the query has, by their stems: at most 64.',
  ),
  page_boxes: optional(PageBoxes),
  before: array(NeighbourChunk, "The chunks before it in the document, in the document's order: as many as `expand` requests."),
  after: array(NeighbourChunk, "The chunks after it in the document, in the document's order: as many as `expand` requests."),
})
export type SearchResult = Static<typeof SearchResult>

export const SearchResultList = define('SearchResultList').extend([List], {
  data: array(SearchResult, 'The chunks, best first.'),
  groups: nullable(
    array(
      object({ document_id: string('The id of the document.'), chunk_ids: array(string(), 'Its hits in `data`, best first.') }),
      'The hits by document, the document with the best hit first. Null without `group_by`.',
    ),
  ),
  facets: array(
    object({
      field: string('The field, as you named it.'),
      values: array(
        object({
          value: Type.Unsafe<string | number | boolean>({ type: ['string', 'number', 'boolean'], description: 'The value.' }),
          documents: integer('The number of documents that have it.'),
        }),
        'The 20 most frequent values, the most frequent first.',
      ),
    }),
    'The facets that you requested. They count the documents that the search considered: those of its 100 best chunks by ' +
      'meaning, by words and by parts of words, in each collection.',
  ),
  rerank: nullable(
    object('What the reranker did. Null if the search used none.', {
      model: nullable(string('The id of the model. Null if the catalog no longer has it.')),
      applied: boolean(
        'Whether the model ordered the chunks. If not, the chunks have the order of the search, and reranking cost nothing.',
      ),
      error: nullable(string('The code of the error, if the model failed.')),
    }),
  ),
  rewrite: nullable(
    object('How the query was rewritten with `history`. Null without `history`.', {
      query: string('The query that the service searched for.'),
      applied: boolean('Whether the model rewrote the query. If not, the service searched for the query as it was.'),
      error: nullable(string('The code of the error, if the model failed.')),
    }),
  ),
})

export const searchCollection = operation('searchCollection', 'POST', '/v1/collections/{id}/search', {
  tag: 'Knowledge',
  summary: 'Search a collection',
  description:
    'Returns the most relevant chunks with their source files, best first. You pay for the embedding of the query; the mode ' +
    "`lexical` is free. Your key needs the collection's embedding model on its allowlist. Requires the scope `knowledge:read`.",
  params: { id: CollectionId },
  body: SearchRequest,
  responses: { 200: { description: 'The chunks found, best first.', json: SearchResultList } },
})

export const searchCollections = operation('searchCollections', 'POST', '/v1/search', {
  tag: 'Knowledge',
  summary: 'Search several collections',
  description:
    'Searches up to 10 collections at once, as the search of one does. You pay for one embedding of the query for each ' +
    'embedding model. Your key needs the embedding models of all of them on its allowlist. Requires the scope `knowledge:read`.',
  body: SearchSeveralRequest,
  responses: { 200: { description: 'The chunks found, best first.', json: SearchResultList } },
})
