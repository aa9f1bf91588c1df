import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { checkInteger, isAbsent, textAt } from '../../subgraphs/common/check.ts'
import type { Call, JsonObject } from '../http/route.ts'
import { SEARCH, toSearchResult } from '../routes/search.ts'
import { NOTICE, sourceLine, toResult } from './passages.ts'
import type { CollectionData } from './tools.ts'

/** As the description of the tool says. */
const DEFAULT_PASSAGES = 8
const MAX_PASSAGES = 20

/**
 * Searches one collection.
 * @throws {KisError} the arguments are wrong, by their names in the tool, or the search failed
 */
export async function searchCollection(call: Call, { id }: CollectionData, { query, limit, filter }: JsonObject): Promise<CallToolResult> {
  if (!isAbsent(limit)) checkInteger(limit, 'limit', 1, MAX_PASSAGES)
  const input = { collectionId: id, query: textAt(query, 'query'), limit: limit ?? DEFAULT_PASSAGES, filter }
  const { searchCollection: found } = await call.ask(SEARCH, {
    input,
  })
  const { hits } = found
  if (hits.length === 0) return toResult('Nothing was found. Try other words, the other language, or fewer filters.', { results: [] })
  const texts = hits.map(({ chunk }, place) => `${sourceLine(place + 1, { ...chunk, fileName: chunk.document.name })}\n${chunk.text}`)
  const results = hits.map((hit, place) => ({ mark: place + 1, ...toSearchResult(hit) }))
  return toResult([NOTICE, ...texts].join('\n\n'), { results })
}
