import type { DocumentRecord } from './records.ts'

const MAX_TITLES = 12
const MAX_HEADINGS = 24

/** A summary of a collection. */
export interface CollectionDigest {
  /** Documents that searches find. */
  readonly documentCount: number
  /** How many of them, the newest, the rest describes. */
  readonly examinedCount: number
  /** By the number of documents, most frequent first. */
  readonly languages: readonly { readonly language: string | null; readonly documentCount: number }[]
  /** Of the longest documents, longest first. */
  readonly titles: readonly DigestTitle[]
  /** Of the same documents: the first of each before the second of any, without repeats. */
  readonly headings: readonly string[]
  /** When the first and the last document was attached; null: there are none. */
  readonly oldestAt: Date | null
  readonly newestAt: Date | null
}

interface DigestTitle {
  /** Null for a document without a heading at its beginning. */
  readonly title: string | null
  readonly fileName: string
}

type Examined = Pick<DocumentRecord, 'fileName' | 'language' | 'chunkCount' | 'createdAt' | 'outline'>

/** @param newest ready documents, newest first */
export function buildDigest(newest: readonly Examined[], documentCount: number, oldestAt: Date | null): CollectionDigest {
  const longest = newest.toSorted((a, b) => b.chunkCount - a.chunkCount)
  const byLanguage = [...Map.groupBy(newest, ({ language }) => language)]
  return {
    documentCount,
    examinedCount: newest.length,
    languages: byLanguage
      .map(([language, { length }]) => ({ language, documentCount: length }))
      .toSorted((a, b) => b.documentCount - a.documentCount),
    titles: longest.slice(0, MAX_TITLES).map(({ outline, fileName }) => ({ title: outline?.title ?? null, fileName })),
    headings: listHeadings(longest),
    oldestAt,
    newestAt: newest[0]?.createdAt ?? null,
  }
}

function listHeadings(longest: readonly Examined[]): readonly string[] {
  const headings = new Set<string>()
  for (let index = 0; ; index++) {
    let isAny = false
    for (const { outline } of longest) {
      const heading = outline?.headings[index]
      if (heading === undefined) continue
      isAny = true
      headings.add(heading)
      if (headings.size === MAX_HEADINGS) return [...headings]
    }
    if (!isAny) return [...headings]
  }
}
