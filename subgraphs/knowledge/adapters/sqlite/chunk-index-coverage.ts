import type { DatabaseSync } from 'node:sqlite'
import type { CollectionRow, Tables } from './chunk-index-schema.ts'
import { Top } from './chunk-index-top.ts'

/** BM25's saturation and length normalisation, as the port states them. */
const K1 = 1.2
const B = 0.75
/**
 * Postings that one leg reads to find its candidates, rarest terms first: about 5 ms. The 3-gram of an ending is in
 * nearly every chunk of its language. It hardly distinguishes chunks, and the scores still count it.
 */
const MAX_POSTINGS = 20_000
/** Most postings to read if a filter excludes chunks, which then do not count. */
const MAX_POSTINGS_READ = 100_000

export type Leg = 'w' | 'g'

interface Term {
  readonly id: number
  readonly weight: number
  /** Chunks of the collection that contain it. */
  readonly chunks: number
}

/** One lexical leg of a query over one collection. */
export interface LexicalLeg {
  /** At most `count` chunks that probably score best: those with the most weight of the query's rarer terms. */
  candidates(count: number, isEligible: (id: number) => boolean): readonly number[]
  /** Share of the query that a chunk with these counts covers, 0 to 1: BM25 divided by the query's own maximum. */
  coverage(counts: ReadonlyMap<number, number>, length: number): number
  readonly termIds: readonly number[]
}

export function lexicalLeg(db: DatabaseSync, tables: Tables, collection: CollectionRow, leg: Leg, query: readonly string[]): LexicalLeg {
  const averageLength = (leg === 'w' ? collection.words : collection.grams) / collection.chunks || 1
  const find = db.prepare(`SELECT id, chunks FROM ${tables.terms} WHERE term = ?`)
  const terms: Term[] = []
  let ceiling = 0
  for (const text of new Set(query)) {
    const found = find.get(leg + text) as { id: number; chunks: number } | undefined
    const chunks = found?.chunks ?? 0
    const weight = Math.log(1 + (collection.chunks - chunks + 0.5) / (chunks + 0.5)) * (K1 + 1)
    ceiling += weight
    if (found) terms.push({ id: found.id, chunks, weight })
  }
  terms.sort((a, b) => a.chunks - b.chunks || a.id - b.id)

  return {
    termIds: terms.map(({ id }) => id),
    candidates: (count, isEligible) => heaviest(db, tables, terms, count, isEligible),
    coverage(counts, length) {
      let sum = 0
      for (const { id, weight } of terms) {
        const count = counts.get(id)
        if (count) sum += (weight * count) / (count + K1 * (1 - B + (B * length) / averageLength))
      }
      return ceiling === 0 ? 0 : sum / ceiling
    },
  }
}

function heaviest(
  db: DatabaseSync,
  tables: Tables,
  terms: readonly Term[],
  count: number,
  isEligible: (id: number) => boolean,
): readonly number[] {
  const { last } = db.prepare(`SELECT max(id) AS last FROM ${tables.chunks}`).get() as { last: number }
  const weights = new Float64Array(last + 1)
  // One text with all ids. A row for each would take ten times as long to reach JavaScript.
  const postings = db.prepare(
    `SELECT json_group_array(rowid) AS ids FROM (SELECT rowid FROM ${tables.postings} WHERE ${tables.postings} MATCH ? LIMIT ?)`,
  )
  let read = 0
  let counted = 0
  for (const { id: term, weight } of terms) {
    if (counted >= MAX_POSTINGS || read >= MAX_POSTINGS_READ) break
    const { ids } = postings.get(`"${term}"`, MAX_POSTINGS_READ - read) as { ids: string }
    const having = JSON.parse(ids) as number[]
    read += having.length
    for (const id of having) {
      if (!isEligible(id)) continue
      counted++
      weights[id]! += weight
    }
  }
  const top = new Top(count)
  for (const [id, weight] of weights.entries()) if (weight > 0) top.offer(id, weight)
  return top.ids
}
