/**
 * Returns the nDCG at 10 of one question, from 0 to 1. `found` has ids, best first. Each id of `right` counts once, at
 * its first position, because a paragraph that was cut into two chunks appears twice.
 */
export function ndcgAt10(found: readonly string[], right: ReadonlySet<string>): number {
  const gain = (rank: number) => 1 / Math.log2(rank + 2)
  const got = [...new Set(found)].slice(0, 10).reduce((sum, id, rank) => sum + (right.has(id) ? gain(rank) : 0), 0)
  const best = Array.from({ length: Math.min(right.size, 10) }, (_, rank) => gain(rank)).reduce((sum, g) => sum + g, 0)
  return got / best
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, v) => sum + v, 0) / values.length
}
