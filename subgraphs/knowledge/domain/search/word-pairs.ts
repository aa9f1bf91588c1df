import { stemOf, tokens } from '../text/text-analysis.ts'

/**
 * Words of the query that follow one another, and stand side by side in a passage as well: "national anthem" is more
 * than the two words somewhere in it. Stop words between them do not count, and either may be the first.
 */

/** Of a query. More are a pasted text, whose words the lexical legs count. */
const MAX_PAIRS = 64

/** The share of the query's pairs that each passage has, 0 to 1. Passages with none are left out. */
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
