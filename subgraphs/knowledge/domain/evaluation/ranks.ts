import { normalise } from '../text/text-analysis.ts'

/** What a good search finds for a question: a passage that meets every member that is not null. */
export interface Expected {
  readonly fileName: string | null
  /** From 1. */
  readonly page: number | null
  /** Words that the passage contains. Case, marks and forms of letters do not matter. */
  readonly phrase: string | null
}

/** The rankings that are judged apart: that of the answer, by words alone, and by meaning alone. */
export const RANKINGS = ['combined', 'words', 'meaning'] as const
export type Ranking = (typeof RANKINGS)[number]

/** For each expected passage, its best rank in each ranking, from 1. Null: it was not found. */
export type Ranks = Readonly<Record<Ranking, readonly (number | null)[]>>

export interface RankedHit {
  readonly fileName: string
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly text: string
  readonly lexicalRank: number | null
  readonly vectorRank: number | null
}

/** Returns the ranks of the expected passages among the hits of a search, best first. */
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

/** Returns the one form of texts that differ in case, white space and the forms of letters only. */
export function fold(text: string): string {
  return normalise(text).toLowerCase().replaceAll(/\s+/g, ' ').trim()
}
