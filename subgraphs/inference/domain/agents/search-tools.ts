import { KisError } from '../../../common/errors.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { CollectionDescription } from '../../ports/knowledge.ts'
import { describeCollection } from './describe-collection.ts'

/** Passages of one search: the default, and the most that the model may ask for. */
const DEFAULT_CHUNKS = 8
export const MAX_CHUNKS = 20
/** Longest name of a tool in the chat protocol. */
const MAX_TOOL_NAME = 64

/** A collection as a tool. */
export interface SearchTool {
  readonly name: string
  readonly description: string
  readonly collection: CollectionDescription
}

interface SearchArguments {
  readonly query: string
  readonly limit: number
  readonly filter: unknown
}

/** One tool for each collection, each with its own name. */
export function toSearchTools(collections: readonly CollectionDescription[]): readonly SearchTool[] {
  const names = new Set<string>()
  return collections.map((collection) => {
    const stem = `search_${collection.code.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, MAX_TOOL_NAME - 3)
    let name = stem
    for (let number = 2; names.has(name); number++) name = `${stem}_${number}`
    names.add(name)
    return { name, description: describeCollection(collection), collection }
  })
}

export const SEARCH_PARAMETERS: ProtocolObject = {
  type: 'object',
  properties: {
    query: { type: 'string', description: 'What is looked for, as a full question or phrase, in Arabic or English.' },
    limit: { type: 'integer', minimum: 1, maximum: MAX_CHUNKS, description: `How many passages; default ${DEFAULT_CHUNKS}.` },
    filter: {
      type: 'object',
      description:
        'Only passages that meet it: {"file_name": "report.pdf"} or {"op": "and", "filters": [{"op": "gte", "field": "page", "value": 3}]}; fields file_name, media_type, language, document_id, created_at, page, metadata.*; op eq, ne, in, gt, gte, lt, lte, contains (a part of a text), and, or, not.',
    },
  },
  required: ['query'],
  additionalProperties: false,
}

export function toolDefinition({ name, description }: SearchTool): ProtocolObject {
  return { type: 'function', function: { name, description, parameters: SEARCH_PARAMETERS } }
}

/** @throws {KisError} the model's arguments are wrong; the model gets the message and may try again */
export function searchArguments(text: string): SearchArguments {
  let value: unknown
  try {
    value = JSON.parse(text === '' ? '{}' : text)
  } catch {
    throw new KisError('invalid_request', 'The arguments are not JSON.')
  }
  const { query, limit = DEFAULT_CHUNKS, filter = null } = (value ?? {}) as { query?: unknown; limit?: unknown; filter?: unknown }
  if (typeof query !== 'string' || query.trim() === '') throw new KisError('invalid_request', '`query` must be a text that is not empty.')
  if (!Number.isInteger(limit)) throw new KisError('invalid_request', '`limit` must be a whole number.')
  return { query, limit: Math.min(Math.max(limit as number, 1), MAX_CHUNKS), filter }
}
