import type { Quantities } from '../../ports/billing.ts'
import type { Model } from '../catalog.ts'
import { estimateTokens } from '../tokens/estimate-tokens.ts'
import { toQuantities, type Usage } from '../tokens/usage.ts'

/** A search unit is a query with up to this many documents (Cohere, "How does Cohere's pricing work?"). */
const DOCUMENTS_OF_A_UNIT = 100
/** A document that is longer than this together with its query counts as several (same page). */
const TOKENS_OF_A_DOCUMENT = 500
/** However long the query is, at least this many tokens of each document count as one document. */
const LEAST_WINDOW_TOKENS = 100
/** Special tokens around a query and a document. */
const MARK_TOKENS = 4
/** The hold covers a fifth more, because counts are estimates. */
const MARGIN = 6 / 5

/**
 * Counts the usage of the documents; the model reads each together with the query. `batch` is the most documents of one
 * engine call, because each call has its own search units.
 */
export function countRerank(query: string, documents: readonly string[], batch: number): Quantities {
  return quantitiesOf(estimateTokens(query), documents.map(estimateTokens), batch)
}

/** The most that the documents can use, which the hold reserves. */
export function rerankCeiling(query: string, documents: readonly string[], batch: number): Quantities {
  const more = (text: string) => Math.ceil(estimateTokens(text) * MARGIN)
  return quantitiesOf(more(query), documents.map(more), batch)
}

/** The charged usage: the vendor's report of the unit that has a price, or else the count. */
export function rerankUsage(
  counted: Quantities,
  said: { readonly tokens: number | null; readonly searchUnits: number | null },
  { price }: Model,
): Usage {
  const isReported = (price.search === null ? said.tokens : said.searchUnits) !== null
  return {
    quantities: {
      ...counted,
      inputTokens: said.tokens ?? counted.inputTokens,
      searchUnits: price.search === null ? 0 : (said.searchUnits ?? counted.searchUnits),
    },
    source: isReported ? 'provider' : 'counted',
  }
}

function quantitiesOf(queryTokens: number, documentTokens: readonly number[], batch: number): Quantities {
  const window = Math.max(TOKENS_OF_A_DOCUMENT - queryTokens, LEAST_WINDOW_TOKENS)
  let searchUnits = 0
  for (let start = 0; start < documentTokens.length; start += batch) {
    const counted = documentTokens.slice(start, start + batch).reduce((sum, tokens) => sum + Math.max(1, Math.ceil(tokens / window)), 0)
    searchUnits += Math.ceil(counted / DOCUMENTS_OF_A_UNIT)
  }
  const inputTokens = documentTokens.reduce((sum, tokens) => sum + tokens + queryTokens + MARK_TOKENS, 0)
  return { ...toQuantities(inputTokens, 0), searchUnits }
}
