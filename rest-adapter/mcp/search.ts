import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { checkInteger, checkOneOf, isAbsent, textAt } from '../../subgraphs/common/check.ts'
import { escapeUntrustedText } from '../../subgraphs/common/untrusted-text.ts'
import type { Call, JsonObject } from '../http/route.ts'
import { type HitData, SEARCH, toSearchResult } from '../routes/search.ts'
import { NOTICE, sourceLine, toResult } from './chunk-marks.ts'
import type { CollectionData } from './tools.ts'

/** As the description of the tool says. */
const DEFAULT_CHUNKS = 8
const MAX_CHUNKS = 20

/** What a client may ask for beyond what an agent's model may. */
const MAX_EXPAND = 3
const MAX_PER_DOCUMENT = 3
const MODES = ['hybrid', 'vector', 'lexical']

export const SEARCH_ARGUMENTS = ['query', 'limit', 'filter', 'expand', 'per_document', 'mode'] as const

/** The JSON Schema of the tool's arguments, from that of the tool of agents. */
export function toInputSchema(parameters: unknown): JsonObject {
  const schema = (parameters ?? { type: 'object' }) as JsonObject
  const more = {
    expand: {
      type: 'integer',
      minimum: 0,
      maximum: MAX_EXPAND,
      description: 'How many passages before and after each to show; default 0.',
    },
    per_document: {
      type: 'integer',
      minimum: 1,
      maximum: MAX_PER_DOCUMENT,
      description: 'Shows at most so many passages of one document. `limit` then counts documents.',
    },
    mode: { enum: MODES, description: 'By meaning and words (hybrid, the default), by meaning (vector), or by words alone (lexical).' },
  }
  return { ...schema, properties: { ...(schema.properties as JsonObject | undefined), ...more } }
}

/**
 * Searches one collection. The marks of the passages begin after `marksBefore`.
 * @throws {KisError} the arguments are wrong, by their names in the tool, or the search failed
 */
export async function searchCollection(call: Call, { id }: CollectionData, args: JsonObject, marksBefore: number): Promise<CallToolResult> {
  const { hits } = (await call.execute(SEARCH, { input: { collectionId: id, ...readArguments(args) } })).searchCollection
  if (hits.length === 0) return toResult('Nothing was found. Try other words, the other language, or fewer filters.', { results: [] })
  const shown = withoutDuplicates(hits)
  const texts = shown.map(({ chunk, before, after }, index) => {
    const excerpt = [...before, chunk, ...after].map(({ text }) => escapeUntrustedText(text)).join('\n')
    return `${sourceLine(marksBefore + index + 1, { ...chunk, fileName: chunk.document.name })}\n${excerpt}`
  })
  // Clients hand this to models as well.
  const results = shown.map((hit, index) => ({ mark: marksBefore + index + 1, ...forModel(toSearchResult(hit)) }))
  return toResult([NOTICE, ...texts].join('\n\n'), { results })
}

function readArguments({ query, limit, filter, expand, per_document: perDocument, mode }: JsonObject) {
  if (!isAbsent(limit)) checkInteger(limit, 'limit', 1, MAX_CHUNKS)
  if (!isAbsent(expand)) checkInteger(expand, 'expand', 0, MAX_EXPAND)
  if (!isAbsent(perDocument)) checkInteger(perDocument, 'per_document', 1, MAX_PER_DOCUMENT)
  if (!isAbsent(mode)) checkOneOf(mode, 'mode', MODES)
  const grouping = isAbsent(perDocument) ? {} : { groupBy: 'DOCUMENT', hitsPerDocument: perDocument }
  return {
    query: textAt(query, 'query'),
    limit: limit ?? DEFAULT_CHUNKS,
    filter,
    expand: expand ?? 0,
    ...grouping,
    ...(!isAbsent(mode) && { mode: String(mode).toUpperCase() }),
  }
}

/** Shows a passage that stands beside several hits, or is one, only once. */
function withoutDuplicates(hits: readonly HitData[]): readonly HitData[] {
  const shown = new Set(hits.map(({ chunk }) => chunk.id))
  const isNew = ({ id }: { readonly id: string }) => {
    if (shown.has(id)) return false
    shown.add(id)
    return true
  }
  return hits.map((hit) => ({ ...hit, before: hit.before.filter(isNew), after: hit.after.filter(isNew) }))
}

/** Returns the result without the parts that only programs read, such as offsets into the text, which changes here. */
function forModel({ text, heading_path, file, highlights: _highlights, before, after, ...rest }: ReturnType<typeof toSearchResult>) {
  return {
    ...rest,
    text: escapeUntrustedText(text),
    before: before.map((chunk) => escapeUntrustedText(chunk.text)),
    after: after.map((chunk) => escapeUntrustedText(chunk.text)),
    heading_path: heading_path.map(escapeUntrustedText),
    file: { ...file, file_name: escapeUntrustedText(file.file_name) },
  }
}
