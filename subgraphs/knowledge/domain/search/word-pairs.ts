import { stemOf, tokens } from '../text/text-analysis.ts'

/**
 * Adjacent words of the query that are also adjacent in a chunk: "national anthem" says more than both words apart.
 * Stop words between them are ignored, and the order may differ.
 */

/** Maximum per query. A query with more is pasted text, whose words the lexical retrievers count. */
const MAX_PAIRS = 64

/** Returns the share of the query's pairs that each chunk contains, 0 to 1. Chunks without any are omitted. */
export function findWordPairs(
  query: string,
  chunks: readonly { readonly chunkId: string; readonly text: string }[],
): ReadonlyMap<string, number> {
  const pairs = [...readPairs(query)].slice(0, MAX_PAIRS)
  if (pairs.length === 0) return new Map()
  const shares = chunks.map(({ chunkId, text }) => {
    const having = readPairs(text)
    return [chunkId, pairs.filter((pair) => having.has(pair)).length / pairs.length] as const
  })
  return new Map(shares.filter(([, share]) => share > 0))
}

function readPairs(text: string): ReadonlySet<string> {
  const stems = tokens(text).flatMap((token) => stemOf(token) ?? [])
  const pairs = new Set<string>()
  for (let at = 1; at < stems.length; at++) {
    const [a, b] = [stems[at - 1]!, stems[at]!]
    if (a !== b) pairs.add(a < b ? `${a} ${b}` : `${b} ${a}`)
  }
  return pairs
}
