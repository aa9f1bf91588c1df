import { KisError } from '../../../common/errors.ts'
import { readArabizi } from '../../domain/search/arabizi.ts'
import type { SearchMode } from '../../domain/search/fuse.ts'
import { isMetadataField, parseSearchFilter } from '../../domain/search/parse-search-filter.ts'
import type { SearchFilter } from '../../domain/search/search-filter.ts'
import { normaliseText } from '../../domain/text/normalise-text.ts'
import { normaliseForEmbedding, queryTerms } from '../../domain/text/text-analysis.ts'

const MAX_QUERY = 8_192
const MAX_LIMIT = 50
/** Maximum collections per search. Each is searched separately. */
const MAX_COLLECTIONS = 10
const MAX_EXPAND = 3
const MAX_MESSAGES = 20
const MAX_HITS_PER_DOCUMENT = 10
const MAX_FACETS = 8
const MAX_LEXICAL_WEIGHT = 10
const FACET_FIELDS = ['language', 'file_name', 'media_type']

/** A message of the conversation before a query. */
interface SearchMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** A search request. Omitted fields have their defaults. */
export interface SearchInput {
  /** Either this or `collectionIds`. */
  readonly collectionId?: string | null
  readonly collectionIds?: readonly string[] | null
  readonly query: string
  readonly limit?: number | null
  readonly mode?: SearchMode | null
  readonly filter?: unknown
  /** Undefined: the collections' default. Null: none. */
  readonly rerankModel?: string | null
  /** The conversation before the query, oldest first, and the model that rewrites the query with it. */
  readonly history?: readonly SearchMessage[] | null
  readonly rewriteModel?: string | null
  readonly minScore?: number | null
  readonly lexicalWeight?: number | null
  readonly expand?: number | null
  readonly groupBy?: 'document' | null
  readonly hitsPerDocument?: number | null
  readonly facets?: readonly string[] | null
}

/** A validated search with defaults applied. */
export interface SearchRequest {
  readonly collectionIds: readonly string[]
  readonly query: string
  /** The text that is embedded. */
  readonly text: string
  /** The original Arabizi query. Null: `query` is the original. */
  readonly typed: string | null
  /** Maximum hits, or maximum documents if hits are grouped. */
  readonly limit: number
  readonly mode: SearchMode
  readonly filter: SearchFilter | null
  readonly rerankModel: string | null | undefined
  /** Null: the query has no conversation. */
  readonly conversation: { readonly modelId: string; readonly history: readonly SearchMessage[] } | null
  readonly minScore: number | null
  /** Weight of lexical evidence relative to vectors. Default: 1. */
  readonly lexicalWeight: number
  /** Number of chunks before and after each hit. */
  readonly expand: number
  /** Maximum hits per document. Null: hits are not grouped. */
  readonly hitsPerDocument: number | null
  readonly facets: readonly string[]
}

/**
 * Validates a search request and applies defaults.
 * @throws {KisError} a field is invalid; `param` has its path.
 * @throws {KisError} as `parseSearchFilter`, if the filter is invalid.
 */
export function checkSearch(input: SearchInput): SearchRequest {
  // Documents are normalized in the same way at ingestion.
  const query = normaliseText(input.query)
  const text = normaliseForEmbedding(query)
  if (text.trim() === '') throw new KisError('invalid_request', 'The query must not be empty.', { param: 'input.query' })
  if (input.query.length > MAX_QUERY)
    throw new KisError('string_above_max_length', `A query has at most ${MAX_QUERY} characters.`, { param: 'input.query' })
  const grouped = input.groupBy === 'document'
  return {
    query,
    text,
    typed: null,
    collectionIds: checkCollections(input),
    limit: checkNumber(input.limit ?? 10, 'limit', 1, MAX_LIMIT),
    mode: input.mode ?? 'hybrid',
    filter: parseSearchFilter(input.filter ?? null),
    rerankModel: input.rerankModel,
    conversation: checkConversation(input),
    minScore: input.minScore ?? null,
    lexicalWeight: checkNumber(input.lexicalWeight ?? 1, 'lexicalWeight', 0, MAX_LEXICAL_WEIGHT),
    expand: checkNumber(input.expand ?? 0, 'expand', 0, MAX_EXPAND),
    hitsPerDocument: grouped ? checkNumber(input.hitsPerDocument ?? 3, 'hitsPerDocument', 1, MAX_HITS_PER_DOCUMENT) : null,
    facets: checkFacets(input.facets ?? []),
  }
}

/** Converts an Arabizi query to Arabic letters. Returns any other request unchanged. */
export function readLetters(request: SearchRequest): SearchRequest {
  const arabic = readArabizi(request.query)
  return arabic === null ? request : { ...request, query: arabic, text: normaliseForEmbedding(arabic), typed: request.query }
}

/** Returns the terms of the query. Chunks may be in Arabizi themselves, so the typed words are included. */
export function termsOf({ query, typed }: Pick<SearchRequest, 'query' | 'typed'>): ReturnType<typeof queryTerms> {
  const terms = queryTerms(query)
  return typed === null ? terms : { ...terms, words: queryTerms(`${query} ${typed}`).words }
}

function checkCollections({ collectionId, collectionIds }: SearchInput): readonly string[] {
  if ((collectionId == null) === (collectionIds == null))
    throw new KisError('invalid_request', 'Send either `collectionId` or `collectionIds`.', { param: 'input.collectionIds' })
  const ids = [...new Set(collectionIds ?? [collectionId!])]
  if (ids.length === 0) throw new KisError('invalid_request', 'Name at least one collection.', { param: 'input.collectionIds' })
  if (ids.length > MAX_COLLECTIONS)
    throw new KisError('array_above_max_length', `One search covers at most ${MAX_COLLECTIONS} collections.`, {
      param: 'input.collectionIds',
    })
  return ids
}

function checkConversation({ history, rewriteModel }: SearchInput): SearchRequest['conversation'] {
  if (history == null || history.length === 0) return null
  if (history.length > MAX_MESSAGES)
    throw new KisError('array_above_max_length', `The history has at most ${MAX_MESSAGES} messages.`, { param: 'input.history' })
  const long = history.findIndex(({ content }) => content.length > MAX_QUERY)
  if (long >= 0)
    throw new KisError('string_above_max_length', `A message has at most ${MAX_QUERY} characters.`, {
      param: `input.history[${long}].content`,
    })
  if (rewriteModel == null)
    throw new KisError('missing_required_parameter', 'A search with `history` needs a `rewriteModel`.', { param: 'input.rewriteModel' })
  return { modelId: rewriteModel, history }
}

function checkFacets(fields: readonly string[]): readonly string[] {
  if (fields.length > MAX_FACETS)
    throw new KisError('array_above_max_length', `A search returns at most ${MAX_FACETS} facets.`, { param: 'input.facets' })
  const wrong = fields.findIndex((field) => !FACET_FIELDS.includes(field) && !isMetadataField(field))
  if (wrong >= 0)
    throw new KisError('unsupported_value', `A facet is one of ${FACET_FIELDS.join(', ')} and metadata.<name>.`, {
      param: `input.facets[${wrong}]`,
    })
  return [...new Set(fields)]
}

function checkNumber(value: number, name: string, least: number, most: number): number {
  const param = `input.${name}`
  if (value < least) throw new KisError('integer_below_min_value', `\`${name}\` is at least ${least}.`, { param })
  if (value > most) throw new KisError('integer_above_max_value', `\`${name}\` is at most ${most}.`, { param })
  return value
}
