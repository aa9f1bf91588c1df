import { normalise } from '../text/text-analysis.ts'

/** A chunk that a good search finds for a question. The chunk must match every field that is not null. */
export interface Expected {
  readonly fileName: string | null
  /** Counts from 1. */
  readonly page: number | null
  /** Words that the chunk contains. The comparison ignores case, marks and letter variants. */
  readonly phrase: string | null
}

/**
 * The rankings that are scored separately: the combined one of the search result, by words only, and by vectors only.
 */
export const RANKINGS = ['combined', 'words', 'meaning'] as const
export type Ranking = (typeof RANKINGS)[number]

/** For each expected chunk, its best rank in each ranking, from 1. Null: not found. */
export type Ranks = Readonly<Record<Ranking, readonly (number | null)[]>>

export interface RankedHit {
  readonly fileName: string
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly text: string
  readonly lexicalRank: number | null
  readonly vectorRank: number | null
}

/** Returns the ranks of the expected chunks among the hits of a search, best first. */
export function rankExpected(expected: readonly Expected[], hits: readonly RankedHit[]): Ranks {
  const texts = hits.map(({ text }) => fold(text))
  const found = expected.map((each) => {
    const phrase = each.phrase === null ? null : fold(each.phrase)
    return hits.flatMap((hit, i) => (meets(hit, texts[i]!, each, phrase) ? [{ ...hit, rank: i + 1 }] : []))
  })
  return {
    combined: found.map((matches) => least(matches.map(({ rank }) => rank))),
    words: found.map((matches) => least(matches.map(({ lexicalRank }) => lexicalRank))),
    meaning: found.map((matches) => least(matches.map(({ vectorRank }) => vectorRank))),
  }
}

function meets({ fileName, pageStart, pageEnd }: RankedHit, text: string, expected: Expected, phrase: string | null): boolean {
  if (expected.fileName !== null && expected.fileName !== fileName) return false
  if (phrase !== null && !text.includes(phrase)) return false
  if (expected.page === null) return true
  return pageStart !== null && pageStart <= expected.page && expected.page <= (pageEnd ?? pageStart)
}

function least(ranks: readonly (number | null)[]): number | null {
  const known = ranks.filter((rank) => rank !== null)
  return known.length === 0 ? null : Math.min(...known)
}

/** Folds case, white space and letter variants, so that texts that differ only in them become equal. */
export function fold(text: string): string {
  return normalise(text).toLowerCase().replaceAll(/\s+/g, ' ').trim()
}
