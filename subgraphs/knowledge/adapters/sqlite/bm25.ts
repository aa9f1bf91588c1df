import type { DatabaseSync } from 'node:sqlite'
import { readCounts } from './tables/chunk-index-counts.ts'
import type { CollectionRow, Tables } from './tables/chunk-index-schema.ts'

/** BM25's saturation and length normalization, as the port specifies. */
const K1 = 1.2
const B = 0.75

const KINDS = ['words', 'grams'] as const
type Kind = (typeof KINDS)[number]
/** The length of a chunk, or the average length, in words and in 3-grams. */
type Lengths = Readonly<Record<Kind, number>>

interface Term {
  readonly id: number
  readonly kind: Kind
  /** The number of the collection's chunks with this term. */
  readonly chunks: number
  readonly weight: number
}

/** Scores chunks of a collection by the terms of one query. */
export class Bm25 {
  /** The query's terms that the collection has, in ascending order of IDs, like in the counts of chunks. */
  readonly #terms: readonly Term[]
  readonly #averages: Lengths
  readonly #maxima = { words: 0, grams: 0 }

  constructor(
    db: DatabaseSync,
    tables: Tables,
    { chunks: total, words, grams }: CollectionRow,
    query: Readonly<Record<Kind, readonly string[]>>,
  ) {
    const find = db.prepare(`SELECT id, chunks FROM ${tables.terms} WHERE term = ?`)
    const terms: Term[] = []
    for (const kind of KINDS) {
      for (const text of new Set(query[kind])) {
        const found = find.get(kind[0] + text) as { id: number; chunks: number } | undefined
        const chunks = found?.chunks ?? 0
        const weight = Math.log(1 + (total - chunks + 0.5) / (chunks + 0.5)) * (K1 + 1)
        this.#maxima[kind] += weight
        if (found) terms.push({ ...found, kind, weight })
      }
    }
    this.#terms = terms.sort((a, b) => a.id - b.id)
    this.#averages = { words: words / total || 1, grams: grams / total || 1 }
  }

  /**
   * Returns the IDs of the query's rarest words: as many as have at most `maxChunks` chunks in sum, and at least one if
   * there is any.
   */
  rarestWords(maxChunks: number): readonly number[] {
    let left = maxChunks
    return this.#terms
      .filter(({ kind }) => kind === 'words')
      .sort((a, b) => a.chunks - b.chunks)
      .filter(({ chunks }, i) => {
        left -= chunks
        return left >= 0 || i === 0
      })
      .map(({ id }) => id)
  }

  /** Returns the chunk's coverages, 0 to 1: BM25 divided by the query's maximum. */
  coverage(encodedCounts: Uint8Array, lengths: Lengths): Lengths {
    const sums = { words: 0, grams: 0 }
    let next = 0
    readCounts(encodedCounts, (id, count) => {
      while (next < this.#terms.length && this.#terms[next]!.id < id) next++
      const term = this.#terms[next]
      if (term?.id !== id) return
      const { kind, weight } = term
      sums[kind] += (weight * count) / (count + K1 * (1 - B + (B * lengths[kind]) / this.#averages[kind]))
    })
    return { words: sums.words / this.#maxima.words || 0, grams: sums.grams / this.#maxima.grams || 0 }
  }
}
