import type { DocumentRecord } from './records.ts'

const MAX_TITLES = 12
const MAX_HEADINGS = 24

/** A summary of a collection's documents. */
export interface CollectionDigest {
  /** Number of documents that searches find. */
  readonly documentCount: number
  /** Number of newest documents that the other fields describe. */
  readonly examinedCount: number
  /** Languages by the number of documents, most frequent first. */
  readonly languages: readonly { readonly language: string | null; readonly documentCount: number }[]
  /** Titles of the longest documents, longest first. */
  readonly titles: readonly DigestTitle[]
  /** Distinct headings of the same documents: first the first heading of each document, then the second, and so on. */
  readonly headings: readonly string[]
  /** When the first and the last document was attached. Null: the collection has no documents. */
  readonly oldestAt: Date | null
  readonly newestAt: Date | null
}

interface DigestTitle {
  /** Null if the document does not start with a heading. */
  readonly title: string | null
  readonly fileName: string
}

type Examined = Pick<DocumentRecord, 'fileName' | 'language' | 'chunkCount' | 'createdAt' | 'outline'>

/**
 * Builds the digest of a collection.
 * @param newest ready documents, newest first
 */
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
