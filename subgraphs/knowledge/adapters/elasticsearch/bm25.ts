import { type Leg, type TermCounts, termKey } from './term-counts.ts'

/** BM25's saturation and length normalisation, as the port states them. */
const K1 = 1.2
const B = 0.75

export interface LexicalLeg {
  /** Terms that the collection has, rarest first, with the weight that each adds. */
  readonly terms: readonly { readonly text: string; readonly chunks: number; readonly weight: number }[]
  /** Share of the query that a chunk covers, 0 to 1: BM25 divided by the query's own ceiling. */
  coverage(counts: TermCounts): number
}

/** `chunksWith` tells for each distinct term of the query how many of the collection's `chunks` have it. */
export function lexicalLeg(leg: Leg, chunksWith: ReadonlyMap<string, number>, chunks: number, totalLength: number): LexicalLeg {
  const averageLength = totalLength / chunks || 1
  let ceiling = 0
  const terms: { readonly text: string; readonly key: number; readonly chunks: number; readonly weight: number }[] = []
  for (const [text, having] of chunksWith) {
    // Two counts of one index a moment apart: a write between them must not make the logarithm's argument negative.
    const weight = Math.log(1 + (Math.max(0, chunks - having) + 0.5) / (having + 0.5)) * (K1 + 1)
    ceiling += weight
    if (having > 0) terms.push({ text, key: termKey(leg, text), chunks: having, weight })
  }
  terms.sort((a, b) => a.chunks - b.chunks)
  return {
    terms,
    coverage(counts) {
      const norm = K1 * (1 - B + (B * counts.lengths[leg]) / averageLength)
      let sum = 0
      for (const { key, weight } of terms) {
        const count = counts.of(key)
        if (count > 0) sum += (weight * count) / (count + norm)
      }
      return ceiling === 0 ? 0 : sum / ceiling
    },
  }
}
